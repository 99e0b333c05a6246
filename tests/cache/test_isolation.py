"""Mixed calls of two teams and all scopes: nobody is ever served what another audience stored."""

import random
from typing import Any

import pytest

from tests.cache.asked import call
from tests.conftest import new_agent


def mixed(desks: dict[str, Any], count: int) -> dict[str, int]:
    """Each stored answer names its audience; every hit is compared with the asker's own."""
    chance = random.Random(7)  # noqa: S311 - a fixed order, so that a failure comes again
    seen = {"hit": 0, "miss": 0, "wait": 0}
    for _ in range(count):
        name = chance.choice(sorted(desks))
        team, member = name.split(".")
        scope = chance.choice(["member", "thread", "project"])
        place = {"project": chance.choice(["shop", "blog"]), "thread": chance.choice(["thr_a", "thr_b"])}
        owner = {"member": member, "thread": place["thread"], "project": place["project"]}[scope]
        body = call(context={**place, "scope": scope}, content_hash=f"sha256:{chance.randrange(3)}")
        expected = f"{team} {scope} {owner} {body['content_hash']}"
        said = desks[name].post("cache/tools/lookup", body).json()
        seen[said["status"]] += 1
        if said["status"] == "hit":
            assert said["result"] == expected
        else:
            desks[name].put(f"cache/tools/{said['key']}", {"lease": said["lease"], "result": expected})
    return seen


@pytest.fixture
def desks(alice: Any, bob: Any, charlie: Any, api: Any) -> dict[str, Any]:
    people = {"acme.alice": alice, "acme.bob": bob, "globex.charlie": charlie}
    return {name: api(new_agent(member)) for name, member in people.items()}


def test_no_hit_crosses_a_team_or_a_scope(desks: dict[str, Any]) -> None:
    seen = mixed(desks, 500)
    assert seen["hit"] > 300 and seen["miss"] <= 27 * 2


@pytest.mark.slow
def test_ten_thousand_mixed_calls(desks: dict[str, Any]) -> None:
    assert mixed(desks, 10_000)["hit"] > 9_000
