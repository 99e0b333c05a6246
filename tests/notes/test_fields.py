"""A note's text as a form: what nobody touched stays the bytes it was, whatever a browser does to it."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.notes import fields
from memory.notes.frontmatter import split

TEXTS = [
    "",
    "# Plain\n\n- One\n",
    "---\ntitle: A\n---\nBody",
    "---\ntitle: A\n---",
    "---\r\ntitle: A\r\ntags: [a, b]\r\n---\r\n# A\r\n\r\n- one\r\n",
    "---\ntitle:   'A: b'   # why\nowner: {team: x, who: [a, b]}\ntags:\n  - a\n  - b\n---\n\n\nBody\n\n\n",
    '---\n{"title": "flow", "kind": rule}\n---\nBody\n',
    "---\ntitle: >\n  two\n  lines\ntags: a\n---\nBody\n",
    "---\ntitle: [a list]\ndescription: {a: mapping}\ntags: ['a,b', c]\n---\nBody\n",
    "---\ntitle: ''\nkind: no\ndescription: '  spaces  '\n---\nBody\n",
    "---\nSome prose\nbetween rules\n---\nBody\n",
    "\n\nblank lines first\n",
    "mixed\r\nends\nhere\rand there\r\n",
    "---\n# only a comment\n---\nBody\n",
]


def typed(text: str) -> str:
    """What a browser sends of a text that it was given in a page: every line end as CRLF."""
    return re.sub(r"\r\n|\r|\n", "\r\n", html.unescape(html.escape(text)))


def through_the_form(text: str) -> str:
    form = fields.read(text)
    said = {name: re.sub(r"[\r\n]", "", value) for name, value in form.values.items()}
    head, body = (fields.sent(typed(part)) for part in (form.head, form.body))
    return fields.with_ends_of(text, fields.write(head, body, said))


@pytest.mark.parametrize("text", TEXTS)
def test_an_untouched_form_gives_the_same_bytes(text: str) -> None:
    assert through_the_form(text) == text
    assert fields.with_ends_of(text, fields.sent(typed(text))) == text, "the raw way too"


@given(st.text(alphabet="ab-:#[]{}'\",\n\r \t", max_size=60), st.sampled_from(["", "\n", "\r\n"]))
def test_any_frontmatter_that_can_be_read_comes_back(inner: str, end: str) -> None:
    text = f"---\ntitle: x\n{inner}\n---{end}body {inner}"
    try:
        fields.read(text)
    except ValueError:
        return
    assert through_the_form(text) == text


def test_a_changed_field_touches_its_own_line_alone() -> None:
    text = TEXTS[5]
    form = fields.read(text)
    assert form.others == (("owner", "team: x; who: a, b"),) and not form.fixed
    changed = fields.write(form.head, form.body, {**form.values, "title": "B", "tags": "b, c"})
    assert split(changed).fields == {**split(text).fields, "title": "B", "tags": ["b", "c"]}
    assert "owner: {team: x, who: [a, b]}" in changed and changed.endswith("---\n\n\nBody\n\n\n")


@pytest.mark.parametrize(
    ("said", "left"), [("", {"kind": "rule"}), ("  new   one ", {"title": "new one", "kind": "rule"})]
)
def test_an_emptied_input_takes_the_field_away(said: str, left: dict[str, str]) -> None:
    form = fields.read("---\ntitle: old\nkind: rule\n---\nBody\n")
    assert split(fields.write(form.head, form.body, {**form.values, "title": said})).fields == left


def test_a_note_without_frontmatter_gets_some() -> None:
    form = fields.read("- One\n")
    assert fields.write(form.head, form.body, {**form.values, "title": "A", "tags": "x,,z "}) == (
        "---\ntitle: A\ntags: [x, z]\n---\n- One\n"
    )


def test_what_no_input_can_show_is_kept() -> None:
    text = TEXTS[8]
    form = fields.read(text)
    assert form.fixed == ("title", "description", "tags")
    # A form that sends them all the same changes nothing of them.
    assert fields.write(form.head, form.body, {"title": "X", "kind": "rule", "tags": "q"}).startswith(
        "---\ntitle: [a list]\ndescription: {a: mapping}\ntags: ['a,b', c]\nkind: rule\n---\n"
    )


def test_lines_that_stay_keep_their_ends() -> None:
    assert fields.with_ends_of("a\r\nb\nc\r\n", "a\nnew\nb\nc\n") == "a\r\nnew\r\nb\nc\r\n"
    assert fields.with_ends_of("a\r\nb", "a\nb\n") == "a\r\nb\r\n"
