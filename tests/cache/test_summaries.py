"""Each kind of text has its own summary; what no summariser knows comes whole or by pages."""

import pytest

from cache_admin.results import grep, lines_of
from cache_admin.summaries import detect, summarise
from cache_admin.summaries.code import outline

PYTHON = "\n".join(f"def step_{number}(x: int) -> int:\n    return x + {number}\n" for number in range(50))
LOG = "\n".join(
    [f"2026-11-29T10:00:{number % 60:02d}Z INFO worker {number} took {number * 7} ms" for number in range(300)]
    + ["2026-11-29T10:06:00Z INFO config reloaded from /etc/shop.toml"]
    + ["2026-11-29T10:07:00Z ERROR payment 4711 failed: card declined"]
    + [f"2026-11-29T10:08:{number % 60:02d}Z INFO worker {number} took {number * 7} ms" for number in range(100)]
)
PYTEST = "\n".join(
    ["============ test session starts ============", "collected 120 items"]
    + [f"tests/test_{number}.py ........ [{number}%]" for number in range(60)]
    + ["=================== FAILURES ===================", "    def test_pay():", ">       assert pay() == 3"]
    + ["E       AssertionError: assert 2 == 3", "tests/test_pay.py:7: AssertionError"]
    + ["FAILED tests/test_pay.py::test_pay - AssertionError: assert 2 == 3"]
    + ["========== 1 failed, 119 passed in 2.10s =========="]
)
JUNIT = (
    '<?xml version="1.0"?><testsuites><testsuite name="s" tests="61">'
    + "".join(f'<testcase classname="t" name="ok_{number}"/>\n' for number in range(60))
    + '<testcase classname="t" name="bad"><failure message="2 is not 3">trace\nhere</failure></testcase>'
    "</testsuite></testsuites>"
)
GREP = "\n".join(f"src/module_{number % 5}.py:{number}:    value = compute_value({number})" for number in range(200))
NAMES = "\n".join(f"src/deep/folder_{number // 20}/file_{number}.py" for number in range(100))
DIFF = "\n".join(
    line
    for number in range(6)
    for line in (
        f"diff --git a/src/f{number}.py b/src/f{number}.py",
        f"--- a/src/f{number}.py",
        f"+++ b/src/f{number}.py",
        "@@ -10,7 +10,9 @@ def pay():",
        *[" context"] * 6,
        "-old",
        "+new",
        "+newer",
    )
)
MARKDOWN = "\n".join(
    f"## Part {number}\n\nWords of part {number}.\n\n```sh\n# no heading\n```\n" for number in range(20)
)


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        (LOG, "", "logs"),
        (PYTEST, "", "tests"),
        (JUNIT, "", "tests"),
        ("[" + ",".join(f'{{"id": {number}}}' for number in range(900)) + "]", "", "json"),
        (GREP, "", "list"),
        (NAMES, "", "list"),
        (DIFF, "", "diff"),
        (MARKDOWN, "", "markdown"),
        (PYTHON, "src/pay.py", "code"),
        ("Once upon a time. " * 500, "", "plain"),
    ],
)
def test_the_kind_is_told_from_the_text(text: str, name: str, kind: str) -> None:
    assert detect(text, name) == kind


def test_a_log_keeps_errors_rare_lines_and_the_tail() -> None:
    made = summarise(LOG)
    assert made.summariser == "logs" and len(made.text) < 0.3 * len(LOG)
    assert "302: 2026-11-29T10:07:00Z ERROR payment 4711 failed: card declined" in made.text
    assert "301: 2026-11-29T10:06:00Z INFO config reloaded" in made.text
    assert LOG.splitlines()[-1] in made.text and "400x" in made.text


def test_a_test_run_keeps_what_failed_and_why() -> None:
    for text, failed in ((PYTEST, "FAILED tests/test_pay.py::test_pay"), (JUNIT, "FAILED t.bad: 2 is not 3")):
        made = summarise(text, "tests")
        assert failed in made.text and len(made.text) < 0.5 * len(text)
    assert "AssertionError: assert 2 == 3" in summarise(PYTEST).text
    assert "1 failed, 119 passed" in summarise(PYTEST).text


def test_xml_with_entities_is_not_expanded() -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><testsuites>' + "<testsuite/>\n" * 60 + "</testsuites>"
    )
    assert summarise(bomb, "tests").summariser != "tests"


def test_code_keeps_its_ends_and_an_outline_with_line_numbers() -> None:
    made = summarise(PYTHON, "code", kind="src/pay.py")
    rows = PYTHON.splitlines()
    assert made.summariser == "code" and made.text.startswith("\n".join(rows[:15]))
    assert made.text.endswith("\n".join(rows[-10:])) and "61: def step_20(x: int) -> int:" in made.text
    assert f"[{len(rows) - 25} of {len(rows)} lines hidden" in made.text


@pytest.mark.parametrize(
    ("name", "text", "defined"),
    [
        ("a.go", "package a\n" + "func Pay(x int) int {\n\treturn x\n}\n\n" * 20, "func Pay(x int) int {"),
        ("a.ts", "export class Shop {\n  pay(): number {\n    return 1\n  }\n}\n" * 20, "export class Shop {"),
        ("a.rs", "pub fn pay(x: u8) -> u8 {\n    x\n}\n\n" * 20, "pub fn pay(x: u8) -> u8 {"),
        ("a.java", "class Shop {\n  int pay() {\n    return 1;\n  }\n}\n" * 20, "int pay() {"),
    ],
)
def test_code_of_other_languages(name: str, text: str, defined: str) -> None:
    assert defined in outline(text, name).partition("hidden")[2]


def test_code_numbered_by_a_harness_keeps_those_numbers() -> None:
    numbered = "\n".join(f"{number + 301:>6}→{row}" for number, row in enumerate(PYTHON.splitlines()))
    assert "361: def step_20" in outline(numbered, "pay.py")


def test_json_shows_its_shape_its_count_and_its_ends() -> None:
    text = "[" + ",".join(f'{{"id": {number}, "tags": ["a"]}}' for number in range(500)) + "]"
    said = summarise(text).text
    assert "500 items" in said and '{"id": 0' in said and '{"id": 499' in said and "id: int" in said


def test_a_search_names_every_file_and_every_line() -> None:
    said = summarise(GREP, "list").text
    assert "[200 matches in 5 files]" in said and len(said) < 0.3 * len(GREP)
    assert all(f"src/module_{number}.py (40)" in said for number in range(5)) and " 199" in said


def test_a_search_without_numbers_shows_each_line_once() -> None:
    text = "\n".join(["src/a.py:    value = 1"] * 50 + ["src/b.py:    other = 2"])
    said = summarise(text, "list").text
    assert "value = 1 (x50)" in said and "other = 2" in said


def test_a_listing_keeps_every_name() -> None:
    said = summarise(NAMES, "list").text
    assert all(f"file_{number}.py" in said for number in range(100)) and len(said) < len(NAMES)


def test_a_diff_names_every_file_and_hunk() -> None:
    said = summarise(DIFF).text
    assert (
        said.startswith("[6 files, +12 -6;") and said.count("(+2 -1)") == 6 and said.count("at line 10 def pay():") == 6
    )


def test_markdown_keeps_its_headings() -> None:
    said = summarise(MARKDOWN, "markdown").text
    assert "## Part 19" in said and "Words of part 19." in said and "no heading" not in said


def test_what_is_short_is_whole_and_what_is_unknown_comes_by_pages() -> None:
    assert summarise("a\nb").text == "a\nb"
    prose = "\n".join(f"Sentence {number} of a long story." for number in range(3_000))
    said = summarise(prose)
    assert said.summariser == "plain" and said.text.startswith("[lines 1-") and "the next page is lines=" in said.text
    middle = "\n".join(f"Sentence {number} of a story." for number in range(100))
    assert summarise(middle).text == middle and not summarise(middle).is_shorter
    assert "fetch it by Range or grep" in summarise("x" * 50_000).text


def test_what_harnesses_wrap_it_in_is_taken_off() -> None:
    import json

    read = json.dumps({"type": "text", "file": {"filePath": "/w/pay.py", "content": PYTHON}})
    assert summarise(read, "code").summariser == "code"
    assert summarise(json.dumps({"stdout": LOG, "stderr": ""})).summariser == "logs"
    assert summarise(json.dumps([{"type": "text", "text": PYTEST}])).summariser == "tests"


def test_an_error_in_a_long_line_is_shown_where_it_stands() -> None:
    rows = [f"2026-11-30 10:00:00 INFO step {number}" for number in range(100)]
    bar = "".join(f"\r{number} %" for number in range(500)) + "\rERROR: no space left"
    for long in (bar, '{"a":"' + "x" * 9_000 + '","level":"ERROR","says":"no space left"}'):
        assert "no space left" in summarise("\n".join([*rows, long, *rows]), "logs").text
    fatal = "FATAL: " + "word " * 9_000
    assert "FATAL: word" in summarise("\n".join([*rows, fatal, *rows]), "logs").text


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_are_counted_as_editors_do(ending: str) -> None:
    rows = ["import os", "\x0c", "def first():", "    return '\u2028\x85'", *["x = 1"] * 60, "def last():", "    pass"]
    text = ending.join([*rows, *["y = 1"] * 20]) + ending
    number = rows.index("def last():") + 1
    assert f"{number}: def last():" in summarise(text, kind="a.py").text
    assert lines_of(text, str(number)) == "def last():" and grep(text, "last") == f"{number}:def last():"
    assert lines_of(text, "-1") == "y = 1"


ENDLESS = [
    "\n" * 300_000, " " * 300_000 + "\n" * 50, "x" * 2_000_000, "=" * 20_000 + " passed" * 50_000 + "\n" * 50,
    "ok" + " " * 200_000 + "\n" * 50, "/" * 200_000 + "\n" * 50, "FATAL " + "a" * 500_000 + "\n" * 50,
    "." * 15_000 + "\n" * 50,
    ("- " * 9_000 + "\n") * 50, "FAILED a\n" * 50 + "ERROR " + "passed " * 40_000,
    "src/a.py:1:x\n" * 60 + "a/" * 100_000,
    ("[" * 100_000) + "\n" * 50, '{"a":' * 3_000 + "1" + "}" * 3_000,
]  # fmt: skip


@pytest.mark.parametrize("summariser", ["auto", "tests", "list", "logs", "diff", "markdown", "code"])
def test_no_text_takes_for_ever(summariser: str) -> None:
    """Each of these took minutes to days while a pattern searched a line or a run of empty ones over and over."""
    for text in ENDLESS:
        assert summarise(text, summariser).text is not None
