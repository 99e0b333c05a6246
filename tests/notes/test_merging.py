"""Two sides' changes in one text, as a table."""

import pytest

from memory.notes.merging import merge, undo

BASE = "# T\n\n- one\n- two\n- three\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "kind", "text"),
    [
        (BASE, BASE, BASE, "same", BASE),
        (None, BASE, BASE, "same", BASE),
        (BASE, None, None, "same", None),
        (BASE, BASE, "new\n", "theirs", "new\n"),
        (BASE, "new\n", BASE, "ours", "new\n"),
        (BASE, BASE, None, "theirs", None),
        (BASE, None, BASE, "ours", None),
        (None, None, "new\n", "theirs", "new\n"),
        (BASE, BASE + "- four\n", BASE.replace("one", "ONE"), "merged", "# T\n\n- ONE\n- two\n- three\n- four\n"),
        ("a\nb\n", "A\nb\nc\n", "A\nb\n", "ours", "A\nb\nc\n"),
        # No end of line at the end, Windows line ends, form feeds: bytes stay what they are.
        ("a\nb\nc", "a\nb\nC", "A\nb\nc", "merged", "A\nb\nC"),
        ("a\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nc\r\n", "merged", "A\r\nb\r\nC\r\n"),
        ("a\x0cx\nb\nc\n", "a\x0cx\nb\nC\n", "A\x0cx\nb\nc\n", "merged", "A\x0cx\nb\nC\n"),
    ],
)  # fmt: skip
def test_it_brings_both_together(base: str, ours: str, theirs: str, kind: str, text: str) -> None:
    outcome = merge(base, ours, theirs)
    assert (outcome.kind, outcome.text) == (kind, text)
    assert outcome.is_clean and not outcome.conflicts


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        (BASE, BASE.replace("two", "2"), BASE.replace("two", "II")),
        (BASE, None, BASE + "- four\n"),
        (BASE, BASE + "- four\n", None),
        (None, "mine\n", "theirs\n"),
    ],
)
def test_it_says_where_it_can_not(base: str, ours: str, theirs: str) -> None:
    outcome = merge(base, ours, theirs)
    assert not outcome.is_clean and outcome.conflicts


def test_it_takes_one_change_back_and_keeps_the_later_ones() -> None:
    made = BASE.replace("- two\n", "- two\n- poison\n")
    later = made.replace("# T", "# Title")
    assert undo(later, made=made, before=BASE).text == BASE.replace("# T", "# Title")
    assert undo(made, made=made, before=BASE).kind == "theirs"
    assert undo(BASE, made=made, before=BASE).kind == "same"
    assert undo(made.replace("poison", "bait"), made=made, before=BASE).kind == "conflict"
    assert undo("new\n", made="new\n", before=None).text is None
