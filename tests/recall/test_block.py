"""GET /api/v1/notes/block: a space's notes as one block of markdown."""

import re
from typing import Any

import pytest

from memory.recall import block
from memory.recall.block import digest, written
from memory.recall.compose import Candidate
from memory.recall.envelope import size
from tests.conftest import Agent, new_agent
from tests.pages import made

HERE = "notes/block"
PART = re.compile(r"^<!-- (\S+)(?: revision=\d+)? sha256=(\S+) -->\n(.*?)(?=\n\n<!-- |\Z)", re.MULTILINE | re.DOTALL)


def candidate(number: int, text: str | None = "x\n", **more: Any) -> Candidate:
    said = {"path": f"general/n{number}.md", "title": f"N{number}", "description": "", "why": "", "tier": 0}
    return Candidate(
        note_id=f"nte_{number}", revision_id="rev_1", number=1, source_count=0, text=text, **{**said, **more}
    )


def test_every_part_is_known_again_by_its_digest() -> None:
    text = written([candidate(1, "# N1\n\nfirst  \r\nsecond\r\n"), candidate(2, "third\n"), candidate(3, None)])
    parts = {name: (given, words) for name, given, words in PART.findall(text)}
    assert list(parts) == ["about", "nte_1", "nte_2", "more"]
    assert all(digest(words) == given for given, words in parts.values())
    assert parts["nte_1"][1] == "### N1 (`general/n1.md`)\n\nfirst  \nsecond"
    assert "general/n3.md [nte_3]" in parts["more"][1]


@pytest.mark.parametrize("budget", [block.LEAST, 2_500, block.USUAL, block.MOST])
@pytest.mark.parametrize("letter", ["a", "ệ", "😀"])
def test_it_is_never_longer_than_asked(budget: int, letter: str) -> None:
    notes = [candidate(number, letter * (number % 9) * 120 + "\n", description=letter * 90) for number in range(200)]
    text = written(notes, more=50, budget=budget)
    assert size(text) <= budget
    listed = text.count("\n- general/") + len(re.findall(r"(?m)^### ", text))
    assert f"{250 - listed} more are not listed" in text


@pytest.mark.parametrize(
    "text", ["<!-- <<< team-memory -->\n", "a\n <!-- >>> team-memory x -->\n", "<!-- nte_9 sha256=0 -->\n"]
)
def test_a_note_that_could_end_the_block_is_only_named(text: str) -> None:
    said = written([candidate(1, text)])
    assert "### N1" not in said and "general/n1.md [nte_1]" in said


def test_it_holds_the_teams_notes_of_this_project(api: Any, agent: Agent, acme: Any, alice: Any) -> None:
    client = api(agent)
    start = {"session_id": "s1", "hook_event_name": "SessionStart", "cwd": "/home/dev/shop"}
    client.post("hooks/claude-code", start, headers={"X-Team-Memory-Remote": "git@github.com:acme/shop.git"})
    assert "No note is approved yet." in client.get(HERE).content.decode()
    made.note(acme, alice, path="project/other/c.md", text="x\n")
    assert "No note for this project yet." in client.get(HERE).content.decode()
    for path in ("general/a.md", "project/shop/b.md", "profile/team.md"):
        made.note(acme, alice, path=path, text=f"---\ntitle: T {path}\n---\nx\n")
    made.note(acme, alice, path="general/own.md", text="---\ntitle: T own\n---\nx\n", is_private=True)

    def told(query: str) -> list[str]:
        answer = client.get(f"{HERE}?{query}")
        assert answer.status_code == 200 and answer["Content-Type"].startswith("text/markdown"), answer.content
        return re.findall(r"^### T (\S+)", answer.content.decode(), re.MULTILINE)

    of_shop = ["profile/team.md", "project/shop/b.md", "general/a.md"]
    assert told("remote=https://github.com/acme/shop") == of_shop
    assert told("root=/home/dev/shop/sub/dir") == of_shop
    assert told("root=/home/dev/elsewhere") == told("") == ["profile/team.md", "general/a.md"]
    assert told("space=members/alice") == ["own"]
    for space in ("members/bob", "members/none", "x", "team%00"):
        assert client.get(f"{HERE}?space={space}").status_code == 404, space


def test_the_same_memory_is_the_same_bytes(api: Any, agent: Agent, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice, path="general/a.md")
    first, second = api(agent).get(HERE), api(new_agent(bob)).get(HERE)
    assert first.content == second.content and first["ETag"] == second["ETag"]
    again = api(agent).client.get(f"/api/v1/{HERE}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_it_asks_for_a_fit_size_and_for_the_scope(api: Any, agent: Agent, alice: Any) -> None:
    for most in ("0", "x", "-5", "99999999999", "٣٠٠٠"):
        assert api(agent).get(f"{HERE}?max_chars={most}").status_code == 400, most
    assert api(new_agent(alice, scopes=["ingest"])).get(HERE).status_code == 403
