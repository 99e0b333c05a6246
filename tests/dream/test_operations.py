"""What each operation of an answer comes to, and what of the old text it must not lose, as tables."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dream.answer import parse
from dream.dates import absolute
from dream.distill_shapes import SeenEvent
from dream.facts import covers, kept, near_duplicate
from dream.shapes import KnownNote, Malformed, Proposed, Read

WEDNESDAY = datetime(2026, 3, 4, 9, tzinfo=UTC)
SHOWN = {
    f"evt_{n}": SeenEvent(f"evt_{n}", "ses_1", n, "claude_code", "prompt", WEDNESDAY, "an", None, None, {})
    for n in range(1, 4)
}
RULES = "---\ntitle: Rules\ntags: [a, b]\n---\n# Rules\n\n- Deploys on Friday are allowed\n- Tabs, not spaces\n"
PORTS = "# Ports\n\n## Staging\n\n- staging DB port 5433\n\n## Prod\n\n- prod DB port 5432\n"
KNOWN = [
    KnownNote("project/shop/rules.md", RULES),
    KnownNote("project/shop/ports.md", PORTS),
    KnownNote("project/shop/pinned.md", "---\npinned: yes\n---\n- stays put\n", is_pinned=True),
    KnownNote("project/shop/named.md", "# Named\n\n- only the name was shown\n", is_whole=False),
    *(KnownNote(f"project/shop/more{n}.md", f"# More {n}\n\n- thing {n} of shelf {n}\n") for n in range(7)),
]


def read(*operations: dict[str, Any], **more: Any) -> Read:
    text = json.dumps({"operations": list(operations), **more})
    return parse(text, shown=SHOWN, notes=KNOWN, made_by="dream (test)")


def only(*operations: dict[str, Any]) -> Proposed:
    [made] = read(*operations).proposed
    return made


def op(kind: str, path: str, body: str = "", **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": f"project/shop/{path}.md", "body": body, "events": [], "reason": "new", **more}


def test_a_contradiction_takes_the_place_of_the_old_line_and_says_since_when() -> None:
    made = only(op("rewrite", "rules", "# Rules\n\n- No Friday deploys from now on [evt_1]\n- Tabs, not spaces"))
    assert "are allowed" not in made.text
    assert "- No Friday deploys since 2026-03-04\n- Tabs, not spaces\n" in made.text
    assert "Replaces “Deploys on Friday are allowed” since 2026-03-04" in made.reason
    assert "tags: [a, b]" in made.text, "the other fields stay"


BODIES = [
    ("left out", "- Tabs, not spaces", ["Deploys on Friday", "Tabs"]),
    ("left out, all", "- Lint first [evt_1]", ["Deploys on Friday", "Tabs", "Lint first"]),
    ("contradicted without a source", "- No Friday deploys\n- Tabs, not spaces", ["are allowed", "Tabs"]),
    ("contradicted by an invented source", "- No Friday deploys [evt_9]\n- Tabs, not spaces", ["are allowed"]),
    ("said in other words", "- Deploys on a Friday are allowed here\n- Tabs, not spaces", ["a Friday", "Tabs"]),
]


@pytest.mark.parametrize(("body", "stays"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_what_nothing_replaces_is_put_back(body: str, stays: list[str]) -> None:
    text = only(op("rewrite", "rules", f"# Rules\n\n{body}\n- One more [evt_1]")).text
    assert all(said in text for said in stays)


def test_a_line_named_as_obsolete_with_a_source_goes() -> None:
    gone = {"line": "- Deploys on Friday are allowed", "events": ["evt_2"]}
    assert "Friday" not in only(op("rewrite", "rules", "- Tabs, not spaces", obsolete=[gone])).text
    invented = {**gone, "events": ["evt_9"]}
    assert "Friday" in only(op("rewrite", "rules", "- Tabs, not spaces\n- x [evt_1]", obsolete=[invented])).text


def test_two_facts_never_become_one() -> None:
    text = only(op("rewrite", "ports", "# Ports\n\n- DB port 5432 [evt_1]")).text
    assert "staging DB port 5433" in text and "5432" in text


def test_a_section_is_replaced_alone() -> None:
    made = only(op("replace_section", "ports", "- staging DB port 5434 [evt_1]", heading="Staging"))
    assert made.text == PORTS.replace("5433", "5434")
    assert made.kind == "replace_section" and made.cited[0].line == "- staging DB port 5434"
    new = only(op("replace_section", "ports", "- test DB port 5431 [evt_1]", heading="Test")).text
    assert new.endswith("- prod DB port 5432\n\n## Test\n\n- test DB port 5431\n")


def test_a_near_duplicate_becomes_an_edit_of_the_note_that_is_there() -> None:
    made = only(op("create", "db-ports", "# DB\n\n- staging DB port 5433 [evt_1]\n- test DB port 5431 [evt_2]"))
    assert made.path == "project/shop/ports.md"
    assert made.text == PORTS + "- test DB port 5431\n"
    assert [one.event for one in made.cited] == ["evt_2"]


def test_the_same_fact_restated_is_no_change() -> None:
    found = read(op("create", "db-ports", "# DB\n\n- staging DB port 5433 [evt_1]"))
    assert found.proposed == [] and "says it already" in found.dropped[0]


def test_a_note_shown_by_name_is_only_added_to() -> None:
    assert only(op("rewrite", "named", "- other [evt_1]")).text == "# Named\n\n- only the name was shown\n- other\n"


def test_notes_are_merged_and_nothing_of_them_is_lost() -> None:
    made = read(op("merge", "more0", "# More\n\n- thing 0 of shelf 0", **{"from": ["project/shop/more1.md"]})).proposed
    assert [(one.path, one.operation, one.kind) for one in made] == [
        ("project/shop/more0.md", "write", "merge"), ("project/shop/more1.md", "delete", "merge"),
    ]  # fmt: skip
    assert "thing 0 of shelf 0" in made[0].text and "thing 1 of shelf 1" in made[0].text


def test_a_pinned_note_is_never_proposed_for_deletion() -> None:
    found = read(op("delete", "pinned"))
    assert found.proposed == [] and "pinned" in found.dropped[0]


BAD = [
    ("an unknown operation", {"op": "append", "path": "project/shop/a.md", "body": "x"}),
    ("no operation", {"path": "project/shop/a.md", "body": "x"}),
    ("no path", {"op": "create", "body": "x"}),
    ("no body", {"op": "rewrite", "path": "project/shop/rules.md"}),
    ("a section without its heading", op("replace_section", "rules", "x")),
    ("obsolete as text", op("rewrite", "rules", "x", obsolete="all")),
    ("no room for what must stay", op("rewrite", "rules", "- " + "word " * 815)),
]


@pytest.mark.parametrize("raw", [row[1] for row in BAD], ids=[str(row[0]) for row in BAD])
def test_it_is_malformed(raw: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read(raw)


def test_a_clearance_is_malformed_however_it_is_put() -> None:
    with pytest.raises(Malformed, match="at most 2 in one run"):
        read(*(op("delete", f"more{n}") for n in range(3)))
    with pytest.raises(Malformed):
        read(op("merge", "more0", "- x", **{"from": [f"project/shop/more{n}.md" for n in range(1, 5)]}))


def test_none_changes_nothing() -> None:
    assert read({"op": "none", "reason": "seen before"}) == Read()


def test_the_last_word_on_a_path_stands() -> None:
    found = read(op("create", "new", "- first [evt_1]"), op("create", "new", "- second thing [evt_2]"))
    assert "second" in found.proposed[0].text and len(found.proposed) == 1 and found.dropped


def test_sessions_are_summed_up_in_at_most_five_cited_lines() -> None:
    lines = [f"Did thing {n} yesterday [evt_1]" for n in range(7)] + ["no source", "invented [evt_9]", 3]
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
    rows = [{"session": "ses_1", "lines": [f"Used {secret} [evt_2]", *lines]}, {"session": "ses_x", "lines": lines}]
    [gist] = read({"op": "none"}, sessions=rows).gists
    assert len(gist.lines) == 5 and gist.session == "ses_1"
    assert secret not in gist.lines[0].text and gist.lines[1].text == "Did thing 0 2026-03-03"
    assert gist.lines[1].events == ("evt_1",)


DATES = [
    ("broke yesterday", "broke 2026-03-03"),
    ("two weeks ago, and 3 days ago", "2026-02-18, and 2026-03-01"),
    ("no deploys from now on", "no deploys since 2026-03-04"),
    ("last Friday, next Monday, this Wednesday", "2026-02-27, 2026-03-09, 2026-03-04"),
    ("next month, last year, this week", "2026-04, 2025, the week of 2026-03-02"),
    ("released in 10 days", "released on 2026-03-14"),
    ("run `date -d yesterday`, “today” it says", "run `date -d yesterday`, “today” it says"),
    ("hôm qua hỏng", "2026-03-03 hỏng"),
    ("port 5432", "port 5432"),
]


@pytest.mark.parametrize(("said", "absolutely"), DATES, ids=[row[0] for row in DATES])
def test_a_relative_date_becomes_one(said: str, absolutely: str) -> None:
    assert absolute(said, WEDNESDAY) == absolutely
    assert absolute(said, None) == said


ALIKE = [
    ("- staging DB port 5433", "- prod DB port 5432", False),
    ("- staging DB port 5433", "- The staging DB has port 5433", True),
    ("- Use tabs", "- Do not use tabs", False),
    ("- run `make test`", "- run `make lint`", False),
    ("- Friday deploys", "- friday  DEPLOYS.", True),
    ("- Run the tests before the build in CI", "- Run the tests after the build in CI", False),
    ("- Payments allow deploys on a Friday afternoon", "- Payments deny deploys on a Friday afternoon", False),
    ("- The client of the API waits 5 s", "- The client of the API waits 5 ms", False),
    ("- Shop's database listens on port 5432 in staging", "- Shop's database listens on port 5432 in prod", False),
    ("- Always run make test before a commit", "- Always run make lint before a commit", False),
]


@pytest.mark.parametrize(("one", "other", "same"), ALIKE)
def test_literals_and_negations_decide_whether_two_lines_say_the_same(one: str, other: str, same: bool) -> None:
    assert (covers(one, other) and covers(other, one)) == same or covers(other, one) == same


def test_a_fact_of_one_place_gives_no_way_to_that_of_another() -> None:
    new, old = "- prod DB port 5432\n", "- staging DB port 5433\n"
    assert kept(new, old=old, cited=[new.strip()]).text == new + old
    later = "- staging DB port 5434\n"
    assert kept(later, old=old, cited=[later.strip()]).text == later


def test_nothing_is_like_an_empty_text() -> None:
    assert near_duplicate("# Head\n", [("a", "# Head\n")]) is None
