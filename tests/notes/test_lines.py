"""Lines of a note: when two say the same, and what is left of a text without those that were turned down."""

import pytest

from memory.notes.lines import says_something, substance, taken_out, without

SAME = [
    ("- `make test`: succeeded in 3 of 5 runs (2 failed).", "- `make test`: succeeded in 9 of 11 runs (2 unclear)."),
    ("- `make test`: succeeded in its 1 run.", "- `make test`: succeeded in 2 of 2 runs."),
    ("- “always lint”.", "- “always lint” (latest of 3 prompts that begin alike)."),
    ("- “always lint” (latest of 3 prompts that begin alike).", "- “always lint” (latest of 14 prompts)."),
    ("- `a.py`: 3 edits, 12 reads, in 4 sessions.", "- `a.py`: 1 edit, 1 read, in 1 session."),
    ("- `a.py`: 3 reads, in 1 session.", "- `a.py`: 3 edits, 12 reads, in 20 or more sessions."),
    ("- Use tabs [evt_1]", "- Use tabs [evt_2, evt_3]"),
    ("- Use tabs", "*  use   TABS."),
    ("- 2026-05-01: last asked “x”.", "- 2026-05-02: last asked “x”."),
    ("- `gh pr create` and 2 other forms of `gh pr`: succeeded 4 times.",
     "- `gh pr create` and 1 other form of `gh pr`: succeeded 12 times."),
    ("- MCP servers called (calls): `github` (50).", "- MCP servers called (calls): `github` (51)."),
]  # fmt: skip
DIFFERENT = [
    ("- The database listens on port 5432", "- The database listens on port 5433"),
    ("- `psql -p 5432`", "- `psql -p 5433`"),
    ("- “port 5432”", "- “port 5433”"),
    ("- see src/v1/a.py", "- see src/v2/a.py"),
    ("- Needs Python 3.11", "- Needs Python 3.12"),
    ("- Retry 3 times", "- Retry 5 times"),
    ("- Keep 3 files in a commit", "- Keep 5 files in a commit"),
    ("- Deploy from main (not from dev)", "- Deploy from main (or from dev)"),
    ("- Listen on the test port (5432 is taken)", "- Listen on the test port (5433 is taken)"),
    ("- “succeeded in 3 runs”", "- “succeeded in 4 runs”"),
    ("- `a b`", "- `ab`"),
    ("- `make test`: succeeded in 3 of 5 runs.", "- `make tests`: succeeded in 3 of 5 runs."),
    ("- `make test`: succeeded in 3 of 5 runs.", "- `make test`: often fails: succeeded in 3 of 5 runs."),
    ("- Released 2026-05-01", "- Released 2026-05-02"),
    ("- Issue #12 opened", "- Issue #13 opened"),
    ("- Never push to main", "- Always push to main"),
    ("- 5432", "- 5433"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_it_takes_lines_for_the_same_that_differ_in_counts_alone(one: str, other: str) -> None:
    assert substance(one) == substance(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_it_never_takes_another_statement_for_the_same(one: str, other: str) -> None:
    assert substance(one) != substance(other)


def test_no_line_of_words_is_without_substance() -> None:
    assert substance("- (3)") and substance("- in 3 runs")


def test_it_takes_out_rejected_lines_whatever_their_counts() -> None:
    text = "# T\n\n*Made by rules.*\n\n## A\n- `x`: 4 edits, in 2 sessions.\n\n## B\n- Use tabs\n"
    left = without(text, {substance("- `x`: 3 edits, in 1 session.")})
    assert left == "# T\n\n*Made by rules.*\n\n## B\n- Use tabs\n"


def test_it_keeps_approved_lines_in_the_words_that_were_approved() -> None:
    rejected = {substance("- `x`: 4 edits, in 2 sessions.")}
    keep = "- `x`: 3 edits, in 1 session.\n"
    assert without("- `x`: 5 edits, in 2 sessions.\n- b\n", rejected, keep=keep) == f"{keep}- b\n"
    assert without(f"{keep}- b\n", rejected, keep=keep) == f"{keep}- b\n"


def test_headings_and_a_remark_on_the_note_say_nothing() -> None:
    assert not says_something("---\ntitle: T\n---\n# T\n\n*Made by rules, without a model.*\n\n## A\n")
    assert says_something("# T\n\n*Made by rules.*\n\n- Use tabs\n")
    assert says_something("**Never** push to main\n")


def test_a_line_with_another_count_is_not_taken_out() -> None:
    old = "- `x`: 3 edits, in 1 session.\n- Use tabs\n"
    assert taken_out("- `x`: 4 edits, in 2 sessions.\n", old) == ["- Use tabs"]
