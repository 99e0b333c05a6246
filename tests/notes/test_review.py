"""From draft to memory and back: who may, in which order, and that nothing people wrote is lost."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.utils import timezone

from memory import ids
from memory.events.models import Event, Project, Session
from memory.notes import review
from memory.notes.models import Note, Proposal, Revision, Source, Tombstone
from memory.notes.paths import InvalidPath
from memory.notes.review import Draft, Evidence
from memory.tenants.access import Actor, Refused, dream_actor, member_actor
from memory.tenants.models import AuditEntry, Member, Tenant
from tests.conftest import Agent

Bound = Callable[[Tenant], AbstractContextManager[None]]
PATH = "tools/bash/flags.md"
NOTE = "# Flags\n\n- Use `set -e` in scripts\n- Quote every variable\n"


def key_actor(agent: Agent) -> Actor:
    key, member = agent.key, agent.member
    return Actor(
        "key", key.public_id, "agent (alice)", member.role, str(key.tenant_id), str(member.pk), str(key.pk),
        frozenset(key.scopes),
    )  # fmt: skip


def shown(proposal: Proposal) -> str:
    return hashlib.sha256(proposal.text.encode()).hexdigest()


def new_event(tenant: Tenant, seq: int = 1) -> Event:
    now = timezone.now()
    session, _ = Session.objects.get_or_create(
        tenant=tenant, client="claude_code", key="one", defaults={"first_received_at": now, "last_received_at": now}
    )
    return Event.objects.create(
        tenant=tenant, session=session, seq=seq, client="claude_code", name="UserPromptSubmit", kind="prompt",
        key=ids.mint("event"), received_at=now, sha256=b"", size=0, body="{}",
    )  # fmt: skip


@pytest.fixture
def dream(acme: Tenant) -> Actor:
    return dream_actor(acme, "drm_1")


@pytest.fixture
def reviewer(bob: Member) -> Actor:
    return member_actor(bob)


def propose(tenant: Tenant, text: str, by: Actor, **more: Any) -> Proposal:
    proposal = review.propose(tenant, Draft(more.pop("path", PATH), text, **more), by=by)
    assert proposal is not None
    return proposal


def approved(tenant: Tenant, text: str, *, by: Actor, reviewer: Actor, **more: Any) -> Revision:
    proposal = propose(tenant, text, by, **more)
    return review.approve(proposal, by=reviewer, shown=shown(proposal))


def test_it_lets_an_approved_proposal_in_as_the_first_revision(
    acme: Tenant, dream: Actor, reviewer: Actor, bob: Member, bound: Bound
) -> None:
    with bound(acme):
        proposal = propose(acme, NOTE, dream)
        assert Note.objects.live().count() == 0
        revision = review.approve(proposal, by=reviewer, shown=shown(proposal))
        note = Note.objects.live().get()
        proposal.refresh_from_db()
        actions = list(AuditEntry.objects.order_by("seq").values_list("action", flat=True))
    assert (revision.number, revision.text, revision.tier, revision.author_kind) == (1, NOTE, 0, "dream")
    assert str(note.current_id) == str(revision.pk) and str(revision.approved_by_id) == str(bob.pk)
    assert revision.title == "Flags"
    assert proposal.state == "approved" and proposal.decided_by_id is not None
    assert actions[-2:] == ["note.propose", "note.approve"]


def test_it_lets_nobody_approve_who_may_not(
    acme: Tenant, dream: Actor, agent: Agent, vera: Member, mia: Member, bound: Bound
) -> None:
    with bound(acme):
        proposal = propose(acme, NOTE, dream)
        for actor in (dream, key_actor(agent), member_actor(vera), member_actor(mia)):
            with pytest.raises(Refused):
                review.approve(proposal, by=actor, shown=shown(proposal))
            with pytest.raises(Refused):
                review.reject(proposal, by=actor, reason="no")
        assert Note.objects.live().count() == 0


def test_it_decides_once(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        proposal = propose(acme, NOTE, dream)
        review.approve(proposal, by=reviewer, shown=shown(proposal))
        with pytest.raises(review.AlreadyDecided):
            review.approve(proposal, by=reviewer, shown=shown(proposal))
        with pytest.raises(review.AlreadyDecided):
            review.reject(proposal, by=reviewer, reason="late")
        assert Revision.objects.count() == 1


def test_it_refuses_to_approve_a_text_that_was_not_on_the_screen(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        old = propose(acme, NOTE, dream)
        new = propose(acme, NOTE + "- And `-u`\n", dream)
        with pytest.raises(review.StaleProposal):
            review.approve(old, by=reviewer, shown=shown(old))
        with pytest.raises(review.StaleProposal):
            review.approve(new, by=reviewer, shown=shown(old))
        old.refresh_from_db()
    assert old.state == "superseded" and old.text == NOTE and new.public_id in old.decision_reason


def test_it_puts_waiting_proposals_on_top_of_a_newer_text(
    acme: Tenant, dream: Actor, reviewer: Actor, bob: Member, bound: Bound
) -> None:
    """A reviewer has the old text open while a colleague saves: approving must not undo what the colleague wrote."""
    with bound(acme):
        approved(acme, NOTE, by=dream, reviewer=reviewer)
        waiting = propose(acme, NOTE.replace("set -e", "set -eu"), dream)
        on_screen = shown(waiting)
        review.write(acme, path=PATH, text=NOTE + "- Never use -f\n", by=member_actor(bob), base=1)
        with pytest.raises(review.StaleProposal):
            review.approve(waiting, by=reviewer, shown=on_screen)
        waiting.refresh_from_db()
        revision = review.approve(waiting, by=reviewer, shown=shown(waiting))
    assert revision.number == 3
    assert "- Never use -f" in revision.text and "set -eu" in revision.text


def test_it_merges_a_dream_with_what_people_changed(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        approved(acme, NOTE, by=dream, reviewer=reviewer)
        people = NOTE.replace("- Quote every variable", "- Quote every variable, always") + "- Never use -f\n"
        review.write(acme, path=PATH, text=people, by=reviewer, base=1)
        proposal = propose(acme, NOTE + "- Use `trap` to clean up\n", dream)
    assert "- Quote every variable, always" in proposal.text and "- Never use -f" in proposal.text
    assert "- Use `trap` to clean up" in proposal.text and "<<<<" not in proposal.text


def test_it_keeps_the_line_of_people_where_a_dream_rewrites_it(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        approved(acme, NOTE, by=dream, reviewer=reviewer)
        review.write(acme, path=PATH, text=NOTE.replace("set -e", "set -euo pipefail"), by=reviewer, base=1)
        again = review.propose(acme, Draft(PATH, NOTE.replace("set -e", "set -x")), by=dream)
        more = propose(acme, NOTE.replace("set -e", "set -x") + "\n## Loops\n- Use `while read -r`\n", dream)
    assert again is None
    assert "set -euo pipefail" in more.text and "set -x" not in more.text and "while read" in more.text
    assert any(risk["code"] == "gave_way" and "set -x" in risk["reason"] for risk in more.risks)


def test_it_merges_with_the_revision_the_writer_saw(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        review.write(acme, path=PATH, text=NOTE, by=reviewer, base=None)
        review.write(acme, path=PATH, text=NOTE + "- Never use -f\n", by=reviewer, base=1)
        proposal = propose(acme, NOTE.replace("set -e", "set -eu"), dream, base=1)
        with pytest.raises(review.LostUpdate):
            propose(acme, NOTE, dream, base=7)
    assert "- Never use -f" in proposal.text and "set -eu" in proposal.text


def test_it_proposes_nothing_where_nothing_changes(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        first = propose(acme, NOTE, dream)
        assert str(propose(acme, NOTE, dream).pk) == str(first.pk)
        review.approve(first, by=reviewer, shown=shown(first))
        assert review.propose(acme, Draft(PATH, NOTE), by=dream) is None
        assert Proposal.objects.count() == 1


def test_it_does_not_bring_rejected_lines_back(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        approved(acme, NOTE, by=dream, reviewer=reviewer)
        wrong = propose(acme, NOTE + "\n## Deploys\n- Deploy on Fridays\n", dream)
        review.reject(wrong, by=reviewer, reason="we never do")
        assert review.propose(acme, Draft(PATH, NOTE + "\n## Deploys\n-  deploy on FRIDAYS\n"), by=dream) is None
        partly = propose(acme, NOTE + "- Deploy on Fridays\n- Deploy from main\n", dream)
    assert "Fridays" not in partly.text and "- Deploy from main" in partly.text


def test_it_says_nothing_more_of_a_note_that_was_rejected_whole(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        review.reject(propose(acme, NOTE, dream), by=reviewer, reason="no")
        assert review.propose(acme, Draft(PATH, NOTE), by=dream) is None


def test_it_keeps_dreams_away_from_closed_and_deleted_paths(
    acme: Tenant, dream: Actor, reviewer: Actor, agent: Agent, bound: Bound
) -> None:
    with bound(acme):
        review.reject(propose(acme, NOTE, dream), by=reviewer, reason="ours", close_path=True)
        assert review.propose(acme, Draft(PATH, "# Other\n\n- something else\n"), by=dream) is None
        other = "general/other.md"
        review.write(acme, path=other, text="- one\n", by=reviewer, base=None)
        review.delete(Note.objects.get(path=other), by=reviewer, reason="gone")
        assert review.propose(acme, Draft(other, "- two\n"), by=dream) is None
        assert not Note.objects.live().filter(path=other).exists()
        assert propose(acme, "- three\n", key_actor(agent), path=other).base is None
        review.write(acme, path=other, text="- one again\n", by=reviewer, base=None)
        assert review.propose(acme, Draft(other, "- one again\n- two\n"), by=dream) is not None


def test_it_deletes_only_by_a_person_and_brings_the_same_bytes_back(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        first = review.write(acme, path=PATH, text=NOTE, by=reviewer, base=None)
        proposal = propose(acme, "", dream, operation="delete")
        assert proposal.text == NOTE and Note.objects.live().count() == 1
        review.reject(proposal, by=reviewer, reason="needed")
        assert review.propose(acme, Draft(PATH, "", operation="delete"), by=dream) is None
        note = Note.objects.get()
        review.delete(note, by=reviewer, reason="old")
        with pytest.raises(Refused):
            review.delete(note, by=dream, reason="tidy")
        back = review.revert(note, to=first, by=reviewer)
        assert str(Note.objects.live().get().current_id) == str(back.pk)
    assert back.text == NOTE and back.number == 2


def test_it_copies_the_sources_of_lines_that_stay(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        one, two = new_event(acme, 1), new_event(acme, 2)
        evidence = (
            Evidence("- Use `set -e` in scripts", str(one.pk), 1),
            Evidence("- Quote every variable", str(two.pk), 3),
            Evidence("- Quote every variable", str(one.pk), 2),
        )
        proposal = propose(acme, NOTE, dream, evidence=evidence)
        assert proposal.tier == 3
        revision = review.approve(proposal, by=reviewer, shown=shown(proposal))
        assert revision.sources.count() == 3 and revision.tier == 0
        edited = review.write(acme, path=PATH, text="# Flags\n\n- Quote every variable\n- New\n", by=reviewer, base=1)
        kept = list(edited.sources.order_by("tier").values_list("line", "position", "tier"))
        with pytest.raises(review.UnknownEvent):
            propose(acme, "- x\n", dream, path="general/x.md", evidence=(Evidence("- x", ids.new_key(), 1),))
    assert kept == [("- Quote every variable", 3, 2), ("- Quote every variable", 3, 3)]


def test_it_lets_a_reviewer_edit_before_approving(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        event = new_event(acme)
        proposal = propose(acme, NOTE, dream, evidence=(Evidence("- Quote every variable", str(event.pk), 2),))
        text = "# Flags\n\n- Quote every variable\n- Use shellcheck\n"
        revision = review.edit_and_approve(proposal, text=text, by=reviewer, shown=shown(proposal))
        again = propose(acme, NOTE + "- Use `trap`\n", dream)
        assert revision.sources.count() == 1
    assert revision.text == text and revision.author_kind == "member"
    assert "- Use shellcheck" in again.text and "set -e" not in again.text and "- Use `trap`" in again.text


def test_it_refuses_a_lost_update(acme: Tenant, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        review.write(acme, path=PATH, text=NOTE, by=reviewer, base=None)
        with pytest.raises(review.LostUpdate) as without:
            review.write(acme, path=PATH, text="- x\n", by=reviewer, base=None)
        review.write(acme, path=PATH, text=NOTE + "- two\n", by=reviewer, base=1)
        with pytest.raises(review.LostUpdate) as old:
            review.write(acme, path=PATH, text="- x\n", by=reviewer, base=1)
        numbers = list(Revision.objects.order_by("number").values_list("number", flat=True))
    assert (without.value.current, old.value.current, numbers) == (1, 2, [1, 2])


def test_it_has_one_note_for_every_spelling_of_a_path(acme: Tenant, reviewer: Actor, bound: Bound) -> None:
    import unicodedata

    with bound(acme):
        review.write(acme, path="Tools/Bash/Flags.md", text=NOTE, by=reviewer, base=None)
        for spelling in ("tools/bash/flags.md", "tools//bash/./flags.md"):
            with pytest.raises(review.LostUpdate):
                review.write(acme, path=spelling, text="- x\n", by=reviewer, base=None)
        review.write(acme, path="general/Thiết kế.md", text="- a\n", by=reviewer, base=None)
        decomposed = unicodedata.normalize("NFD", "general/thiết kế.md")
        review.write(acme, path=decomposed, text="- b\n", by=reviewer, base=1)
        shown_paths = sorted(Note.objects.values_list("path", flat=True))
    assert shown_paths == ["Tools/Bash/Flags.md", "general/Thiết kế.md"]


@pytest.mark.parametrize(
    "path",
    ["../../other/profile/role.md", "profile/%2e%2e/%2e%2e/x.md", "profile\\..\\x.md", "/etc/passwd", "C:\\x.md",
     "profile/role.md\0.txt", "con.md", f"a/{'b' * 300}.md", ""],
)  # fmt: skip
def test_it_takes_no_path_that_could_leave_its_space(acme: Tenant, dream: Actor, bound: Bound, path: str) -> None:
    with bound(acme):
        with pytest.raises(InvalidPath):
            review.propose(acme, Draft(path, NOTE), by=dream)
        assert Note.objects.count() == 0


def test_it_ties_a_project_note_to_the_project_as_it_stands_after_merges(
    acme: Tenant, dream: Actor, bound: Bound
) -> None:
    with bound(acme):
        whole = Project.objects.create(tenant=acme, slug="payments", name="payments")
        Project.objects.create(tenant=acme, slug="payments-2", name="payments-2", merged_into=whole)
        proposal = propose(acme, NOTE, dream, path="project/payments-2/build.md")
        assert str(proposal.note.project_id) == str(whole.pk)


def test_it_takes_secrets_and_bad_characters_out(acme: Tenant, dream: Actor, bound: Bound) -> None:
    secret = "AKIA" + "Q7ZT3MNB5VXL2WPR"
    with bound(acme):
        proposal = propose(acme, f"- the key is {secret} and\0 more\n", dream, reason=f"saw {secret}")
    assert secret not in proposal.text + proposal.reason and "\0" not in proposal.text
    assert any(risk["code"] == "secret" for risk in proposal.risks)


def test_it_limits_the_size_by_who_writes(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    long = "- line of forty characters, more or less\n" * 120
    with bound(acme):
        with pytest.raises(review.InvalidNote) as refused:
            review.propose(acme, Draft(PATH, long), by=dream)
        review.write(acme, path=PATH, text=long, by=reviewer, base=None)
        with pytest.raises(review.InvalidNote):
            review.write(acme, path=PATH, text=long * 20, by=reviewer, base=1)
    assert refused.value.problems[0].code == "note_too_long" and "4 KB" in str(refused.value)


def test_it_leaves_a_private_space_to_its_member(
    acme: Tenant, dream: Actor, agent: Agent, alice: Member, bob: Member, mia: Member, bound: Bound
) -> None:
    with bound(acme):
        proposal = propose(acme, "- tabs\n", dream, path="profile/style.md", member=mia)
        for stranger in (member_actor(alice), member_actor(bob)):
            with pytest.raises(Refused):
                review.approve(proposal, by=stranger, shown=shown(proposal))
        with pytest.raises(Refused):
            propose(acme, "- spaces\n", key_actor(agent), path="profile/style.md", member=mia)
        with pytest.raises(Refused):
            review.write(acme, path="profile/style.md", text="- x\n", by=member_actor(bob), member=mia, base=None)
        revision = review.approve(proposal, by=member_actor(mia), shown=shown(proposal))
    assert revision.text == "- tabs\n"


def test_it_hides_everything_from_another_team(acme: Tenant, globex: Tenant, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        review.write(acme, path=PATH, text=NOTE, by=reviewer, base=None)
    with bound(globex):
        counts = [model.objects.count() for model in (Note, Revision, Proposal, Source, Tombstone)]
    assert counts == [0, 0, 0, 0, 0]


TEAM = "# Team\n\n*Made by rules, without a model.*\n\n- `make test`: succeeded in 3 of 5 runs.\n- Use tabs\n"
LATER = TEAM.replace("3 of 5", "7 of 9")


def test_it_keeps_out_what_a_person_deleted_before_approving(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        proposal = propose(acme, TEAM, dream)
        review.edit_and_approve(proposal, text="# Team\n\n- Use tabs\n", by=reviewer, shown=shown(proposal))
        # At another place too, where no merge would find it.
        moved = "# Team\n\n- Use tabs\n\n## Commands\n- `make test`: succeeded in 8 of 9 runs.\n"
        assert review.propose(acme, Draft(PATH, moved), by=dream) is None
        again = propose(acme, moved + "- New\n", dream)
    assert "make test" not in again.text and "- New" in again.text


def test_it_keeps_out_what_a_person_deleted_later_and_lets_them_say_it_again(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        approved(acme, TEAM, by=dream, reviewer=reviewer)
        review.write(acme, path=PATH, text="# Team\n\n- Use tabs\n", by=reviewer, base=1)
        assert review.propose(acme, Draft(PATH, "# Team\n\n- `make test`: succeeded in its 1 run.\n"), by=dream) is None
        assert review.propose(acme, Draft(PATH, LATER), by=dream) is None
        review.write(acme, path=PATH, text=TEAM, by=reviewer, base=2)
        assert review.propose(acme, Draft(PATH, TEAM), by=dream) is None
        assert "- New" in propose(acme, TEAM + "- New\n", dream).text


def test_it_keeps_out_what_a_revert_took_away(acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound) -> None:
    with bound(acme):
        first = approved(acme, "# Team\n\n- Use tabs\n", by=dream, reviewer=reviewer)
        approved(acme, TEAM, by=dream, reviewer=reviewer)
        review.revert(Note.objects.get(), to=first, by=reviewer)
        assert review.propose(acme, Draft(PATH, LATER), by=dream) is None


def test_a_dream_may_bring_back_what_only_a_dream_left_out(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        approved(acme, TEAM, by=dream, reviewer=reviewer)
        approved(acme, "# Team\n\n- Use tabs\n", by=dream, reviewer=reviewer)
        assert "make test" in propose(acme, LATER, dream).text
        assert not Tombstone.objects.exists()


def test_it_keeps_a_rejected_line_out_whatever_its_counts(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        review.reject(propose(acme, TEAM, dream), by=reviewer, reason="no")
        assert review.propose(acme, Draft(PATH, LATER), by=dream) is None, "only a heading and a remark are left"
        again = propose(acme, LATER + "- Use port 5433\n", dream)
        assert again.text == "# Team\n\n*Made by rules, without a model.*\n\n- Use port 5433\n"


def test_it_keeps_an_approved_line_as_it_is_where_its_new_count_was_rejected(
    acme: Tenant, dream: Actor, reviewer: Actor, bound: Bound
) -> None:
    with bound(acme):
        approved(acme, TEAM, by=dream, reviewer=reviewer)
        review.reject(propose(acme, LATER, dream), by=reviewer, reason="noise")
        assert review.propose(acme, Draft(PATH, LATER.replace("7 of 9", "8 of 10")), by=dream) is None
