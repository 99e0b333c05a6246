"""What the head of a note says, and that neither reading nor writing loses a character."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.notes.frontmatter import InvalidFrontmatter, check, clean, compose, split, with_fields

SUITE = json.loads((Path(__file__).parents[1] / "data/yaml/mappings.json").read_text())
NAUGHTY = json.loads((Path(__file__).parents[1] / "data/strings/blns.json").read_text())
PYYAML_DIFFERS = {"652Z"}  # { ?foo: bar } is the key ?foo in YAML 1.2; PyYAML reads foo
VALUES_THAT_YAML_CHANGES = """\
---
version: 1.10
country: no
standup: 10:00
day: 2026-03-01
build: 0123  # as printed
sha: 12e5
---
body
"""


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("----\nhello\n----\nworld", None, "----\nhello\n----\nworld"),
        ("---\n\nJust text, no keys\n\n---\nmore", None, "---\n\nJust text, no keys\n\n---\nmore"),
        ("---\nIt's text\nwith: colons\n---\n", None, "---\nIt's text\nwith: colons\n---\n"),
        ("---\n\n- it's: a \"list\n\n---\n", None, "---\n\n- it's: a \"list\n\n---\n"),
        ("---\n# Heading\n---\nbody", None, "---\n# Heading\n---\nbody"),
        ("# T\n\n---\nx: 1\n---\n\nend", None, "# T\n\n---\nx: 1\n---\n\nend"),
        ("\ufeff---\r\ntitle: a\r\n---\r\nb\r\n", {"title": "a"}, "b\r\n"),
        ("---\nt: 1\n---\n\n    indented code\n\n", {"t": "1"}, "\n    indented code\n\n"),
        ("---  \nt: 1\n--- \nb", {"t": "1"}, "b"),
        ("---\nt: 1\n---", {"t": "1"}, ""),
        ("---\n---\nb", {}, "b"),
        ("---\nt: |\n  a\n\n  ---\n---\nb", {"t": "a\n\n---\n"}, "b"),
        ("---\nt: 1\nno end", None, "---\nt: 1\nno end"),
        ("---", None, "---"),
        ("", None, ""),
        (" ---\nt: 1\n---\n", None, " ---\nt: 1\n---\n"),
        ("---\n" + "prose " * 1000 + "\n---\n", None, "---\n" + "prose " * 1000 + "\n---\n"),
    ],
)
def test_it_finds_the_frontmatter_and_nothing_else(text, fields, body):
    document = split(text)
    assert (document.frontmatter, document.body) == (fields, body)
    assert document.text == text


def test_it_keeps_every_value_as_the_characters_written():
    fields = split(VALUES_THAT_YAML_CHANGES).fields
    assert json.loads(json.dumps(fields)) == {
        "version": "1.10",
        "country": "no",
        "standup": "10:00",
        "day": "2026-03-01",
        "build": "0123",
        "sha": "12e5",
    }


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ("title: CI: flaky test", 2),
        ('kind: a\ndescription: "abc "def" ghi"\ntags: [a, b]', 3),
        ("- a\n- b", 2),
        ("a: !!python/object/apply:os.system ['id']", 2),
        ("ok: 1\na: &x b\nc: *x", 3),
        ("a: 1\nb: 2\na: 3", 4),
        ("a:\n  b: 1\n  b: 2", 4),
        ("a: [[[[1]]]]", 2),
        ("a: " + "[" * 3000, 2),
        ("a: {b: {c: {d: {e: f}}}}", 2),
        ("? [a]\n: b\nc: d", 2),
        ("a: b\n\x01", 3),
        ('a: "\\ud800"', 2),
        ('a: "\\0"', 2),
        ('a: "\\UFFFFFFFF"', 2),
        ("a: " + "x" * 5000, 2),
        ("a: 1\n...\nb: 2", 4),
        ("a: 1\n\tb: 2", 3),
    ],
)
def test_it_refuses_what_it_can_not_read_and_names_the_line(block, line):
    text = f"---\n{block}\n---\nbody"
    if block.startswith("? "):
        assert split(text).body == text
        return
    with pytest.raises(InvalidFrontmatter) as refused:
        split(text)
    assert refused.value.line == line
    assert str(refused.value).startswith(f"Line {line}: ")


@pytest.mark.parametrize("case", SUITE, ids=[case["id"] for case in SUITE])
def test_it_reads_the_yaml_suite_as_text_or_refuses_it(case):
    text = f"---\n{case['yaml'].removesuffix(chr(10))}\n---\nbody\n"
    try:
        document = split(text)
    except InvalidFrontmatter:
        return
    assert document.text == text
    if document.frontmatter is not None and "---" not in case["yaml"]:
        assert not any(mark in case["tree"] for mark in (" =ALI", " &", " <"))
        if not case["fail"] and case["id"] not in PYYAML_DIFFERS:
            assert list(texts(document.frontmatter)) == texts_of_tree(case["tree"])


def texts(value):
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        yield from texts(part)
    for key, part in value.items() if isinstance(value, dict) else ():
        yield key
        yield from texts(part)


def texts_of_tree(tree):
    lines = [line.lstrip() for line in tree.split("\n")]
    plain = [line.removeprefix("=VAL ")[1:] for line in lines if line.startswith("=VAL ")]
    escapes = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b"}
    return [decoded(text, escapes) for text in plain]


def decoded(text, escapes):
    parts = text.split("\\\\")
    for escape, char in escapes.items():
        parts = [part.replace(escape, char) for part in parts]
    return "\\".join(parts)


def test_what_it_writes_comes_back_the_same():
    for title in [*NAUGHTY, "CI: flaky test", "use #general channel", "a\u2028b: c", "no", "~", "- a", "'", "\\"]:
        fields = {"title": title, "tags": [title, "b"], "more": {title: title}}
        document = split(compose(fields, "\n---\nbody: x\n---\n"))
        assert (document.fields, document.body) == (fields, "\n---\nbody: x\n---\n")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800"])
def test_it_refuses_to_write_what_no_database_takes(text):
    with pytest.raises(InvalidFrontmatter):
        compose({"title": text}, "b")


def test_it_quotes_what_another_reader_would_take_for_no_text():
    text = compose({"title": "CI: flaky test", "country": "no", "version": "1.10", "kind": "how-to"}, "b")
    assert text == '---\ntitle: "CI: flaky test"\ncountry: "no"\nversion: "1.10"\nkind: how-to\n---\nb'


@pytest.mark.parametrize("body", ["plain", "---\nx: 1\n---\nb", "---\na: b: c\n---\n", "\ufeffx", ""])
def test_a_note_without_fields_keeps_its_body(body):
    assert split(compose({}, body)).body == body
    assert split(compose({}, body)).fields == {}


def test_it_refuses_to_write_what_it_would_not_read():
    with pytest.raises(InvalidFrontmatter):
        compose({"description": "x" * 5000}, "b")
    with pytest.raises(InvalidFrontmatter):
        compose({"a": [[[["deep"]]]]}, "b")
    with pytest.raises(TypeError):
        compose({"draft": True}, "b")


def test_changing_one_field_leaves_every_other_line():
    changed = with_fields(VALUES_THAT_YAML_CHANGES, tags=["build", "no"])
    assert changed == VALUES_THAT_YAML_CHANGES.replace("\n---\nbody", '\ntags: [build, "no"]\n---\nbody')
    again = with_fields(changed, build="7", country=None)
    assert again == changed.replace("build: 0123  # as", 'build: "7"  # as').replace("country: no\n", "")


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("b", {"title": "a"}, "---\ntitle: a\n---\nb"),
        ("b", {"title": None}, "b"),
        ("---\r\nt: 1\r\n---\r\nb\r\n", {"u": "x"}, "---\r\nt: 1\r\nu: x\r\n---\r\nb\r\n"),
        ("\ufeff---\nt: 1\n---\n", {"t": "x"}, "---\nt: x\n---\n"),
        ("---\ntags:\n- a\n# why\n- b\n# next\nz: 1\n---\n", {"tags": ["q"]}, "---\ntags: [q]\n# next\nz: 1\n---\n"),
        ("---\ntags:\n- a\n\n# next\nz: 1\n---\n", {"tags": None}, "---\n\n# next\nz: 1\n---\n"),
        ("---\nt: |\n  a\n\n   b\n\nz: 1\n---\n", {"t": "x"}, "---\nt: x\n\nz: 1\n---\n"),
        ("---\nt:\n  long\n  text\nz: 1\n---\n", {"t": "x"}, "---\nt: x\nz: 1\n---\n"),
        ("---\nt:\nz: 1\n---\n", {"t": "x"}, "---\nt: x\nz: 1\n---\n"),
        ("---\n'a: b' : 1\n---\n", {"a: b": "x"}, "---\n'a: b' : x\n---\n"),
        ("---\n  t: 1\n  z: 2\n---\n", {"t": None, "u": "3"}, '---\n  z: 2\n  u: "3"\n---\n'),
        ("---\nt: 1\n---\n", {"t": "1"}, "---\nt: 1\n---\n"),
        ("---\n{t: a, z: b}\n---\nb", {"t": "x"}, "---\nt: x\nz: b\n---\nb"),
        ("---\n? t\n: a\n---\nb", {"t": "x"}, "---\n? t\n: x\n---\nb"),
        ("---\n? t\n: a\n---\nb", {"t": None, "u": "x"}, "---\nu: x\n---\nb"),
        ("---\n# c\nt: a\n---\nb", {"t": None}, "b"),
        ("---\nt: a\n---\nb", {"t": None}, "---\n---\nb"),
    ],
)
def test_it_edits_in_place_whatever_the_form(text, changes, expected):
    assert with_fields(text, **changes) == expected


def test_it_does_not_edit_what_it_can_not_read():
    with pytest.raises(InvalidFrontmatter):
        with_fields("---\ntitle: CI: flaky\n---\nb", tags=["a"])


keys = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)
plain = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=15)
values = plain | st.lists(plain, max_size=3) | st.dictionaries(keys, plain, max_size=2)
dictionaries = st.dictionaries(keys, values, max_size=4)


@given(dictionaries, plain)
def test_any_fields_and_body_come_back(fields, body):
    document = split(compose(fields, body))
    assert (document.fields, document.body) == (fields, body)


@given(dictionaries, dictionaries, plain)
def test_any_edit_sets_the_named_fields_only(fields, changes, body):
    document = split(with_fields(compose(fields, body), **changes))
    assert document.fields == {**fields, **changes}
    assert clean(document.body) == clean(body)


@given(st.text(alphabet=st.sampled_from("-\n\r a:#'\"[]{}&*!|>?%\ufeff\u2028\t"), max_size=30))
def test_it_never_loses_a_character_or_fails_otherwise(text):
    for candidate in (text, f"---\n{text}\n---\n", f"---\nk: {text}\n---\n"):
        try:
            document = split(candidate)
        except InvalidFrontmatter:
            continue
        assert document.text == candidate
        assert split(clean(candidate)).body == document.body
        assert clean(clean(candidate)) == clean(candidate)


@pytest.mark.parametrize(
    ("text", "by_person", "codes"),
    [
        ("---\ntitle: a\ntags: [a]\nowner: x\n---\nbody", False, []),
        ("x" * 4097, False, ["note_too_long"]),
        ("é" * 2049, False, ["note_too_long"]),
        ("x" * 4097, True, []),
        ("x" * 65537, True, ["note_too_long"]),
        ("---\ntitle: a\n---\n \n", False, ["empty_body"]),
        ("---\ntitle: a\nnever closed", False, ["unclosed_frontmatter"]),
        ("---\n\nprose", False, []),
        (f"---\ndescription: {'x' * 201}\n---\nb", False, ["too_long"]),
        (f"---\ndescription: {'x' * 200}\n---\nb", False, []),
        ("---\ndescription: |\n  a\n  b\n---\nb", False, ["not_one_line"]),
        ("---\ntitle: [a]\n---\nb", False, ["wrong_type"]),
        ("---\ntags: a, b\n---\nb", False, ["wrong_type"]),
        ("---\ntags: [[a]]\n---\nb", False, ["wrong_type"]),
        ("---\ntags:\n---\nb", False, []),
        (f"---\ntags: [{'x' * 41}]\n---\nb", False, ["too_long"]),
    ],
)
def test_it_says_what_to_mend(text, by_person, codes):
    assert [problem.code for problem in check(split(text), by_person=by_person)] == codes


def test_it_gives_a_field_as_text():
    document = split("---\ntitle: a\ntags: [b]\n---\n")
    assert (document.field("title"), document.field("tags"), document.field("none")) == ("a", "", "")
