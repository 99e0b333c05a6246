"""Vectors: made behind the marks, never mixed, made anew when the model changes, gone with what they are of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from memory.embed.endpoint import Endpoint as By
from memory.graph.models import Thread
from memory.recall import entries, looks, tasks, vectors
from memory.recall.kinds import KINDS, Subject
from memory.recall.models import Entry, Mark, Vector
from memory.tenants import due, rls
from memory.tenants.models import Due, Member, Tenant
from tests import database
from tests.conftest import Agent, new_agent
from tests.embed_server import GOOD, Endpoint, Reply, endpoint
from tests.pages import made


@pytest.fixture
def embedding(settings: Any) -> Iterator[Callable[..., Any]]:
    """Let an endpoint make this installation's vectors while a block runs."""

    @contextmanager
    def using(model: str, script: Any = GOOD, length: int = 64) -> Iterator[Endpoint]:
        with endpoint(script, length) as served:
            settings.EMBED, settings.EMBED_MODEL, settings.EMBED_KEY = served.address, model, ""
            vectors.maker.cache_clear()
            yield served
        vectors.maker.cache_clear()

    yield using
    vectors.maker.cache_clear()


def work(tenant: Tenant) -> None:
    """What the clock, the sweeper and a worker do, one after the other."""
    tasks.find_due()
    for row in due.sweep():
        if row.task == vectors.TASK and row.tenant_pk == str(tenant.pk):
            tasks.read_and_embed(tenant_id=row.tenant_pk, due_id=row.pk)


def threads(tenant: Tenant, *titles: str) -> list[Thread]:
    with rls.tenant_scope(str(tenant.pk)):
        return [Thread.objects.create(tenant=tenant, title=title, summary="") for title in titles]


def made_with(tenant: Tenant) -> set[tuple[str, int]]:
    with rls.tenant_scope(str(tenant.pk)):
        return set(Vector.objects.values_list("made_with", "dimensions"))


def test_a_write_makes_no_vector_and_a_worker_does(acme: Tenant, embedding: Any, bound: Any) -> None:
    with embedding("m1") as served:
        threads(acme, "refund gateway", "blue header")
        assert served.calls == [] and made_with(acme) == set()
        work(acme)
        assert sorted(served.texts) == ["blue header", "refund gateway"]
        assert {made for made, _ in made_with(acme)} == {"m1@127.0.0.1/v1"}
        with bound(acme):
            assert (
                vectors.progress(vectors.maker()).done == 2 and not Mark.objects.exists() and not Due.objects.exists()
            )
        work(acme)
        assert len(served.calls) == 1, "what is done is not done again"


def test_meaning_finds_what_words_do_not(acme: Tenant, agent: Agent, api: Any, embedding: Any) -> None:
    with embedding("m1") as served:
        served.vector = lambda text: [1.0, 0.0] if "cash" in text or "money" in text else [0.0, 1.0]  # type: ignore[method-assign]
        theirs = threads(acme, "cash register", "blue header")[0]
        work(acme)
        [hit] = api(agent).get("search", q="money").json()["items"]
        assert hit["id"] == theirs.public_id and hit["why"] == ["Similar meaning (1.00)"]
        assert api(agent).get("search", q="(").json()["items"] == []


def test_a_new_model_makes_all_anew_and_the_two_are_never_mixed(
    acme: Tenant, agent: Agent, api: Any, embedding: Any
) -> None:
    with embedding("m1"):
        threads(acme, *(f"zebra number {number}" for number in range(40)))
        work(acme)
        assert len(made_with(acme)) == 1
    with embedding("m2") as served:
        hits = api(agent).get("search", q="zebra").json()["items"]
        assert len(hits) == 40 and not any("meaning" in why for hit in hits for why in hit["why"]), (
            "words work meanwhile"
        )
        assert served.texts == ["zebra"]
        work(acme)
        assert made_with(acme) == {("m2@127.0.0.1/v1", 64)}
        hits = api(agent).get("search", q="zebra").json()["items"]
        assert all(any("meaning" in why for why in hit["why"]) for hit in hits)
    with embedding("m3", length=768):
        threads(acme, "saved while the length differs")
        work(acme)
        assert made_with(acme) == {("m3@127.0.0.1/v1", 768)}
        assert len(api(agent).get("search", q="zebra").json()["items"]) == 40


@pytest.mark.parametrize(
    "reply",
    [Reply(500), Reply(429, headers={"Retry-After": "120"}), Reply(cut_at=10), Reply(401), Reply(delay=0.1, cut_at=0)],
)
def test_an_endpoint_that_fails_is_asked_again_later_and_words_go_on(
    acme: Tenant, agent: Agent, api: Any, embedding: Any, bound: Any, reply: Reply
) -> None:
    with embedding("m1", reply):
        threads(acme, "refund gateway")
        work(acme)
        with bound(acme):
            row = Due.objects.get(task=vectors.TASK)
            assert row.owner == "" and not Mark.objects.exists()
            cursor = connection.cursor()
            cursor.execute(
                "SELECT %s - now() > make_interval(secs => %s)", [row.due_at, 100 if reply.status == 429 else 30]
            )
            assert cursor.fetchone()[0]
        assert len(api(agent).get("search", q="gateway").json()["items"]) == 1
    with embedding("m1"), bound(acme):
        Due.objects.update(due_at="2000-01-01T00:00Z")
    with embedding("m1"):
        work(acme)
        assert made_with(acme) == {("m1@127.0.0.1/v1", 64)}


def test_one_passage_that_is_refused_does_not_hold_up_the_others(acme: Tenant, embedding: Any, bound: Any) -> None:
    with embedding("m1", lambda _n, texts: Reply(400) if any("poison" in text for text in texts) else GOOD):
        threads(acme, "one", "two", "poison", "three", "four")
        work(acme)
        assert made_with(acme) == {("m1@127.0.0.1/v1", 64), ("m1@127.0.0.1/v1", 0)}
        with bound(acme):
            assert Vector.objects.filter(embedding=None).count() == 1 and not Due.objects.exists()


def test_vectors_go_with_what_they_are_of(acme: Tenant, embedding: Any, bound: Any, agent: Agent, api: Any) -> None:
    with embedding("m1"):
        keep, change, delete = threads(acme, "keep this", "change this", "delete this")
        work(acme)
        with bound(acme):
            before = dict(Vector.objects.values_list("entry__target", "pk"))
            Thread.objects.filter(pk=change.pk).update(title="changed now")
            Thread.objects.filter(pk=keep.pk).update(state="done", last_seq=7)
        with database.migrator() as purge:
            purge.execute("DELETE FROM graph_thread WHERE id = %s", [delete.pk])
        with bound(acme):
            assert not Entry.objects.filter(target=delete.pk).exists(), "gone in the same transaction"
        work(acme)
        with bound(acme):
            after = {str(target): pk for target, pk in Vector.objects.values_list("entry__target", "pk")}
        old = {str(target): pk for target, pk in before.items()}
        assert set(after) == {str(keep.pk), str(change.pk)}
        assert after[str(keep.pk)] == old[str(keep.pk)] and after[str(change.pk)] != old[str(change.pk)]


def test_meaning_keeps_to_the_team_and_the_member(
    acme: Tenant, globex: Tenant, globex_agent: Agent, mia: Member, vera: Member, api: Any, embedding: Any, agent: Agent
) -> None:
    with embedding("m1"):
        threads(acme, "refund gateway")
        note = made.note(acme, mia, path="profile/refund.md", text="refund gateway of mia\n", is_private=True)
        work(acme)
        assert api(globex_agent).get("search", q="refund gateway").json()["items"] == []
        assert note.public_id not in {h["id"] for h in api(new_agent(vera)).get("search", q="refund").json()["items"]}
        assert note.public_id in {h["id"] for h in api(new_agent(mia)).get("search", q="refund").json()["items"]}
        by = vectors.maker()
        assert isinstance(by, By)
        vector = by.embed(["refund gateway"], kind="query")[0]
        reach = looks.reach_of(str(acme.pk), kinds=KINDS, member_pk=None)
        for tenant, count in ((acme, 1), (globex, 0)):
            with rls.tenant_scope(str(tenant.pk)):
                found = looks.by_meaning(reach, "m1@127.0.0.1/v1", vectors.literal(vector), 64, most=10)
                assert len(found) == count


def test_a_worker_that_lost_its_lease_writes_nothing(acme: Tenant, embedding: Any, bound: Any) -> None:
    def stolen(_n: int, _texts: list[str]) -> Reply:
        with rls.tenant_scope(str(acme.pk)):
            Due.objects.update(owner="another")
        connection.close()
        return GOOD

    with embedding("m1", stolen):
        threads(acme, "refund gateway")
        work(acme)
        assert made_with(acme) == {("", 0)}
        with bound(acme):
            assert Due.objects.get().owner == "another"


def test_a_long_text_has_several_passages() -> None:
    subject = Subject("worker", "x", "Task of it", "\n".join(f"line {number} " + "word " * 30 for number in range(40)))
    made_passages = entries.passages(subject)
    assert len(made_passages) > 3 and all(one.startswith("Task of it\n") and len(one) < 2_100 for one in made_passages)
    assert entries.passages(Subject("thread", "x", "", "")) == []
    assert len(entries.passages(Subject("worker", "x", "", "y" * 100_000))) == entries.MOST_PASSAGES
