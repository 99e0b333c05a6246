"""`manage.py check_contracts --remember` before a migration and `--verify` after it: same ids, same records."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from memory.tenants.access import DEFAULT_SCOPES
from tests.conftest import Agent, new_agent, served
from tests.graph.made import chain
from tests.graph.proxy import Exchange, spoilt
from tests.graph.test_contracts import check


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def reader(committed: None, alice: Any) -> Agent:
    return new_agent(alice, scopes=["read"])


@pytest.fixture
def writer(api: Callable[[Agent], Any], alice: Any) -> Any:
    return api(new_agent(alice, scopes=[*DEFAULT_SCOPES, "admin"]))


@pytest.fixture
def team(acme: Any, writer: Any) -> dict[str, str]:
    """A chain, with a log in its trigger, and a trigger that was deleted."""
    made = chain(acme)
    log = writer.put(f"triggers/{made['trigger']}/payload?part=full_log", b"\x00\xff\n" * 9, content_type="image/png")
    doomed = {"id": "trg_doomed", "source": "made", "thread": {"id": made["thread"]}, "summary": "doomed"}
    assert (log.status_code, writer.post("triggers", doomed).status_code) == (201, 201)
    assert writer.delete("triggers/trg_doomed").status_code == 200
    return made


@pytest.fixture
def memory(address: str, reader: Agent, team: dict[str, str], tmp_path: Path) -> Path:
    said = check(address, reader.secret, "--remember", tmp_path / "memory.json")
    assert "4 records are remembered in" in said and "left out" not in said
    return tmp_path / "memory.json"


def complaint(address: str, reader: Agent, memory: Path) -> str:
    with pytest.raises(CommandError) as raised:
        check(address, reader.secret, "--verify", memory)
    assert raised.value.returncode == 1
    return str(raised.value)


def test_what_is_the_same_is_verified(
    address: str, reader: Agent, team: dict[str, str], memory: Path, tmp_path: Path
) -> None:
    kept = json.loads(memory.read_text())["records"]
    assert set(kept) == {*team.values(), "trg_doomed"}
    assert set(kept[team["trigger"]]["fields"]) >= {"trigger_id", "summary", "payload payload", "payload full_log"}
    assert kept["trg_doomed"]["status"] == 410
    assert "acme-only" not in memory.read_text()
    said = check(address, reader.secret, "--verify", memory, "--report", "cli,junit", "--output", tmp_path)
    assert "3 hold, 0 broken" in said
    assert 'name="remembered-triggers"' in (tmp_path / "contracts.xml").read_text()


def test_what_a_team_goes_on_with_is_no_loss(
    address: str, reader: Agent, writer: Any, team: dict[str, str], memory: Path
) -> None:
    more = {"source": "made", "thread": {"id": team["thread"]}, "summary": "later"}
    assert writer.post("triggers", more).status_code == 201
    assert writer.put(f"threads/{team['thread']}", {"title": "Another title", "state": "closed"}).status_code == 200
    assert writer.client.patch(
        f"/api/v1/workers/{team['worker']}", {"state": "done"}, content_type="application/json"
    ).json()["state"] == "done"  # fmt: skip
    said = check(address, reader.secret, "--verify", memory)
    assert "3 hold, 0 broken" in said
    assert "3 fields were changed with new events of their threads since: not compared." in said


@pytest.mark.parametrize(("kind", "field"), [("thread", "title"), ("trigger", "summary"), ("worker", "task")])
def test_a_record_that_differs_is_named(
    address: str, reader: Agent, acme: Any, bound: Any, team: dict[str, str], memory: Path, kind: str, field: str
) -> None:
    with bound(acme):
        getattr(acme, f"{kind}s").filter(public_id=team[kind]).update(**{field: "lost in the migration"})
    said = complaint(address, reader, memory)
    assert f"remembered-{kind}s is broken at GET /api/v1/{kind}s/{team[kind]}: expected {field} as remembered" in said


def test_an_id_that_is_lost_or_lives_again_is_named(
    address: str, reader: Agent, writer: Any, team: dict[str, str], memory: Path
) -> None:
    def revive(one: Exchange) -> None:
        if one.path.endswith("/trg_doomed"):
            one.say({"trigger_id": "trg_doomed"}, 200)

    with spoilt(address, revive) as proxied:
        said = complaint(proxied, reader, memory)
    assert "GET /api/v1/triggers/trg_doomed: expected 410 (as it was remembered), got 200" in said
    assert writer.delete(f"workers/{team['worker']}").status_code == 200
    assert f"GET /api/v1/workers/{team['worker']}: expected 200" in complaint(address, reader, memory)


def test_bytes_and_events_are_compared(address: str, reader: Agent, team: dict[str, str], memory: Path) -> None:
    def spoil(one: Exchange) -> None:
        if "part=full_log" in one.target:
            one.body = one.body[:-1] + b"!"

    with spoilt(address, spoil) as proxied:
        assert f"{team['trigger']}: expected payload full_log as remembered" in complaint(proxied, reader, memory)

    def reorder(one: Exchange) -> None:
        if one.path.endswith("/events"):
            one.say(one.json() | {"items": one.json()["items"][::-1]})

    with spoilt(address, reorder) as proxied:
        assert f"{team['thread']}: expected events as remembered" in complaint(proxied, reader, memory)


def test_it_says_what_was_left_out(
    address: str, reader: Agent, team: dict[str, str], acme: Any, tmp_path: Path
) -> None:
    said = check(address, reader.secret, "--remember", tmp_path / "few.json", "--most", 2)
    assert f"left out: records of {team['thread']} after 2 records (--most takes more)" in said
    assert "not remembered: records of" in check(address, reader.secret, "--verify", tmp_path / "few.json")
