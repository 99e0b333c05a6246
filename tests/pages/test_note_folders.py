"""The tree of notes where it is too large to stand open: a folder at a time, and words found by an index."""

from collections.abc import Iterator
from typing import Any

import pytest

from memory.notes import browsing
from tests import database
from tests.pages import made

URL = "/t/acme/notes/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team with more notes than two has a large tree, of which three stand in a folder at once."""
    monkeypatch.setattr(browsing, "WHOLE", 2)
    monkeypatch.setattr(browsing, "AT_ONCE", 3)


@pytest.fixture
def notes(acme: Any, alice: Any, bob: Any, small: None) -> Iterator[None]:
    for path in ("project/shop/api/one.md", "project/shop/two.md", "project/Till/three.md", "tools/git/four.md"):
        made.note(acme, alice, path=path, text=f"# Of {path.rsplit('/', 1)[-1]}\n\n- Said\n")
    made.note(acme, alice, path="general/mine.md", text="# Only mine\n\n- Private words\n", is_private=True)
    made.note(acme, bob, path="general/his.md", text="# Only his\n\n- Private words\n", is_private=True)
    yield


@pytest.mark.usefixtures("notes")
def test_it_shows_the_outermost_folders_closed_with_their_counts(logged_in: Any, alice: Any) -> None:
    page = logged_in(alice).get(URL).content.decode()
    assert "5 notes that agents" in page and "Of two.md" not in page
    assert 'hx-get="?folder=project"' in page and 'href="?folder=project"' in page
    assert "?folder=members%2Falice" in page and "bob" not in page
    assert "?folder=general" not in page  # all that the team has there is private


@pytest.mark.usefixtures("notes")
def test_a_folder_is_a_piece_of_the_tree_or_a_page(logged_in: Any, alice: Any) -> None:
    browser = logged_in(alice)
    piece = browser.get(URL, {"folder": "project/shop"}, headers=HTMX).content.decode()
    assert piece.startswith("<ul") and "Of two.md" in piece and "?folder=project%2Fshop%2Fapi" in piece
    assert "Of one.md" not in piece and "Till" not in piece
    page = browser.get(URL, {"folder": "project/shop"}).content.decode()
    assert "<h1" in page and 'href="?folder=project"' in page and "Of two.md" in page
    # Paths are compared without case, and shown as they were written.
    above = browser.get(URL, {"folder": "Project"}, headers=HTMX).content.decode()
    assert ">Till<" in above and "?folder=project%2Ftill" in above
    assert "Of three.md" in browser.get(URL, {"folder": "project/till"}, headers=HTMX).content.decode()


@pytest.mark.usefixtures("notes")
def test_a_space_is_its_members_own(logged_in: Any, alice: Any, bob: Any) -> None:
    own = logged_in(alice).get(URL, {"folder": "members/alice/general"}, headers=HTMX).content.decode()
    assert "Only mine" in own
    for folder in ("members/bob", "members/bob/general", "members", "general", "members/alice/general/x"):
        page = logged_in(alice).get(URL, {"folder": folder}).content.decode()
        assert "Only his" not in page and "Nothing in this folder" in page


def test_a_large_space_opens_by_folder_too(logged_in: Any, acme: Any, alice: Any, small: None) -> None:
    for name in ("a", "b", "c"):
        made.note(acme, alice, path=f"general/{name}.md", text=f"# Mine {name}\n\n- x\n", is_private=True)
    browser, url = logged_in(alice), f"/t/acme/spaces/{alice.public_id}/"
    assert "?folder=general" in (page := browser.get(url).content.decode()) and "Mine a" not in page
    assert "Mine a" in browser.get(url, {"folder": "general"}, headers=HTMX).content.decode()


def test_a_full_folder_goes_on_where_it_stopped(logged_in: Any, acme: Any, alice: Any, small: None) -> None:
    for name in "abcdefg":
        made.note(acme, alice, path=f"general/{name}.md", text=f"# Note {name}\n\n- x\n")
    made.note(acme, alice, path="general/sub/x.md", text="# Note x\n\n- x\n")
    browser, seen, address = logged_in(alice), [], "?folder=general"
    while address:
        piece = browser.get(f"{URL}{address}", headers=HTMX).content.decode()
        seen.append([name for name in "abcdefgx" if f"Note {name}" in piece])
        assert ("general%2Fsub" in piece) == (len(seen) == 3)
        address = piece.partition('hx-get="?folder=general&amp;after=')[2].partition('"')[0]
        address = address and f"?folder=general&after={address}"
    assert seen == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


@pytest.mark.usefixtures("notes")
def test_words_are_found_whatever_the_size(logged_in: Any, alice: Any, bob: Any) -> None:
    browser = logged_in(alice)
    page = browser.get(URL, {"q": "SHOP said"}, headers=HTMX).content.decode()
    assert "Of one.md" in page and "Of two.md" in page and "Of three.md" not in page
    mine = browser.get(URL, {"q": "private"}, headers=HTMX).content.decode()
    assert "Only mine" in mine and "Only his" not in mine
    some = browser.get(URL, {"q": "md"}, headers=HTMX).content.decode()
    assert "More notes have" in some


def test_letters_are_found_by_an_index(committed: None) -> None:
    """Without it a word that few notes hold costs the reading of all."""
    with database.migrator() as server:
        server.execute("SET enable_seqscan = off")
        plan = server.execute(
            "EXPLAIN SELECT id FROM notes_revision"
            " WHERE upper(title || chr(10) || description || chr(10) || text) LIKE '%RETRY%'"
        ).fetchall()
    assert any("notes_revision_letters" in line for (line,) in plan)
