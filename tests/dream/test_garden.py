"""The gardener: what it finds, what it leaves alone, and that it finds nothing twice."""

import hashlib
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from cache_admin.models import Analysis, AnalysisPath
from dream import budget, garden, garden_rules, tasks
from dream.models import Gardening
from memory.events.models import Event
from memory.notes import findings, review
from memory.notes.models import Finding, Note, Proposal
from memory.notes.review import Draft, Evidence
from memory.recall.models import Entry, Vector
from memory.tenants import choices, due
from memory.tenants.access import command_actor, member_actor
from memory.tenants.models import Due, Member
from memory.tenants.rls import NIL, tenant_scope
from tests.dream import told
from tests.llm_server import Reply, provider
from tests.pages import made

RETRIES = "# Retries\n\n- Try three times\n- Wait `2 s` between the tries\n- Refunds are never tried again\n"
MORE = RETRIES.replace("# Retries\n\n", "# Payments\n\n- Stripe is the provider\n")


def note(by: Member, path: str, text: str, **more: Any) -> Note:
    return made.note(by.tenant, by, path=path, text=text, **more)


def look(tenant: Any) -> Gardening:
    run = garden.perform(garden.start_and_claim(tenant, by=command_actor(tenant, "tests")))
    assert run is not None
    return run


def found(tenant: Any) -> list[tuple[str, str, str]]:
    """Kind, path and the other's path of what stands."""
    with tenant_scope(str(tenant.pk)):
        rows = Finding.objects.standing().select_related("note", "other").order_by("kind", "note__path_key")
        return [(row.kind, row.note.path, row.other.path if row.other else "") for row in rows]


def proposals(tenant: Any) -> list[tuple[str, str, str]]:
    with tenant_scope(str(tenant.pk)):
        rows = Proposal.objects.select_related("note").order_by("created_at")
        return [(row.operation, row.note.path, row.state) for row in rows]


# --- near-duplicates -------------------------------------------------------------------------------------------------


def test_a_note_that_stands_whole_in_another_is_proposed_to_go(acme: Any, alice: Any) -> None:
    note(alice, "general/retries.md", RETRIES)
    note(alice, "general/payments.md", MORE)
    run = look(acme)
    assert (run.notes_read, run.found, run.proposed) == (2, 1, 1)
    assert found(acme) == [("near_duplicate", "general/retries.md", "general/payments.md")]
    assert proposals(acme) == [("delete", "general/retries.md", "open")]
    with tenant_scope(str(acme.pk)):
        proposal = Proposal.objects.get()
        assert "All its lines stand in general/payments.md too." in proposal.reason
        assert (proposal.author_kind, proposal.author_label) == ("gardener", "the gardener")
        assert Note.objects.live().count() == 2, "nothing is edited silently"
    again = look(acme)
    assert (again.found, again.proposed, again.gone) == (0, 0, 0) and len(proposals(acme)) == 1


def test_what_was_rejected_is_not_raised_again_and_what_changed_may_be(acme: Any, alice: Any, bob: Any) -> None:
    less = note(alice, "general/retries.md", RETRIES)
    note(alice, "general/payments.md", MORE)
    look(acme)
    with tenant_scope(str(acme.pk)):
        review.reject(Proposal.objects.get(), by=member_actor(bob), reason="It is told alone")
    assert found(acme) == []
    look(acme)
    assert found(acme) == [] and len(proposals(acme)) == 1
    made.rewritten(less, alice, RETRIES.replace("three", "3").replace("# Retries", "# Tries"))
    look(acme)
    assert found(acme) == [], "it says something else now"
    made.rewritten(less, alice, RETRIES.replace("# Retries", "# Tries"))
    look(acme)
    assert found(acme) == [("near_duplicate", "general/retries.md", "general/payments.md")]


def test_what_no_longer_holds_goes_with_its_proposal(acme: Any, alice: Any) -> None:
    note(alice, "general/retries.md", RETRIES)
    more = note(alice, "general/payments.md", MORE)
    look(acme)
    made.rewritten(more, alice, "# Payments\n\n- Stripe is the provider\n")
    assert look(acme).gone == 1
    assert found(acme) == [] and proposals(acme) == [("delete", "general/retries.md", "superseded")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("- The staging database listens on 5433\n", "- The staging database listens on 5432\n"),
        ("- Run `make lint` before a commit\n", "- Run `make test` before a commit\n"),
        ("- Refunds are tried again by the job\n", "- Refunds are never tried again by the job\n"),
        ("- The cache of the payments page is switched on\n", "- The cache of the payments page is switched off\n"),
        ("- Caching is on\n", "- Caching is off\n"),
        ("- Ask Maria before you change the payments schema\n", "- Ask Jonas before you change the payments schema\n"),
        ("- Deploys run on Friday from main\n", "- Deploys need the token of the release team\n"),
    ],
)
def test_two_facts_that_differ_stay_two(acme: Any, alice: Any, first: str, second: str) -> None:
    note(alice, "general/a.md", f"# One\n\n{first}")
    note(alice, "general/b.md", f"# Two\n\n{second}")
    look(acme)
    assert found(acme) == []


def test_other_projects_and_private_spaces_are_other_notes(acme: Any, alice: Any, mia: Any) -> None:
    for slug in ("shop", "blog"):
        made.project(acme, slug)
        note(alice, f"project/{slug}/retries.md", RETRIES)
    note(mia, "general/retries.md", RETRIES, is_private=True)
    look(acme)
    assert found(acme) == []


@pytest.mark.parametrize("reason", ["pinned", "locked", "private"])
def test_what_a_person_holds_gets_a_label_and_no_proposal(acme: Any, alice: Any, reason: str) -> None:
    less = note(alice, "general/retries.md", RETRIES, is_private=reason == "private")
    note(alice, "general/payments.md", MORE, is_private=reason == "private")
    with tenant_scope(str(acme.pk)):
        Note.objects.filter(pk=less.pk).update(is_pinned=reason == "pinned", is_locked=reason == "locked")
    look(acme)
    assert len(found(acme)) == 1 and proposals(acme) == []


def test_the_same_in_other_words_is_found_by_the_vectors(acme: Any, alice: Any) -> None:
    texts = {
        "a": "# Retries\n\nA failed payment is tried again three times, one second apart, and then marked failed.\n",
        "b": "# Tries\n\nThe shop tries a failed payment three times again, one second apart, then marks it failed.\n",
        "c": "# Payments that fail\n\nA failed payment is tried again 5 times, one second apart, then marked failed.\n",
    }
    notes = {name: note(alice, f"general/{name}.md", text) for name, text in texts.items()}
    with tenant_scope(str(acme.pk)):
        for one in notes.values():
            entry = Entry.objects.create(
                tenant=acme, kind="note", target=one.pk, reader=NIL, place=NIL, version=1, words=[], head=[], size=1,
                folded="",
            )  # fmt: skip
            Vector.objects.create(
                tenant=acme, entry=entry, chunk=0, kind="note", reader=NIL, place=NIL, sha256=b"", made_with="m",
                dimensions=2,
            )  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute("UPDATE recall_vector SET embedding = '[1,0]'::halfvec")
    look(acme)
    rows = found(acme)
    assert len(rows) == 1 and {rows[0][1], rows[0][2]} == {"general/a.md", "general/b.md"}
    assert proposals(acme) == [], "other words are for a person to compare"


def test_many_notes_are_compared_by_their_rare_words_only(acme: Any, alice: Any) -> None:
    """Each pair of notes that share only common words costs nothing."""
    texts = [garden_rules.Text.of(_unsaved(alice, number)) for number in range(200)]
    pairs = list(garden_rules._candidates(texts, {str(text.note.pk) for text in texts}))
    assert len(pairs) <= 200 * garden_rules.CANDIDATES // 2


def _unsaved(by: Member, number: int) -> Note:
    from memory.notes.models import Revision

    one = Note(
        tenant_id=by.tenant_id, path=f"general/{number}.md", path_key=f"general/{number}.md", created_at=timezone.now()
    )
    one.current = Revision(
        note=one, number=1, text=f"# N\n\n- The common words of word{number} and word{number // 2}\n"
    )
    return one


# --- length, telling -------------------------------------------------------------------------------------------------


def test_a_note_over_its_size_is_labelled_until_it_is_shorter(acme: Any, alice: Any) -> None:
    long = note(alice, "general/long.md", "# Long\n\n" + "- Some words about something\n" * 200)
    look(acme)
    assert found(acme) == [("too_long", "general/long.md", "")]
    made.rewritten(long, alice, "# Long\n\n- Some words\n")
    assert look(acme).gone == 1 and found(acme) == []


def test_a_note_that_nobody_is_told_is_labelled(acme: Any, alice: Any) -> None:
    old, pinned, fresh, known = (note(alice, f"general/{one}.md", f"# {one}\n\n- Word {one}\n") for one in "abcd")
    ago = timezone.now() - timedelta(days=100)
    with tenant_scope(str(acme.pk)):
        Note.objects.exclude(pk=fresh.pk).update(created_at=ago)
        Note.objects.filter(pk=pinned.pk).update(is_pinned=True)
    look(acme)
    assert found(acme) == [], "while no session was told anything, nothing is said of notes"
    made.telling(made.event(made.session(acme)), known)
    look(acme)
    assert found(acme) == [("untold", "general/a.md", "")]
    with tenant_scope(str(acme.pk)):
        [row] = Finding.objects.standing()
        findings.dismiss(row, answer="For new colleagues", by=member_actor(alice))
    look(acme)
    assert found(acme) == []
    with tenant_scope(str(acme.pk)):
        Finding.objects.all().delete()
        choices.choose(acme, "garden_untold_days", "0", by=member_actor(alice))
    look(acme)
    assert found(acme) == []
    assert old.path == "general/a.md"


# --- files -----------------------------------------------------------------------------------------------------------

OLD, NEW = "port = 5432\n", "port = 5433\n"


def read(content: str, *, whole: bool = True) -> dict[str, Any]:
    path = f"{told.ROOT}/config/db.toml"
    shown = {"filePath": path, "content": content, "startLine": 1, "numLines": 1, "totalLines": 1 if whole else 9}
    answer = {"type": "text", "file": shown}
    return {
        "hook_event_name": "PostToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": path},
        "tool_response": answer,
    }


def edited(old: str, new: str) -> dict[str, Any]:
    path = f"{told.ROOT}/config/db.toml"
    given = {"file_path": path, "old_string": old.strip(), "new_string": new.strip()}
    return {
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_input": given,
        "tool_response": {"originalFile": old},
    }


@pytest.fixture
def rests(acme: Any, alice: Any, bob: Any) -> Note:
    """A note whose line rests on a reading of a file."""
    told.tell(alice, "s1", read(OLD), told.stop())
    with tenant_scope(str(acme.pk)):
        event = Event.objects.get(tool="Read")
        draft = Draft(
            "project/shop/db.md", "# Db\n\n- The port is 5432\n", (Evidence("- The port is 5432", str(event.pk), 2),)
        )
        proposal = review.propose(acme, draft, by=made.dreamer(acme))
    assert proposal is not None
    made.approved(proposal, bob)
    return proposal.note


def test_a_note_whose_file_reads_otherwise_now_is_labelled(acme: Any, alice: Any, rests: Note) -> None:
    look(acme)
    assert found(acme) == []
    told.tell(alice, "s2", read(OLD.rstrip("\n")), read("port", whole=False), told.stop())
    look(acme)
    assert found(acme) == [], "the same content, and a piece of it, prove nothing"
    told.tell(alice, "s3", edited(OLD, NEW), told.stop())
    look(acme)
    assert found(acme) == [("stale_file", "project/shop/db.md", "")]
    with tenant_scope(str(acme.pk)):
        assert Finding.objects.standing().get().words.startswith("config/db.toml changed by ")
    told.tell(alice, "s4", edited(NEW, "port = 5434\n"), told.stop())
    assert look(acme).found == 0, "it is as old as it was"
    told.tell(alice, "s5", edited("port = 5434\n", OLD), told.stop())
    assert look(acme).gone == 1 and found(acme) == []


def test_another_project_changes_another_file(acme: Any, alice: Any, rests: Note) -> None:
    told.tell(alice, "s2", {**read(NEW), "cwd": "/home/dev/blog"}, told.stop(), root="/home/dev/blog")
    look(acme)
    assert found(acme) == []


@pytest.mark.parametrize("length", [12, 64])
def test_a_digest_that_a_note_names_is_compared_with_what_agents_stored(acme: Any, alice: Any, length: int) -> None:
    project = made.project(acme, "shop")
    digest = hashlib.sha256(OLD.encode()).hexdigest()
    note(alice, "project/shop/db.md", f"# Db\n\n- The port is 5432 (`config/db.toml` sha256:{digest[:length]})\n")

    def stored(content: str, at: Any) -> None:
        with tenant_scope(str(acme.pk)):
            made_of = Analysis.objects.create(
                tenant=acme, project=project, content_hash=f"sha256:{hashlib.sha256(content.encode()).hexdigest()}",
                analysis_type="outline", version=str(at), content={},
            )  # fmt: skip
            row = AnalysisPath.objects.create(tenant=acme, analysis=made_of, project=project, path="config/db.toml")
            AnalysisPath.objects.filter(pk=row.pk).update(last_at=at)

    stored(NEW, timezone.now() - timedelta(days=1))
    look(acme)
    assert found(acme) == [], "what it read before the note was written says nothing"
    stored(OLD, timezone.now() + timedelta(seconds=1))
    look(acme)
    assert found(acme) == []
    stored(NEW + "# more\n", timezone.now() + timedelta(seconds=2))
    look(acme)
    assert found(acme) == [("stale_file", "project/shop/db.md", "")]


# --- contradictions --------------------------------------------------------------------------------------------------

CI, TESTS = "# CI\n\n- The suite takes 5 minutes\n", "# Tests\n\n- The suite takes 20 minutes\n- Run `make test`\n"


def contradiction(second: str = "- The suite takes 20 minutes", **more: Any) -> str:
    pair = {
        "a": {"path": "general/ci.md", "line": "The suite takes 5 minutes"},
        "b": {"path": "general/tests.md", "line": second},
        "why": "one suite, two durations",
        **more,
    }
    return json.dumps({"contradictions": [pair]})


@pytest.fixture
def both(alice: Any) -> tuple[Note, Note]:
    return note(alice, "general/ci.md", CI), note(alice, "general/tests.md", TESTS)


def ask(settings: Any, served: Any) -> None:
    settings.DREAM_MODEL, settings.DREAM_MODEL_KEY = "openai-compatible:m", "key"
    settings.DREAM_MODEL_URL, settings.DREAM_MODEL_PRICE = f"{served.address}/v1", "3,15"


def test_a_model_finds_what_contradicts_and_is_asked_once(acme: Any, alice: Any, both: Any, settings: Any) -> None:
    with provider([contradiction()]) as served:
        ask(settings, served)
        run = look(acme)
        assert (run.model, run.tokens_in, run.tokens_out, run.told) == ("openai-compatible:m", 1000, 50, "")
        assert run.cost > 0 and "The suite takes 5 minutes" in served.prompts[0]
        assert found(acme) == [("contradiction", "general/ci.md", "general/tests.md")]
        with tenant_scope(str(acme.pk)):
            row = Finding.objects.standing().get()
            assert row.lines == ["- The suite takes 5 minutes", "- The suite takes 20 minutes"]
            assert "one suite, two durations" in row.words
            findings.dismiss(row, answer="Both are old", by=member_actor(alice))
        look(acme)
        assert len(served.calls) == 1, "the folder says what it said"
        made.rewritten(both[1], alice, TESTS + "- Another line\n")
        look(acme)
        assert len(served.calls) == 2 and found(acme) == [], "what was answered is not raised again"


def test_it_goes_when_one_of_the_lines_does(acme: Any, alice: Any, both: Any, settings: Any) -> None:
    with provider([contradiction(), '{"contradictions": []}']) as served:
        ask(settings, served)
        look(acme)
        made.rewritten(both[0], alice, CI + "- Another line\n")
        look(acme)
        assert len(found(acme)) == 1, "the lines stand, though the model is not sure any more"
        made.rewritten(both[0], alice, "# CI\n\n- The suite takes 20 minutes\n")
        assert look(acme).gone == 1


@pytest.mark.parametrize(
    "answer",
    [
        contradiction("- The suite takes 21 minutes"),
        contradiction("- Run `make test`"),
        contradiction(b={"path": "general/other.md", "line": "- The suite takes 20 minutes"}),
        contradiction(
            "- The suite takes 5 minutes", b={"path": "general/ci.md", "line": "- The suite takes 5 minutes"}
        ),
    ],
    ids=["no such line", "nothing in common", "no such note", "the same line"],
)
def test_what_does_not_stand_in_the_notes_is_not_believed(acme: Any, both: Any, settings: Any, answer: str) -> None:
    with provider([answer]) as served:
        ask(settings, served)
        look(acme)
    assert found(acme) == []


def test_a_malformed_answer_is_asked_for_again(acme: Any, both: Any, settings: Any) -> None:
    with provider(["Sure!", '{"contradictions": [{"a": 1}]}', contradiction()]) as served:
        ask(settings, served)
        run = look(acme)
        assert len(served.calls) == 3 and len(found(acme)) == 1 and run.tokens_in == 3000


@pytest.mark.parametrize(
    ("reply", "said"),
    [(Reply("down", status=503), "unavailable"), ("Sure!", "malformed"), (Reply("", status=429), "rate")],
)
def test_a_model_that_fails_costs_only_the_contradictions(
    acme: Any, alice: Any, both: Any, settings: Any, reply: Any, said: str
) -> None:
    note(alice, "general/long.md", "# Long\n\n" + "- Some words about something\n" * 200)
    with provider([reply]) as served:
        ask(settings, served)
        run = look(acme)
    assert said in run.told and run.finished_at is not None
    assert found(acme) == [("too_long", "general/long.md", "")]
    with provider([contradiction()]) as served:
        ask(settings, served)
        look(acme)
    assert len(found(acme)) == 2, "it is asked again the next time"


def test_the_budget_is_asked_before_each_call(acme: Any, alice: Any, both: Any, settings: Any) -> None:
    with provider([contradiction()]) as served:
        ask(settings, served)
        with tenant_scope(str(acme.pk)):
            budget.set_budget(acme, tokens="100", dollars="", by=member_actor(alice))
        run = look(acme)
        assert served.calls == [] and "over_budget" in run.told
        with tenant_scope(str(acme.pk)):
            budget.set_budget(acme, tokens="", dollars="", by=member_actor(alice))
            choices.choose(acme, "garden_tokens", "0", by=member_actor(alice))
        run = look(acme)
        assert served.calls == [] and "1 folder was not read" in run.told


def test_private_notes_are_not_sent_to_a_model(acme: Any, mia: Any, settings: Any) -> None:
    for name in "ab":
        note(mia, f"general/{name}.md", f"# {name}\n\n- Private words {name}\n", is_private=True)
    with provider([contradiction()]) as served:
        ask(settings, served)
        look(acme)
        assert served.calls == []


# --- once ------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The worker ends here."""


@pytest.mark.parametrize("where", ["_keep", "_read", "_end"])
def test_a_worker_that_dies_leaves_nothing_half_and_nothing_twice(
    acme: Any, alice: Any, both: Any, settings: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    note(alice, "general/retries.md", RETRIES)
    note(alice, "general/payments.md", MORE)
    whole = getattr(garden._Gardener, where)

    def dying(self: Any, *args: Any) -> Any:
        whole(self, *args)
        raise Killed

    with provider([contradiction()]) as served:
        ask(settings, served)
        with monkeypatch.context() as patched:
            patched.setattr(garden._Gardener, where, dying)
            with pytest.raises(Killed):
                look(acme)
        with tenant_scope(str(acme.pk)):
            rows = list(Due.objects.filter(task=garden.TASK))
            Due.objects.filter(task=garden.TASK).update(owner="", leased_until=None)
        for row in rows:
            tasks.look(tenant_id=str(acme.pk), due_id=str(row.pk))
        look(acme)
    assert [kind for kind, _, _ in found(acme)] == ["contradiction", "near_duplicate"]
    assert proposals(acme) == [("delete", "general/retries.md", "open")]
    with tenant_scope(str(acme.pk)):
        assert not Gardening.objects.filter(finished_at=None).exists()


def test_of_two_workers_one_looks(acme: Any, alice: Any) -> None:
    note(alice, "general/a.md", RETRIES)
    claim = garden.start_and_claim(acme, by=command_actor(acme, "tests"))
    with pytest.raises(garden.AlreadyRunning):
        garden.start_and_claim(acme, by=command_actor(acme, "tests"))
    with tenant_scope(str(acme.pk)):
        Due.objects.update(owner="", leased_until=None)
    other = due.claim(str(acme.pk), claim.pk)
    assert other is not None and garden.perform(other) is not None
    assert garden.perform(claim) is None


def test_the_clock_makes_each_team_with_notes_due_once_a_day(acme: Any, globex: Any, alice: Any) -> None:
    assert tasks.find_gardens() == 0
    note(alice, "general/a.md", RETRIES)
    assert tasks.find_gardens() == 1 and tasks.find_gardens() == 0
    with tenant_scope(str(acme.pk)):
        pk = str(Due.objects.get(task=garden.TASK).pk)
    tasks.look(tenant_id=str(acme.pk), due_id=pk)
    assert tasks.find_gardens() == 0
    with tenant_scope(str(acme.pk)):
        Gardening.objects.update(started_at=timezone.now() - timedelta(hours=25))
    assert tasks.find_gardens() == 1


def test_the_command_says_what_stands(acme: Any, alice: Any) -> None:
    note(alice, "general/retries.md", RETRIES)
    note(alice, "general/payments.md", MORE)
    out = io.StringIO()
    call_command("garden", tenant="acme", stdout=out)
    said = out.getvalue()
    assert "read 2 notes" in said and "1 new findings, 1 of them proposals" in said
    assert "Nearly the same  team/general/retries.md: All its lines" in said and "none is set" in said
    with pytest.raises(CommandError, match="no team"):
        call_command("garden", tenant="none")
