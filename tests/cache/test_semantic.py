"""POST /api/v1/cache/semantic/lookup: served from the nearest question of the same space, past the guard."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from cache_admin import pairs, policies, seen, semantic
from cache_admin.clean import clean
from cache_admin.models import Decision, Entry, Lookup, Pair
from cache_admin.policy import InvalidPolicy
from memory.tenants import rls
from memory.tenants.access import command_actor
from memory.tenants.models import Due
from tests.conftest import new_agent

TOOL = "ask_docs"


def answered(tool: str = TOOL, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "query": "How to enable debug logs?", "context": {"project": "shop"}, **more}


def labels(tenant: Any, tool: str = TOOL) -> None:
    by = command_actor(tenant, "tests")
    same = [(f"how do I start job {name}", f"how can I start job {name}", True, 0.95) for name in "abcdefghijklmnop"]
    other = [(f"how do I start {name}", f"how do I stop {name}", False, 0.95) for name in "abcdef"]
    pairs.add(tenant, tool, [*same, *other], by=by)


@pytest.fixture
def served(acme: Any) -> Any:
    """acme serves the tool's answers for a day, and near questions too."""
    with rls.tenant_scope(str(acme.pk)):
        by = command_actor(acme, "tests")
        labels(acme)
        policies.save(
            acme, TOOL, by=by, mode="serve", ttl_s=86_400, worst_outcome="nothing", semantic=True, scope="project"
        )
    return acme


@pytest.fixture
def desk(agent: Any, api: Any, served: Any) -> Any:
    if semantic.maker() is None:
        pytest.fail("the local embedder is part of the test environment")
    return api(agent)


def look(desk: Any, body: dict[str, Any]) -> dict[str, Any]:
    answer = desk.post("cache/semantic/lookup", body)
    assert answer.status_code == 200, answer.content
    said: dict[str, Any] = answer.json()
    return said


def teach(desk: Any, body: dict[str, Any], result: str = "Set LOG_LEVEL to debug.") -> None:
    missed = look(desk, body)
    assert missed["status"] == "miss", missed
    put = desk.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": result})
    assert put.status_code == 201


def test_other_words_for_the_same_question_are_served(desk: Any, acme: Any, bound: Any) -> None:
    teach(desk, answered())
    same = look(desk, answered(query="how to  enable debug logs"))
    assert (same["status"], same["result"]) == ("hit", "Set LOG_LEVEL to debug.")
    assert same["matched_query"] == "How to enable debug logs?" and same["score"] >= 0.92
    thanks = look(desk, answered(query="Hi, how to enable debug logs? Thanks!"))
    assert thanks["status"] == "hit" and thanks["matched_query"] == "How to enable debug logs?"
    with bound(acme):
        assert Lookup.objects.filter(kind="semantic", status="hit").count() == 2
        [entry] = Entry.objects.all()
        assert seen.hits([entry]) == {str(entry.result_id): 2}


def test_the_index_finds_what_the_exact_scan_finds(
    desk: Any, acme: Any, bound: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        teach(desk, answered(query=f"how do I restart service {'abcdefghijkl'[number] * 3}?"))
    with bound(acme):
        [(space, vector)] = _spaces()
        exact = semantic.nearest(space, vector)
    monkeypatch.setattr(semantic, "_large", {bytes.fromhex(space)})
    with bound(acme):
        assert [one.asked for one in semantic.nearest(space, vector)] == [one.asked for one in exact]
        assert len(exact) == semantic.CANDIDATES
        Entry.objects.filter(pk=exact[0].entry_pk).update(expires_at=timezone.now() - timedelta(days=1))
        assert [one.asked for one in semantic.nearest(space, vector)][:4] == [one.asked for one in exact][1:]


def _spaces() -> list[tuple[str, list[float]]]:
    """Each space with the vector of one of its questions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT ON (space) encode(space, 'hex'), embedding::text FROM cache_admin_question")
        return [(space, [float(one) for one in text[1:-1].split(",")]) for space, text in cursor.fetchall()]


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("How to enable debug logs?", "How to disable debug logs?"),
        ("Is port 6379 open by default?", "Is port 6379 closed by default?"),
        ("retry after 3 days", "retry after 30 days"),
        ("config of service-auth in staging", "config of service-auth in prod"),
        ("Python 3.11 changelog", "Python 3.12 changelog"),
        ("who reviews An's PR", "who reviews Binh's PR"),
        ("cách bật log", "cách tắt log"),
    ],
)
def test_the_opposite_the_other_number_and_the_other_name_miss(desk: Any, known: str, asked: str) -> None:
    teach(desk, answered(query=known), f"about {known}")
    said = look(desk, answered(query=asked))
    assert said["status"] == "miss" and said["matched_query"] == known
    assert said["reason"].startswith("guard_") and said["guard"]


def test_each_comparison_is_logged_with_its_best_score(
    desk: Any, acme: Any, logged_in: Any, vera: Any, bound: Any
) -> None:
    teach(desk, answered())
    look(desk, answered(query="how to enable debug logs please"))
    for _ in range(2):
        look(desk, answered(query="How to disable debug logs?"))
    look(desk, answered(query="Who won the cup in 1974?"))
    with bound(acme):
        rows = [(one.outcome, one.matched, one.score and one.score > 0.5) for one in Decision.objects.order_by("at")]
        first = "How to enable debug logs?"
        assert rows[:3] == [("no_question", "", None), ("served", first, True), ("guard_antonym", first, True)]
        assert rows[-1][0] in ("below_threshold", "guard_number") and pairs.waiting(acme).count() == 1
    said = logged_in(vera).get(f"/t/acme/caches/similar/?tool={TOOL}").content.decode()
    assert "What became of questions" in said and "the guard: opposite words" in said and "1974" in said
    with bound(acme):
        Decision.objects.update(at=timezone.now() - timedelta(days=31))
        clean(acme)
        assert not Decision.objects.exists()


def test_what_is_near_waits_for_a_person(desk: Any, acme: Any, bound: Any) -> None:
    teach(desk, answered())
    look(desk, answered(query="How to disable debug logs?"))
    with bound(acme):
        [pair] = pairs.waiting(acme)
        assert (pair.asked, pair.matched) == ("How to disable debug logs?", "How to enable debug logs?")
        assert pair.guard == "antonym" and not pair.was_served
        assert Due.objects.filter(task="cache_pairs").count() == 1, "on Monday the inbox says so"


def test_nothing_crosses_its_space(desk: Any, bob: Any, globex: Any, globex_agent: Any, api: Any) -> None:
    with rls.tenant_scope(str(globex.pk)):
        labels(globex)
        policies.save(
            globex, TOOL, by=command_actor(globex, "t"), mode="serve", ttl_s=60, worst_outcome="nothing", semantic=True
        )
    question = "what is our deploy password policy?"
    teach(desk, answered(query=question))
    assert look(api(globex_agent), answered(query=question))["status"] == "miss"
    for more in (
        {"parameters": {"system": "other prompt"}},
        {"parameters": {"model": "m2"}},
        {"parameters": {"temperature": 1}},
        {"context": {"project": "other"}},
        {"context": {"project": "shop", "scope": "member"}},
        {"context": {"project": "shop", "environment": {"lang": "vi"}}},
        {"version": "2"},
        {"server": "git"},
    ):
        said = look(desk, answered(query=question, **more))
        assert said["status"] == "miss" and "matched_query" not in said, more
    assert look(api(new_agent(bob)), answered(query=question))["status"] == "hit"


def test_a_tool_without_its_own_labels_is_never_served(agent: Any, api: Any, acme: Any, bound: Any) -> None:
    by = command_actor(acme, "tests")
    fine = {"mode": "serve", "ttl_s": 60, "worst_outcome": "nothing"}
    with bound(acme), pytest.raises(InvalidPolicy, match="Label at least 20 pairs"):
        policies.save(acme, TOOL, by=by, semantic=True, **fine)
    with bound(acme):
        policies.save(acme, TOOL, by=by, **fine)
    desk = api(agent)
    teach(desk, answered())
    said = look(desk, answered(query="Hi, how to enable debug logs? Thanks!"))
    assert (said["status"], said["reason"]) == ("miss", "semantic_off")
    assert look(desk, answered(query="how to enable  debug logs?"))["status"] == "hit"  # the very same words


def test_without_an_embedder_it_steps_aside(agent: Any, api: Any, served: Any, settings: Any) -> None:
    settings.EMBED = "off"
    semantic.maker.cache_clear()
    try:
        assert look(api(agent), answered()) == {"status": "bypass", "reason": "embedder_off"}
    finally:
        semantic.maker.cache_clear()


def test_it_needs_a_key_a_scope_and_a_role(committed: None, alice: Any, vera: Any, api: Any) -> None:
    path = "cache/semantic/lookup"
    assert Client().post(f"/api/v1/{path}", {}, content_type="application/json").status_code == 401
    for who in (new_agent(alice, scopes=["read"]), new_agent(vera)):
        assert api(who).post(path, answered()).status_code == 403
    assert api(new_agent(alice)).get(path).status_code == 405


@pytest.mark.parametrize(
    "body", [{}, {"tool": TOOL}, {"tool": TOOL, "query": " "}, {"tool": TOOL, "query": "x" * 2_001}]
)
def test_it_says_what_is_wrong(agent: Any, api: Any, body: dict[str, Any]) -> None:
    answer = api(agent).post("cache/semantic/lookup", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_field")


def test_a_person_decides_on_a_pair(acme: Any, vera: Any, alice: Any, bound: Any) -> None:
    from memory.tenants.access import Refused, member_actor

    with bound(acme):
        pair = Pair.objects.create(tenant=acme, tool=TOOL, asked="a", matched="b", score=0.9)
        with pytest.raises(Refused):
            pairs.decide(acme, str(pair.pk), "same", by=member_actor(vera))
        pairs.decide(acme, str(pair.pk), "different", by=member_actor(alice))
        assert not pairs.waiting(acme).exists()
        assert [one.same for one in pairs.judged(acme, TOOL)] == [False]


def test_thresholds_are_proposed_from_labels() -> None:
    same = [pairs.Judged(0.86 + step / 200, True, True) for step in range(20)]
    other = [pairs.Judged(0.80 + step / 100, False, True) for step in range(10)]
    assert pairs.proposed([*same, *other]) == 0.9
    assert pairs.at([*same, *other], 0.9).precision == 1.0
    assert pairs.proposed(same) is None
    assert pairs.warning(0.8) and pairs.warning(0.98) and not pairs.warning(0.92)
