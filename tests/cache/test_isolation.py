"""Mixed calls of two teams, all scopes and all caches: nobody is ever served what another audience stored."""

import random
from collections import Counter
from typing import Any

import pytest

from cache_admin import pairs, policies
from memory.tenants import rls
from memory.tenants.access import command_actor
from tests.cache.asked import call
from tests.conftest import new_agent

WORDS = ("restart the checkout service", "rotate the signing key", "read the build log")


def mixed(desks: dict[str, Any], count: int) -> Counter[str]:
    """Each stored answer names its audience; every hit is compared with the asker's own. Counts `kind status`."""
    chance = random.Random(7)  # noqa: S311 - a fixed order, so that a failure comes again
    seen: Counter[str] = Counter()
    results: dict[str, list[tuple[str, str, bool]]] = {}
    for _ in range(count):
        name = chance.choice(sorted(desks))
        kind = chance.choices(["tool", "question", "analysis", "result"], [6, 2, 1, 1])[0]
        if kind == "analysis":
            seen[f"analysis {_analysis(desks[name], name, chance)}"] += 1
            continue
        if kind == "result":
            seen[f"result {_result(desks, name, results, chance)}"] += 1
            continue
        team, member = name.split(".")
        scope = chance.choice(["member", "thread", "project", "team"])
        place = {"project": chance.choice(["shop", "blog"]), "thread": chance.choice(["thr_a", "thr_b"])}
        owner = {"member": member, "thread": place["thread"], "project": place["project"], "team": "all"}[scope]
        if kind == "tool":
            body = call(context={**place, "scope": scope}, content_hash=f"sha256:{chance.randrange(3)}")
            about, door = body["content_hash"], "cache/tools/lookup"
        else:
            about, door = chance.choice(WORDS), "cache/semantic/lookup"
            asked = chance.choice(["how do I {}?", "how can I {}?", "How do I {}"]).format(about)
            body = {"tool": "ask", "query": asked, "context": {**place, "scope": scope}}
        expected = f"{team} {scope} {owner} {about}"
        said = desks[name].post(door, body).json()
        seen[f"{kind} {said['status']}"] += 1
        if said["status"] == "hit":
            assert said["result"] == expected
            results.setdefault(said["result_id"], []).append((team, member, scope == "member"))
        elif "lease" in said:
            desks[name].put(f"cache/tools/{said['key']}", {"lease": said["lease"], "result": expected})
    return seen


def _analysis(desk: Any, name: str, chance: random.Random) -> str:
    """An analysis is its whole team's, and no other team's."""
    team, digest = name.split(".")[0], f"sha256:{chance.randrange(5)}"
    item = {"content_hash": digest, "analysis_type": "summary", "version": "1"}
    [said] = desk.post("cache/analyses/lookup", {"items": [item]}).json()["items"]
    if said["status"] == "hit":
        assert said["analysis"] == f"{team} {digest}"
    else:
        desk.put(f"cache/analyses/{digest}/summary", {"version": "1", "analysis": f"{team} {digest}"})
    return str(said["status"])


def _result(
    desks: dict[str, Any], name: str, known: dict[str, list[tuple[str, str, bool]]], chance: random.Random
) -> str:
    """A result's id opens it to its own team alone, and a member's own to that member."""
    if not known:
        return "none"
    result_id = chance.choice(sorted(known))
    team, member, is_private = known[result_id][0]
    may = team == name.split(".")[0] and (not is_private or member == name.split(".")[1])
    status = desks[name].get(f"results/{result_id}").status_code
    assert status == (200 if may else 404)
    return str(status)


@pytest.fixture
def desks(alice: Any, bob: Any, charlie: Any, api: Any) -> dict[str, Any]:
    people = {"acme.alice": alice, "acme.bob": bob, "globex.charlie": charlie}
    return {name: api(new_agent(member)) for name, member in people.items()}


@pytest.fixture(autouse=True)
def served(acme: Any, globex: Any) -> None:
    """Both teams share file contents and answers to questions as far as a caller asks for, other words included."""
    same = [(f"how do I start {name}", f"how can I start {name}", True, 0.95) for name in "abcdefghijklmnop"]
    other = [(f"how do I start {name}", f"how do I stop {name}", False, 0.95) for name in "abcdef"]
    for tenant in (acme, globex):
        with rls.tenant_scope(str(tenant.pk)):
            by = command_actor(tenant, "tests")
            pairs.add(tenant, "ask", [*same, *other], by=by)
            policies.save(tenant, "read_file", by=by, scope="team")
            policies.save(
                tenant, "ask", by=by, mode="serve", ttl_s=86_400, worst_outcome="nothing", semantic=True, scope="team"
            )


def test_no_hit_crosses_a_team_or_a_scope(desks: dict[str, Any]) -> None:
    seen = mixed(desks, 500)
    assert seen["tool hit"] > 180 and seen["question hit"] > 40 and seen["analysis hit"] > 30
    assert seen["result 200"] and seen["result 404"]


@pytest.mark.slow
def test_ten_thousand_mixed_calls(desks: dict[str, Any]) -> None:
    seen = mixed(desks, 10_000)
    assert seen["tool hit"] > 5_700 and seen["question hit"] > 1_800 and seen["analysis hit"] > 900, seen
    assert seen["result 404"] > 300, seen
