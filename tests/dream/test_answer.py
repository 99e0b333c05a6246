"""What becomes of a model's answer, as a table."""

import json
from typing import Any

import pytest

from dream.answer import Cited, Malformed, Read, Refused, parse
from dream.distill_shapes import SeenEvent
from dream.shapes import KnownNote


def event(public_id: str, *, name: str = "prompt", member: str | None = "an") -> SeenEvent:
    return SeenEvent(public_id, "ses_1", 1, "claude_code", name, None, member, None, None, {"prompt": "x"})


SHOWN = {
    "evt_1": event("evt_1"),
    "evt_2": event("evt_2", name="tool_after"),
    "evt_3": event("evt_3", member="binh"),
    "evt_4": event("evt_4", name="tool_before"),
}
NOTES = [KnownNote(f"general/{n}.md", f"# Note {n}\n\n- Fact number {n} of this note\n") for n in range(10)]


def read(text: str) -> Read:
    return parse(text, shown=SHOWN, notes=NOTES, made_by="dream (test)")


def note(path: str = "tools/x/y.md", body: str = "- x [evt_1]", **more: Any) -> str:
    return json.dumps({"notes": [{"path": path, "body": body, **more}]})


FENCED = '```json\n{"notes":[{"path":"tools/x.md","body":"use ```bash\\nls\\n```","sources":["evt_1"]}]}\n```'
GOOD = [
    ("fenced, with a fence inside", FENCED, "```bash"),
    ("chatter before", f"From {{your events}}: {note()} Hope this helps!", "- x\n"),
    ("a comma too many", '{"notes":[{"path":"general/a.md","body":"x, ]",}],}', "x, ]"),
    ("unicode", note(body="- café 数据库 [evt_1]"), "café 数据库"),
    ("an answer after its thoughts", f'<think>{{"notes":[]}} or {{"notes":[{{</think>{note()}', "- x\n"),
    ("an answer after an example", f'For example {{"notes":[]}} would be empty, but: {note()}', "- x\n"),
    ("a line break in a text", '{"notes":[{"path":"tools/x/y.md","body":"- a [evt_1]\n- b"}]}', "- a\n- b\n"),
    ("frontmatter in the body", note(body="---\ntitle: Why\npinned: true\n---\n- x [evt_1]"), "title: Why\nkind"),
    ("braces in text", note(body='- run `echo "{}"` [evt_1]'), 'echo "{}"'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_it_reads(text: str, expected: str) -> None:
    assert expected in read(text).proposed[0].text


def test_it_reads_that_nothing_is_new() -> None:
    assert read('Sure! {"notes": []}') == Read()


BAD = [
    ("an escape that JSON has not", '{"notes":[{"path":"general/a.md","body":"C:\\dev"}]}', Malformed),
    ("half an answer", '{"notes":[{"path":"general/a.md","body":"half', Malformed),
    ("half, after a whole note", '{"notes":[{"path":"general/a.md","body":"x"},{"path":"general/b', Malformed),
    ("a refusal", "I'm sorry, I can't help with that.", Refused),
    ("nothing", "", Malformed),
    ("blank", " \n ", Malformed),
    ("prose", "The events were interesting.", Malformed),
    ("a list", '[{"path": "general/a.md"}]', Malformed),
    ("another object", '{"answer": 42}', Malformed),
    ("no body", '{"notes":[{"path":"general/a.md"}]}', Malformed),
    ("an empty body", note(body=""), Malformed),
    ("a number as a path", '{"notes":[{"path":1,"body":"x"}]}', Malformed),
    ("notes that are no list", '{"notes":{"path":"general/a.md"}}', Malformed),
    ("a note of 5 KB", note(body="long " * 1000), Malformed),
    ("a hundred notes", json.dumps({"notes": [{"path": "general/a.md", "body": "x"}] * 100}), Malformed),
    ("notes that are none of a list", '{"notes":{}}', Malformed),
    ("no notes by another word", '{"notes":null}', Malformed),
    ("a key twice", f'{note()[:-1]},"notes":[]}}', Malformed),
    ("a path twice", '{"notes":[{"path":"general/a.md","path":"general/b.md","body":"x"}]}', Malformed),
    ("nothing, and a refusal", 'I can\'t help with that. {"notes": []}', Refused),
    ("nothing, and an error", '{"notes":[],"error":"rate limited"}', Refused),
    ("an apology as a note", note(body="I'm sorry, I can't help with that."), Malformed),
    ("a model's word on itself", note(body="As an AI language model, I cannot do this."), Malformed),
    ("an error as a note", note(body="Error: 429 Too Many Requests"), Malformed),
    ("a page of a proxy as a note", note(body="<html><body>502 Bad Gateway</body></html>"), Malformed),
    ("a place to write into", note(body="<note content here>"), Malformed),
    ("three dots", note(body="..."), Malformed),
    ("deep nesting", '{"notes":' + "[" * 100_000, Malformed),
    ("deletes all", json.dumps({"notes": [], "delete": [note.path for note in NOTES]}), Malformed),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error"), [row[1:] for row in BAD], ids=[str(row[0]) for row in BAD])
def test_it_refuses(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(text)


@pytest.mark.parametrize(
    "path",
    ["../profile/x.md", "/etc/passwd", "project/../../x.md", "general/a.txt", "secret/x.md", "general/%2e%2e/x.md"],
)
def test_it_drops_a_path_that_escapes_and_keeps_the_rest(path: str) -> None:
    both = json.dumps({"notes": [{"path": path, "body": "x"}, {"path": "general/a.md", "body": "y"}]})
    found = read(both)
    assert [each.path for each in found.proposed] == ["general/a.md"]
    assert path in found.dropped[0]


def test_it_takes_citations_out_of_the_text_and_keeps_them_by_line() -> None:
    made = read(note(body="# T\n\n- a [evt_1, evt_2]\n- b [evt_4]\n  - c [evt_999]")).proposed[0]
    assert "evt_" not in made.text
    assert made.cited == (
        Cited("- a", "evt_1", 1), Cited("- a", "evt_2", 3), Cited("- b", "evt_4", 2),
    )  # fmt: skip


def test_it_takes_out_an_unknown_source_and_says_that_none_is_left() -> None:
    made = read('{"notes":[{"path":"general/a.md","body":"x","sources":["evt_999"]}]}').proposed[0]
    assert made.cited == ()
    assert made.reason.startswith("Cites no event")


def test_sources_of_the_whole_note_count_for_its_lines() -> None:
    made = read('{"notes":[{"path":"general/a.md","body":"# T\\n- x\\n- y","sources":["evt_2","evt_2"]}]}').proposed[0]
    assert made.cited == (Cited("- x", "evt_2", 3), Cited("- y", "evt_2", 3))


@pytest.mark.parametrize("field", ["body", "title", "description"])
def test_it_masks_a_secret(field: str) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
    raw = {"path": "general/a.md", "body": "- x [evt_1]", field: f"- token {secret} [evt_1]"}
    assert secret not in read(json.dumps({"notes": [raw]})).proposed[0].text


def test_a_profile_rests_on_what_that_member_said() -> None:
    own = read(note("profile/an/preferences.md", "- tabs [evt_1]")).proposed[0]
    assert (own.path, own.member) == ("profile/preferences.md", "an")


@pytest.mark.parametrize(
    ("path", "source"),
    [("an", "evt_3"), ("binh", "evt_1"), ("an", "evt_2"), ("an", "evt_4"), ("an", "evt_999")],
    ids=["another's words", "about another", "a tool's output", "an agent's doing", "nothing"],
)
def test_a_profile_that_rests_on_anything_else_is_dropped(path: str, source: str) -> None:
    found = read(note(f"profile/{path}/preferences.md", f"- tabs [{source}]"))
    assert found.proposed == [] and "profile" in found.dropped[0]


def test_it_asks_for_a_deletion_of_a_note_it_was_shown() -> None:
    found = read(json.dumps({"notes": [], "delete": [{"path": "general/1.md", "reason": "gone"}, "general/none.md"]}))
    assert [(each.path, each.operation, each.reason) for each in found.proposed] == [("general/1.md", "delete", "gone")]


def test_it_says_which_deletion_it_left_out() -> None:
    assert "general/*" in read(json.dumps({"delete": ["general/*"]})).dropped[0]


def test_an_error_that_was_seen_is_a_note() -> None:
    assert "Error: 429" in read(note(body="Error: 429 means wait a minute [evt_2]")).proposed[0].text


def test_frontmatter_cannot_be_broken_by_a_title() -> None:
    made = read(note(title='a: "b"\n---\nkind: profile', body="- x [evt_1]")).proposed[0]
    assert made.text.count("\n---\n") == 1
