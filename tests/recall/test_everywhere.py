"""Search over everything, through its door: what is found, why, by whom, and what is not."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.events.models import Project, ProjectRoot
from memory.graph.models import Citation, Link, Thread, Trigger, Worker
from memory.notes import review
from memory.notes.models import Note
from memory.recall.models import Entry, Mark
from memory.tenants import rls
from memory.tenants.access import member_actor
from memory.tenants.models import Member, Tenant
from tests.conftest import Agent, new_agent
from tests.pages import made


@pytest.fixture(autouse=True)
def by_words_alone(settings: Any) -> None:
    """Meaning has tests of its own; here each answer must come from the words."""
    from memory.recall import vectors

    settings.EMBED = "off"
    vectors.maker.cache_clear()


def thread(tenant: Tenant, key: str, title: str = "", summary: str = "", **more: Any) -> Thread:
    with rls.tenant_scope(str(tenant.pk)):
        return Thread.objects.create(tenant=tenant, key=key, title=title, summary=summary, **more)


def trigger(of: Thread, seq: int, summary: str, **more: Any) -> Trigger:
    with rls.tenant_scope(str(of.tenant_id)):
        given = {"source": "github", **more}
        return Trigger.objects.create(tenant_id=of.tenant_id, thread=of, seq=seq, summary=summary, **given)


def worker(of: Thread, report: str, **more: Any) -> Worker:
    with rls.tenant_scope(str(of.tenant_id)):
        return Worker.objects.create(tenant_id=of.tenant_id, thread=of, report=report, **{"task": "Mend it", **more})


@pytest.fixture
def payments(acme: Tenant) -> Thread:
    made_thread = thread(acme, "github:acme/payments#412", "Retry refunds", "Refunds are tried again")
    trigger(made_thread, 1, "CI failed: test_refund_gateway timed out after 30 s")
    worker(made_thread, "The gateway answered twice.\nSo every call carries an idempotency key.")
    return made_thread


@pytest.fixture
def ask(api: Any, agent: Agent) -> Callable[..., list[dict[str, Any]]]:
    def asking(q: str, **query: Any) -> list[dict[str, Any]]:
        answer = api(query.pop("by", agent)).get("search", q=q, **query)
        assert answer.status_code == 200, answer.content
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    return asking


def test_it_finds_each_kind_and_says_why(ask: Any, payments: Thread, acme: Tenant, alice: Member) -> None:
    made.note(acme, alice, path="general/refunds.md", text="# Refunds\n\n- Refunds need the ledger lock\n")
    event = made.event(made.session(acme), summary="why do refunds wait for the ledger?")
    [hit] = ask("idempotency key")
    assert hit["kind"] == "worker" and hit["thread_id"] == payments.public_id and hit["title"] == "Mend it"
    assert "Holds the very text" in hit["why"] and any(why.startswith("Words: ") for why in hit["why"])
    assert ask("timed out")[0]["kind"] == "trigger"
    assert ask("retry refunds")[0]["id"] == payments.public_id
    assert {hit["kind"] for hit in ask("ledger")} == {"note", "event"}
    assert ask("ledger", kinds="event")[0]["id"] == event.public_id
    assert {hit["kind"] for hit in ask("refunds", kinds="note,threads")} == {"note", "thread"}
    assert ask("ledger lock")[0]["path"] == "team/general/refunds.md"


@pytest.mark.parametrize(
    ("q", "why"),
    [
        ("#412", "Has this number"), ("acme/payments#412", "Has this number"), ("what of #412?", "Has this number"),
        ("github:acme/payments#412", "Has this key"), ("https://github.com/acme/payments/pull/412", "Has this key"),
        ("see https://github.com/acme/payments/issues/412.", "Has this key"), ("ID", "Has this id"),
        ("what is `ID`, please", "Has this id"),
    ],
)  # fmt: skip
def test_what_the_question_names_comes_first(ask: Any, acme: Tenant, payments: Thread, q: str, why: str) -> None:
    for number in range(413, 418):
        thread(acme, f"github:acme/other#{number}", f"what of 412, please {number}", "acme payments github pull 412")
    first = ask(q.replace("ID", payments.public_id))[0]
    assert first["id"] == payments.public_id and first["why"][0] == why and first["score"] == 1.0


def test_ids_of_every_kind_are_found(ask: Any, payments: Thread, acme: Tenant, alice: Member, bound: Any) -> None:
    event = made.event(made.session(acme), summary="a prompt")
    note = made.note(acme, alice, path="general/refunds.md", text="# Refunds\n\n- x\n")
    with bound(acme):
        others = [Trigger.objects.get().public_id, Worker.objects.get().public_id]
    for public_id in (payments.public_id, note.public_id, event.public_id, *others):
        assert ask(public_id)[0]["id"] == public_id
    assert ask("general/refunds.md")[0]["id"] == note.public_id
    assert ask("thr_nothing") == [] and ask("trg_" + "0" * 26) == []
    assert ask(payments.public_id, kinds="note") == []


ODD = (
    "Never run rm -rf on build. Don't use C++ tricks, nor C#. Who is on call?"
    " see src/app/views.py, getUserToken, v1.2.3, ORA-01555"
)


@pytest.mark.parametrize(
    "q",
    ["rm -rf", "don't", "C++", "C#", "who is on", "src/app/views.py", "views", "token", "1.2.3", "01555", "(build)",
     "build &",
     '"tricks', "tricks!!! ???", "NOT build", "build:*", "user_token", "-rf", "%build%", "build\\", "🚀 build",
     "buidl tricsk"],
)  # fmt: skip
def test_punctuation_and_operators_are_only_text(ask: Any, payments: Thread, q: str) -> None:
    trigger(payments, 2, ODD)
    assert ODD in [hit["summary"] for hit in ask(q)]


@pytest.mark.parametrize(
    "q", ["foo:bar", "(", "%", "", " ", "🚀", "_", "the", "' OR 1=1 --", "\\", "\ufffd", "<script>",
     "&|!()", "\n\t", '"""']
)  # fmt: skip
def test_what_says_nothing_finds_nothing(ask: Any, payments: Thread, q: str) -> None:
    trigger(payments, 2, ODD)
    assert ask(q) == []


def test_a_long_question_is_cut_and_a_nul_refused(ask: Any, api: Any, agent: Agent, payments: Thread) -> None:
    assert ask("refund gateway timed out " + "lorem ipsum dolor " * 600)[0]["kind"] == "trigger"
    for raw in ("q=%00", "q=a%00b"):
        assert api(agent).get(f"search?{raw}").json()["code"] == "invalid_parameter"
    assert api(agent).get("search?q=%ff%fe").status_code == 200


@pytest.mark.parametrize(
    ("q", "text"),
    [
        ("đăng nhập", "Sửa lỗi đăng nhập khi token hết hạn"), ("ĐĂNG NHẬP", "Sửa lỗi đăng nhập khi token hết hạn"),
        (unicodedata.normalize("NFD", "đăng nhập"), "Sửa lỗi đăng nhập khi token hết hạn"),
        ("dang nhap", "Sửa lỗi đăng nhập khi token hết hạn"), ("数据库", "项目使用PostgreSQL数据库存储日志"),
        ("東京", "東京カンファレンスの議事録"), ("البيانات", "قاعدة البَيَانَات بطيئة"),
    ],
)  # fmt: skip
def test_it_reads_every_script(ask: Any, payments: Thread, q: str, text: str) -> None:
    for seq, other in enumerate(("Sửa lỗi đăng nhập khi token hết hạn", "项目使用PostgreSQL数据库存储日志",
                                 "東京カンファレンスの議事録", "قاعدة البَيَانَات بطيئة"), start=2):  # fmt: skip
        trigger(payments, seq, other)
    assert [hit["summary"] for hit in ask(q)] == [text]


def test_the_snippet_is_centred_on_the_hit(ask: Any, payments: Thread) -> None:
    worker(payments, "padding words here. " * 200 + "The zebra crossed. " + "more padding there. " * 200)
    [hit] = ask("zebra")
    assert "zebra" in hit["snippet"] and len(hit["snippet"]) < 260 and hit["snippet"].startswith("…")


def test_it_reads_again_what_changed_and_forgets_what_went(
    ask: Any, payments: Thread, bound: Any, acme: Tenant
) -> None:
    assert ask("idempotency")
    with bound(acme):
        Worker.objects.update(report="Nothing but lions")
        Thread.objects.filter(pk=payments.pk).update(summary="Of giraffes")
    assert ask("idempotency") == [] and ask("lions")[0]["kind"] == "worker" and ask("giraffes")[0]["kind"] == "thread"
    with bound(acme):
        Trigger.objects.update(deleted_at=timezone.now())
    assert ask("timed") == []
    with bound(acme):
        Thread.objects.filter(pk=payments.pk).update(deleted_at=timezone.now())
    assert ask("giraffes") == [] and ask("#412") == []
    with bound(acme):
        assert not Entry.objects.filter(kind__in=("trigger", "thread")).exists() and not Mark.objects.exists()


def test_a_deleted_note_is_not_found(ask: Any, acme: Tenant, bob: Member, bound: Any) -> None:
    note = made.note(acme, bob, path="general/zebra.md", text="zebra of all\n")
    assert ask("zebra")[0]["id"] == note.public_id
    with bound(acme):
        review.delete(Note.objects.get(), by=member_actor(bob), reason="gone")
    assert ask("zebra") == [] and ask(note.public_id) == [] and ask("general/zebra.md") == []


def test_what_waits_for_a_person_is_not_found(ask: Any, acme: Tenant) -> None:
    made.proposal(acme, path="general/zebra.md", text="# Zebra\n\n- zebra proposed\n")
    assert ask("zebra") == []


def test_a_team_finds_nothing_of_another(ask: Any, payments: Thread, globex: Tenant, globex_agent: Agent) -> None:
    thread(globex, "github:globex/shop#412", "Refunds of globex", "gateway")
    for q in (
        "#412",
        "gateway",
        "refunds",
        payments.public_id,
        "github:acme/payments#412",
        "idempotency key",
        "refnds",
    ):
        found = ask(q, by=globex_agent)
        assert {hit["title"] for hit in found} <= {"Refunds of globex"}, q
    answer = Client(headers={**globex_agent.headers, "X-Tenant": "acme"}).get("/api/v1/search?q=idempotency")
    assert answer.json()["items"] == []


def test_the_functions_themselves_keep_to_the_bound_team(
    payments: Thread, globex: Tenant, agent: Agent, ask: Any
) -> None:
    """They run past row level security: what limits them is written in them."""
    from memory.recall import looks
    from memory.recall.kinds import KINDS

    assert ask("gateway")
    for tenant in (globex, None):
        reach = looks.reach_of(str(payments.tenant_id), kinds=KINDS, member_pk=None)
        with rls.tenant_scope(str(tenant.pk) if tenant else rls.NIL):
            assert looks.by_words(reach, ["gateway"], is_all=False, most=10) == []
            assert looks.by_text(reach, "gateway", most=10) == []
            assert looks.by_spelling(["gatewey"], 0.3) == {}


def test_private_notes_are_found_by_their_member_only(
    ask: Any, acme: Tenant, mia: Member, vera: Member, alice: Member
) -> None:
    note = made.note(acme, mia, path="profile/zebra.md", text="zebra of mia\n", is_private=True)
    assert ask("zebra", by=new_agent(mia))[0]["path"] == "members/mia/profile/zebra.md"
    for other in (vera, alice):
        for q in ("zebra", note.public_id, "profile/zebra.md", "zebar mia"):
            assert ask(q, by=new_agent(other)) == [], q


def test_a_project_limits_what_is_found(
    ask: Any, api: Any, agent: Agent, acme: Tenant, bob: Member, bound: Any
) -> None:
    one, two = made.project(acme, "one"), made.project(acme, "two")
    with bound(acme):
        ProjectRoot.objects.create(tenant=acme, project=one, kind="remote", place="github.com/acme/one")
        ProjectRoot.objects.create(tenant=acme, project=two, kind="remote", place="github.com/acme/two")
    thread(acme, "github:acme/one#1", "zebra one")
    theirs = thread(acme, "github:acme/two#1", "zebra two")
    worker(theirs, "zebra report")
    made.note(acme, bob, path="general/zebra.md", text="---\ntitle: zebra\n---\nzebra for all\n")
    made.note(acme, bob, path="project/two/zebra.md", text="zebra of two\n")
    made.note(acme, bob, path="project/three/zebra.md", text="zebra of three\n")
    assert len(ask("zebra")) == 6
    assert {hit["title"] for hit in ask("zebra", project=one.public_id)} == {"zebra one", "zebra"}
    assert len(ask("zebra", project="two")) == 4
    assert len(ask("zebra", thread=theirs.public_id)) == 2
    with bound(acme):
        Project.objects.filter(pk=two.pk).update(merged_into=one)
    assert len(ask("zebra", project="one")) == 5
    for wrong in ("prj_none", "four", "\ufffd"):
        assert api(agent).get("search", q="zebra", project=wrong).status_code == 404
    assert api(agent).get("search", q="zebra", thread="thr_none").status_code == 404


def test_the_walk_adds_what_hits_are_linked_with(ask: Any, acme: Tenant, payments: Thread, bound: Any) -> None:
    cause = thread(acme, "github:acme/gateway#7", "Timeouts of the bank", "Their side")
    hidden = thread(acme, "github:acme/gateway#8", "Something else", "Gone", deleted_at=timezone.now())
    with bound(acme):
        for other in (cause, hidden):
            Link.objects.create(tenant=acme, from_thread=payments, to_thread=other, kind="mentions", made_by="rule")
        Citation.objects.create(
            tenant=acme, worker=Worker.objects.get(), cited=Trigger.objects.get().public_id, position=0, origin="given"
        )
    assert ask("retry refunds")[0]["id"] == payments.public_id
    followed = {hit["id"]: hit["why"] for hit in ask("retry refunds", follow="1")}
    assert f"Linked with {payments.public_id}" in followed[cause.public_id] and hidden.public_id not in followed
    assert {hit["kind"] for hit in ask("idempotency key", follow="1")} == {"worker", "thread", "trigger"}
    assert {hit["kind"] for hit in ask("idempotency key", follow="1", kinds="worker")} == {"worker"}


def test_pages_follow_each_other(api: Any, agent: Agent, payments: Thread, ask: Any) -> None:
    for seq in range(2, 12):
        trigger(payments, seq, f"zebra number {seq}")
    whole = [hit["id"] for hit in ask("zebra")]
    seen, cursor = [], {}
    for _ in range(4):
        page = api(agent).get("search", q="zebra", limit=3, **cursor).json()
        seen += [hit["id"] for hit in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
    assert seen == whole and len(set(whole)) == 10 and not page["has_more"]
    assert api(agent).get("search", q="other", limit=3, **cursor).json()["code"] == "invalid_cursor"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "missing_parameter"), ({"q": "a", "kinds": "people"}, "invalid_kinds"),
        ({"q": "a", "kinds": ""}, "invalid_kinds"),
        ({"q": "a", "follow": "yes"}, "invalid_follow"), ({"q": "a", "limit": "0"}, "invalid_limit"),
        ({"q": "a", "limit": "1000"}, "invalid_limit"), ({"q": "a", "offset": "5"}, "unknown_parameter"),
        ({"q": "a", "cursor": ""}, "invalid_cursor"), ({"q": "a", "cursor": "zzzz"}, "invalid_cursor"),
        ({"q": "a", "tenant": "acme"}, "unknown_parameter"),
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_request(api: Any, agent: Agent, query: dict[str, str], code: str) -> None:
    answer = api(agent).get("search", **query)
    assert answer.status_code == 400 and answer.json()["code"] == code
    assert answer["Content-Type"] == "application/problem+json"


def test_it_needs_a_key_that_may_read(api: Any, alice: Member, payments: Thread) -> None:
    assert Client().get("/api/v1/search?q=a").status_code == 401
    answer = api(new_agent(alice, scopes=["ingest"])).get("search", q="a")
    assert answer.status_code == 403 and answer.json()["code"] == "forbidden"
    assert api(new_agent(alice)).post("search", {}).status_code == 405
