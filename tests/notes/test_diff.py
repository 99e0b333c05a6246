"""What a reviewer sees of a change, and how two changes become one text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.notes.diff import Conflict, DiffLine, Fold, Word, fold, merge3, unified, word_diff, words_between

some_lines = ["a b c\n", "a b d\n", "x\n", "\n", "y\r\n", "我们用\n", "long line of words\n"]
lines = st.lists(st.sampled_from(some_lines), max_size=12)
texts = st.builds(lambda whole, last: "".join(whole) + last, lines, st.sampled_from(["", "end", "a b c"]))


def shown(row):
    signs = {"same": "{}", "added": "{{+{}+}}", "removed": "[-{}-]"}
    return row.kind, "".join(signs[word.mark].format(word.visible) for word in row.words)


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("same\n", "same\n", [("same", "same")]),
        ("", "", []),
        ("", "a\n", [("added", "{+a↵+}")]),
        ("a\n", "", [("removed", "[-a↵-]")]),
        ("Use 3 retries.\n", "Use 5 retries.\n", [("changed", "Use [-3-]{+5+} retries.")]),
        ("Never use -f.\n", "Never use -f or --force.\n", [("changed", "Never use -f{+ or --force+}.")]),
        ("the old rule stays\n", "the brand new rule stays\n", [("changed", "the [-old-]{+brand new+} rule stays")]),
        ("one two\n", "three four\n", [("removed", "[-one two↵-]"), ("added", "{+three four↵+}")]),
        ("end", "end\n", [("changed", "end{+↵+}")]),
        ("a b\r\n", "a b\n", [("changed", "a b[-⟨U+000D⟩-]")]),
        ("a b\r\n", "a b\r\n", [("same", "a b")]),
        ("run the tests", "run the \u202etests\u200b", [("changed", "run the {+⟨U+202E⟩+}tests{+⟨U+200B⟩+}")]),
        ("我们使用数据库连接池。", "我们不使用数据库的连接池。", [("changed", "我们{+不+}使用数据库{+的+}连接池。")]),
        ("ใช้สามครั้ง", "ใช้ห้าครั้ง", [("changed", "ใช้[-ส-]{+ห้+}า[-ม-]ครั้ง")]),
        ("<b>x</b> y", "<i>x</i> y", [("changed", "<[-b-]{+i+}>x</[-b-]{+i+}> y")]),
    ],
)
def test_it_marks_the_words_that_changed(old, new, rows):
    assert [shown(row) for row in word_diff(old, new)] == rows


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("How we retry calls", "How we retry all calls", "How we retry {+all +}calls"),
        ("project", "rule", "[-project-]{+rule+}"),
        ("", "rule", "{+rule+}"),
        ("rule", "", "[-rule-]"),
        ("no code here", "the shell there", "[-no code here-]{+the shell there+}"),
    ],
)
def test_it_marks_the_words_of_a_value(old, new, words):
    assert shown(DiffLine("changed", 1, 1, words_between(old, new)))[1] == words


def test_it_pairs_the_lines_that_are_versions_of_each_other():
    old = "Use 3 retries per call.\nNever use -f.\n"
    new = "Always run the tests.\nUse 5 retries per call.\nNever use -f or --force.\n"
    rows = word_diff(old, new)
    assert [(row.kind, row.old_number, row.new_number) for row in rows] == [
        ("added", None, 1),
        ("changed", 1, 2),
        ("changed", 2, 3),
    ]


@given(texts, texts)
def test_the_rows_give_both_texts_back_and_number_every_line(old, new):
    rows = word_diff(old, new)
    assert "".join(row.old for row in rows) == old
    assert "".join(row.new for row in rows) == new
    assert [row.old_number for row in rows if row.old_number] == list(range(1, line_count(old) + 1))
    assert [row.new_number for row in rows if row.new_number] == list(range(1, line_count(new) + 1))
    assert all(row.old == row.new for row in rows if row.kind == "same")


def line_count(text):
    return text.count("\n") + bool(text and not text.endswith("\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n" * 32_000, "b\n" + "a\n" * 31_000),
        ("a\nb\n" * 16_000, "b\nb\na\n" * 10_000),
        ("".join(f"{n * 7919 % 50}\n" for n in range(20_000)), "".join(f"{n * 104_729 % 53}\n" for n in range(20_000))),
        (" ".join(str(n * 7919 % 30) for n in range(20_000)), " ".join(str(n * 104_729 % 31) for n in range(20_000))),
        (" ".join(f"w{n}" for n in range(9_000)), "\n".join(f"w{n}" for n in range(9_000))),
    ],
    ids=["one line again and again", "two lines", "few lines in disorder", "one line of words", "joined lines"],
)
def test_it_comes_to_an_end_on_64_kb_of_the_worst(old, new):
    rows = word_diff(old, new)
    assert "".join(row.old for row in rows) == old
    assert "".join(row.new for row in rows) == new


def test_it_folds_what_did_not_change():
    old = "".join(f"{n}\n" for n in range(20))
    folded = fold(word_diff(old, old.replace("10\n", "ten\n")), context=2)
    assert [row.count if isinstance(row, Fold) else row.old_number for row in folded] == [8, 9, 10, 11, None, 12, 13, 7]
    assert fold(word_diff(old, old)) == [Fold(tuple(word_diff(old, old)))]
    assert fold([]) == []


def test_it_does_not_fold_a_single_row():
    one = DiffLine("same", 1, 1, (Word("same", "x\n"),))
    assert fold([one]) == [one]


def test_it_writes_a_patch():
    patch = unified("a\nb\nc\nx\nd\ne", "a\nB\nc\nx\nd\ne\n", context=1, names=("x.md", "y.md"))
    assert patch == (
        "--- x.md\n+++ y.md\n"
        "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        "@@ -5,2 +5,2 @@\n d\n-e\n\\ No newline at end of file\n+e\n"
    )
    assert unified("", "a\n") == "--- old\n+++ new\n@@ -0,0 +1,1 @@\n+a\n"
    assert unified("a\n", "a\n") == ""


@given(texts, texts)
def test_a_whole_patch_holds_both_texts(old, new):
    patch = unified(old, new, context=100).replace("\n\\ No newline at end of file\n", "\x00\n")
    rows = patch.split("\n")[3:-1]
    assert "".join(f"{row[1:]}\n" for row in rows if row[0] in " -").replace("\x00\n", "") == (old if rows else "")
    assert "".join(f"{row[1:]}\n" for row in rows if row[0] in " +").replace("\x00\n", "") == (new if rows else "")
    assert bool(rows) == (old != new)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nb\nc\n", "a\nc\n", "a\nc\n"),
        ("a\nb\n", "a\nx\nb\n", "a\nx\nb\n", "a\nx\nb\n"),
        ("a\nb\n", "a\nb\nNever use -f\n", "A\nb\n", "A\nb\nNever use -f\n"),
        ("a\nb", "a\nb\n", "A\nb", "<CONFLICT>"),
        ("", "x\n", "", "x\n"),
        ("a\n", "", "a\n", ""),
    ],
)
def test_it_merges_changes_to_different_lines(base, mine, theirs, merged):
    merge = merge3(base, mine, theirs)
    if merged == "<CONFLICT>":
        assert len(merge.conflicts) == 1
    else:
        assert (merge.text, merge.conflicts) == (merged, ())


def test_it_marks_what_both_changed():
    merge = merge3("a\nb\nc\n", "a\nmine\nc\n", "a\ntheirs\nc\n")
    assert merge.text == "a\n<<<<<<< mine\nmine\n=======\ntheirs\n>>>>>>> theirs\nc\n"
    assert merge.parts == ("a\n", Conflict("b\n", "mine\n", "theirs\n"), "c\n")
    assert merge.conflicts == (Conflict("b\n", "mine\n", "theirs\n"),)


@given(texts, texts, texts)
def test_a_merge_keeps_what_one_side_did(base, mine, theirs):
    assert merge3(base, mine, base).text == mine
    assert merge3(base, base, theirs).text == theirs
    assert merge3(base, mine, mine).text == mine
    assert bool(merge3(base, mine, theirs).conflicts) == bool(merge3(base, theirs, mine).conflicts)
