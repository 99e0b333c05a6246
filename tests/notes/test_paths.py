"""Which texts are note paths, and which of them are the same note."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.notes.paths import InvalidPath, clean_path, family, path_key, project_slug, slug, tool_name


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Tools/Bash/Flags.md", "tools/bash/flags.md"),
        ("project/Thiết kế.md", unicodedata.normalize("NFD", "project/Thiết kế.md")),
        ("tools//bash/./flags.md", "tools/bash/flags.md"),
        ("general/STRASSE.md", "general/straße.md"),
        ("./general/a.md", "general/a.MD"),
        ("general/a.md/", "general/a.md"),
    ],
)
def test_it_takes_two_spellings_for_one_note(first, second):
    assert clean_path(first) == clean_path(second)
    assert hash(clean_path(first)) == hash(clean_path(second))


def test_it_shows_the_spelling_it_was_given():
    path = clean_path("Tools//Bash/./Flags.md")
    assert (path.shown, path.key, str(path)) == ("Tools/Bash/Flags.md", "tools/bash/flags.md", "Tools/Bash/Flags.md")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("../../other/profile/role.md", "dots"),
        ("profile/../x.md", "dots"),
        ("profile/%2e%2e/%2e%2e/x.md", "encoded"),
        ("profile/a%2Fb.md", "encoded"),
        ("profile\\..\\x.md", "backslash"),
        ("/etc/passwd", "absolute"),
        ("/profile/x.md", "absolute"),
        ("C:\\x.md", "backslash"),
        ("C:/x.md", "forbidden_character"),
        ("general/x.md:stream.md", "forbidden_character"),
        ("profile/role.md\x00.txt", "invisible_character"),
        ("profile/ro\u202ele.md", "invisible_character"),
        ("profile/ro\u200ble.md", "invisible_character"),
        ("profile/ro\ufffdle.md", "invisible_character"),
        ("profile/ro\nle.md", "invisible_character"),
        ("profile/\ud800.md", "invisible_character"),
        ("con.md", "reserved_name"),
        ("general/con.md", "reserved_name"),
        ("general/COM1.tar.md", "reserved_name"),
        ("general/nul /x.md", "edges"),
        ("general/lpt¹.md", "reserved_name"),
        ("general/.hidden.md", "dots"),
        ("general/.md", "dots"),
        ("general/...md", "dots"),
        ("general/a./x.md", "edges"),
        ("general/ a.md", "edges"),
        ("general/a.md ", "edges"),
        ("a/" + "b" * 300 + ".md", "segment_too_long"),
        ("general/" + "b" * 98 + ".md", "segment_too_long"),
        ("general/" + "界" * 90 + ".md", "segment_too_long"),
        ("/".join(["general", "b" * 90, "c" * 90, "d" * 90 + ".md"]), "too_long"),
        ("general/" * 1000 + "x.md", "too_long"),
        ("general/b/c/d/e/f/g.md", "too_deep"),
        ("general/x.txt", "not_markdown"),
        ("x.md", "unknown_family"),
        ("secrets/x.md", "unknown_family"),
        ("general", "unknown_family"),
        ("", "empty"),
        (" ", "empty"),
        ("./.", "unknown_family"),
        ("general/．．/x.md", "dots"),
        ("general/‥/x.md", "dots"),
        ("general/…/x.md", "dots"),
        ("general/．git/x.md", "dots"),
        ("general/a／b.md", "lookalike"),
        ("general/℀.md", "lookalike"),
        ("general/a＼b.md", "lookalike"),
        ("general/％2e％2e/x.md", "lookalike"),
        ("general/ｃｏｎ.md", "reserved_name"),
        ("general/x.md/y.md", "folder_like_note"),
        ("general/X.MD/y.md", "folder_like_note"),
        ("general/ghp_" + "A1b2C3d4E5" * 4 + ".md", "secret"),
        ("project/shop/AKIAZFKFZNFF4XFKQ2LM.md", "secret"),
    ],
)
def test_it_refuses_what_could_leave_its_space_or_pass_for_another(raw, reason):
    with pytest.raises(InvalidPath) as refused:
        clean_path(raw)
    assert refused.value.reason == reason
    assert refused.value.advice == str(refused.value) != ""


@pytest.mark.parametrize(
    "raw",
    [
        "general/为什么？.md",
        "general/１２３.md",
        "general/ﬁle.md",
        "project/app-9f8e7d6c5b4a39281706f5e4d3c2b1a098765432/deploy.md",
        "general/0191f3a2-7c1d-7b4e-9a53-3f0c2d1e4b5a.md",
        "tools/aws/access-keys-and-password-rotation.md",
        "general/api_key.md",
    ],
)
def test_it_takes_words_of_all_scripts_and_names_about_secrets(raw):
    assert clean_path(raw).shown == raw


def test_it_does_not_say_the_secret():
    secret = "ghp_" + "A1b2C3d4E5" * 4
    with pytest.raises(InvalidPath) as refused:
        clean_path(f"general/{secret}.md")
    assert secret not in refused.value.advice


@pytest.mark.parametrize(
    ("raw", "of_family", "project", "tool"),
    [
        ("Profile/role.md", "profile", None, None),
        ("tools/Bash/flags.md", "tools", None, "bash"),
        ("tools/index.md", "tools", None, None),
        ("project/Payments/api/retry.md", "project", "payments", None),
        ("project/Thiết kế.md", "project", None, None),
        ("general/x.md", "general", None, None),
    ],
)
def test_it_names_the_family_project_and_tool(raw, of_family, project, tool):
    path = clean_path(raw)
    assert (family(path), project_slug(path), tool_name(path)) == (of_family, project, tool)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("github.com/Acme/payments.git", "github-com-acme-payments-git"),
        ("Thiết kế Đồ họa", "thiet-ke-do-hoa"),
        ("Ångström & Łódź", "angstrom-lodz"),
        ("数据库 连接池", "数据库-连接池"),
        ("हिन्दी", "हिन्दी"),
        ("한국어", "한국어"),
        ("🎉", "untitled"),
        ("", "untitled"),
        ("CON", "con-x"),
        ("../../etc", "etc"),
        ("a" * 200, "a" * 60),
    ],
)
def test_it_makes_a_segment_of_any_text(text, expected):
    assert slug(text) == expected


@given(st.text(max_size=100))
def test_every_slug_is_a_valid_segment_and_its_own_slug(text):
    path = clean_path(f"project/{slug(text)}/a.md")
    assert project_slug(path) == path_key(slug(text))
    assert slug(slug(text)) == slug(text)


@given(st.text(alphabet=st.sampled_from("aÅß\u0301İ/.%:\\ é界\u200b\x00~-"), max_size=40))
def test_an_accepted_path_stays_itself_and_inside_its_family(text):
    try:
        path = clean_path(f"general/{text}.md")
    except InvalidPath:
        return
    assert clean_path(path.shown).shown == path.shown
    assert clean_path(path.key).key == path.key
    assert ".." not in path.key.split("/")
    assert path.key.startswith("general/")
