"""The editor's parts: fields and raw text without loss, the preview, and drafts that no window loses for another."""

import re
from typing import Any

import pytest
from django.test import Client

from memory.notes.models import Autosaved, Note, Revision
from memory.tenants import rls
from tests.pages import made
from tests.pages.test_note_edit import typed

DRAFTS = "/t/acme/notes/drafts/"
PREVIEW = "/t/acme/notes/preview/"
ODD = (
    "---\r\ntitle:   'Retries'   # short\r\nowner: {team: x}\r\ntags:\r\n  - a\r\n---\r\n"
    "\r\n# Retries\r\n\r\n- Two\r\n\r\n"
)
HTMX = {"HX-Request": "true", "HX-Target": "editor"}


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice)


def url(of: Any) -> str:
    return f"/t/acme/notes/{of.public_id}/edit/"


def form_of(page: str) -> dict[str, str]:
    """What a browser would send of the editor on a page, with CRLF as browsers do."""
    names = ("revision", "note", "draft", "version", "head", "title", "description", "kind", "tags", "body", "text")
    found = {name: typed(page, name) for name in names if f' name="{name}"' in page}
    return {name: value.replace("\n", "\r\n") for name, value in found.items()}


def drafts(acme: Any) -> list[Any]:
    with rls.tenant_scope(str(acme.pk)):
        return list(Autosaved.objects.select_related("member").order_by("saved_at"))


@pytest.fixture
def odd(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice, path="general/odd.md", text=ODD)


def test_saving_an_untouched_form_changes_no_byte(logged_in: Any, acme: Any, bob: Any, odd: Any) -> None:
    browser = logged_in(bob)
    page = browser.get(url(odd)).content.decode()
    assert typed(page, "title") == "Retries" and typed(page, "tags") == "a" and "owner: team: x" in page
    assert browser.post(url(odd), form_of(page)).status_code == 302
    with rls.tenant_scope(str(acme.pk)):
        assert Revision.objects.get(note=odd).text == ODD


def test_going_to_the_raw_text_and_back_changes_no_byte(logged_in: Any, acme: Any, bob: Any, odd: Any) -> None:
    browser = logged_in(bob)
    page = browser.get(url(odd)).content.decode()
    for wanted in ("raw", "form", "raw", "raw", "form"):
        page = browser.post(url(odd), {**form_of(page), "switch": wanted}, headers=HTMX).content.decode()
        assert "<!doctype" not in page and (' name="head"' in page) == (wanted == "form")
    assert browser.post(url(odd), form_of(page)).status_code == 302
    with rls.tenant_scope(str(acme.pk)):
        assert Revision.objects.get(note=odd).text == ODD


def test_what_was_typed_goes_along_and_nothing_is_saved(logged_in: Any, acme: Any, bob: Any, odd: Any) -> None:
    browser = logged_in(bob)
    form = form_of(browser.get(url(odd)).content.decode())
    page = browser.post(url(odd), {**form, "title": "New", "body": "- Mine\r\n", "switch": "raw"}).content.decode()
    assert typed(page, "text") == "---\ntitle: New   # short\nowner: {team: x}\ntags:\n  - a\n---\n- Mine\n"
    with rls.tenant_scope(str(acme.pk)):
        assert Note.objects.get(pk=odd.pk).current.number == 1


def test_raw_text_that_has_no_fields_stays_raw(logged_in: Any, bob: Any, note: Any) -> None:
    answer = logged_in(bob).post(url(note), {"text": "---\ntitle: [x\n---\nBody\n", "revision": "1", "switch": "form"})
    page = answer.content.decode()
    assert answer.status_code == 422 and "title: [x" in typed(page, "text") and "Mend it here" in page


def test_a_changed_field_is_saved(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    form = form_of(browser.get(url(note)).content.decode())
    assert browser.post(url(note), {**form, "tags": "pay, retry"}).status_code == 302
    with rls.tenant_scope(str(acme.pk)):
        text = Note.objects.select_related("current").get(pk=note.pk).current.text
    assert text == made.TEXT.replace("again\n---", "again\ntags: [pay, retry]\n---")


def test_the_preview_is_what_the_reader_will_see(logged_in: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    made_text = (
        f"---\ntitle: Retries\n---\n# Retries\n\n- **Two** [x](retries.md) {note.public_id}\n<script>x</script>\n"
    )
    page = browser.post(PREVIEW, {"text": made_text, "note": note.public_id, "revision": "1"}).content.decode()
    assert "<strong>Two</strong>" in page and "<script>" not in page and page.count("Retries") == 1
    assert page.count(f'href="/t/acme/notes/{note.public_id}/"') == 2
    page = browser.post(PREVIEW, {"head": "", "body": "", "title": "x" * 300}).content.decode()
    assert "Shorten title" in page and "Write something" in page
    with rls.tenant_scope(str(note.tenant_id)):
        assert not Autosaved.objects.exists()


def test_a_draft_is_kept_and_restored_and_goes_when_it_is_sent(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    form = {
        "note": note.public_id,
        "revision": "1",
        "text": made.TEXT.replace("three", "two"),
        "draft": "",
        "version": "0",
    }
    state = browser.post(DRAFTS, form).content.decode()
    assert "Draft saved" in state and typed(state, "version") == "1"
    page = browser.get(url(note)).content.decode()
    assert "This is your draft" in page and "Try two times" in page
    assert "Try three times" in browser.get(url(note) + "?fresh=1").content.decode()
    sent = {**form_of(page), "body": typed(page, "body") + "- More\n"}
    assert browser.post(url(note), sent).status_code == 302
    assert drafts(acme) == [] and "This is your draft" not in browser.get(url(note)).content.decode()


def test_two_windows_with_one_draft_both_keep_their_words(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    form = {"note": note.public_id, "revision": "1", "text": "- one\n", "draft": "", "version": "0"}
    first = form_of(browser.post(DRAFTS, form).content.decode())
    second = form_of(browser.get(url(note)).content.decode())
    assert first["draft"] == second["draft"]
    browser.post(DRAFTS, {**form, **first, "text": "- one, from the first\n"})
    state = browser.post(DRAFTS, {**form, "draft": second["draft"], "version": second["version"], "text": "- two\n"})
    assert "beside the one in your other window" in state.content.decode()
    assert [draft.text for draft in drafts(acme)] == ["- one, from the first\n", "- two\n"]
    # The second is sent: only its own draft goes.
    mine = form_of(state.content.decode())
    assert browser.post(url(note), {"text": "- two\n", "revision": "1", **mine}).status_code == 302
    assert [draft.text for draft in drafts(acme)] == ["- one, from the first\n"]


def test_a_draft_that_went_on_in_another_window_is_not_lost_by_sending_the_old_one(
    logged_in: Any, acme: Any, bob: Any, note: Any
) -> None:
    browser = logged_in(bob)
    form = {"note": note.public_id, "revision": "1", "text": "- one\n", "draft": "", "version": "0"}
    first = form_of(browser.post(DRAFTS, form).content.decode())
    browser.post(DRAFTS, {**form, **first, "text": "- one and more\n"})
    assert browser.post(url(note), {"text": "- one\n", "revision": "1", **first}).status_code == 302
    assert [draft.text for draft in drafts(acme)] == ["- one and more\n"]


def test_a_draft_is_thrown_away(logged_in: Any, acme: Any, bob: Any, mia: Any, note: Any) -> None:
    browser = logged_in(bob)
    browser.post(DRAFTS, {"note": note.public_id, "revision": "1", "text": "- mine\n"})
    [draft] = drafts(acme)
    where = f"{DRAFTS}{draft.public_id}/discard/"
    assert logged_in(mia).post(where).status_code == 404 and len(drafts(acme)) == 1
    assert browser.get(where).status_code == 405
    assert browser.post(where)["Location"] == url(note) and drafts(acme) == []
    assert browser.post(where).status_code == 404


def test_nobody_else_sees_a_draft(logged_in: Any, acme: Any, bob: Any, alice: Any, note: Any) -> None:
    logged_in(bob).post(DRAFTS, {"note": note.public_id, "revision": "1", "text": "- secret plan\n"})
    [draft] = drafts(acme)
    for address in (url(note), f"{url(note)}?draft={draft.public_id}", "/t/acme/notes/new/"):
        assert "secret plan" not in logged_in(alice).get(address).content.decode()
    assert logged_in(alice).get(f"{url(note)}?draft={draft.public_id}").status_code == 404


def test_new_notes_have_drafts_of_their_own(logged_in: Any, acme: Any, bob: Any) -> None:
    browser, new = logged_in(bob), "/t/acme/notes/new/"
    for name in "ab":
        browser.post(DRAFTS, {"path": f"general/{name}.md", "text": f"- {name}\n", "space": "own"})
    page = browser.get(new).content.decode()
    assert "general/a.md" in page and "general/b.md" in page and typed(page, "body") == "\n"
    [first, _] = drafts(acme)
    page = browser.get(f"{new}?draft={first.public_id}").content.decode()
    assert typed(page, "path") == "general/a.md" and '<option value="own" selected>' in page and "- a" in page


def test_nothing_typed_makes_no_draft(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    browser.post(DRAFTS, form_of(browser.get(url(note)).content.decode()))
    browser.post(DRAFTS, {**form_of(browser.get("/t/acme/notes/new/").content.decode()), "path": ""})
    assert drafts(acme) == []


def test_a_draft_keeps_no_secret_and_no_flood(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser, token = logged_in(bob), "ghp_" + "Ab3dEf6hIj" * 3 + "Kl9mNo"
    state = browser.post(DRAFTS, {"note": note.public_id, "text": f"- use {token}\n"}).content.decode()
    assert "A secret in it is not kept" in state and "[secret:" in drafts(acme)[0].text
    assert "no draft of it is kept" in browser.post(DRAFTS, {"text": "x" * 200_000}).content.decode()
    for number in range(32):
        browser.post(DRAFTS, {"path": f"general/{number}.md", "text": f"- {number}\n"})
    assert len(drafts(acme)) == 30 and drafts(acme)[-1].text == "- 31\n"


def test_a_draft_tells_early_that_somebody_saved(logged_in: Any, alice: Any, bob: Any, note: Any) -> None:
    made.rewritten(note, alice, made.TEXT.replace("three", "six"))
    state = logged_in(bob).post(DRAFTS, {"note": note.public_id, "revision": "1", "text": "- x\n"}).content.decode()
    assert "has just saved revision 2" in state
    assert "this text was begun before" in logged_in(bob).get(url(note)).content.decode()


def test_a_member_writes_into_their_own_space(logged_in: Any, acme: Any, mia: Any, bob: Any) -> None:
    form = {"path": "general/mine.md", "text": "- Mine alone\n", "space": "own"}
    answer = logged_in(mia).post("/t/acme/notes/new/", form)
    assert "Mine alone" in logged_in(mia).get(answer["Location"]).content.decode()
    assert logged_in(bob).get(answer["Location"]).status_code == 404
    with rls.tenant_scope(str(acme.pk)):
        assert str(Note.objects.get().member_id) == str(mia.pk)


def test_the_parts_need_login_and_the_role(logged_in: Any, vera: Any, acme: Any) -> None:
    for address in (DRAFTS, PREVIEW):
        assert Client().post(address).status_code == 302
        assert logged_in(vera).post(address, {"text": "x"}).status_code == 403
        assert logged_in(vera).get(address).status_code in (403, 405)


def wrong_at(page: str) -> dict[str, str]:
    """What is said at each input that is marked as wrong; the input names the list of it."""
    found = {}
    for tag in re.findall(r"<(?:input|textarea)[^>]*aria-invalid[^>]*>", page):
        name, listed = re.search(r' name="(\w+)"', tag), re.search(r'aria-describedby="(\w+-error) ', tag)
        assert name and listed, tag
        said = re.search(rf'<ul class="errorlist" id="{listed[1]}" role="alert">(.*?)</ul>', page)
        assert said, listed[1]
        found[name[1]] = " ".join(re.findall(r"<li[^>]*>(.*?)</li>", said[1]))
    return found


NEW = "/t/acme/notes/new/"
LONG = "word " * 60


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"title": LONG}, {"title": "Shorten title to 200"}),
        ({"title": LONG, "description": LONG}, {"title": "Shorten title", "description": "Shorten description"}),
        ({"kind": "x" * 41}, {"kind": "Shorten kind to 40"}),
        ({"tags": "y" * 41}, {"tags": "tags of 1 to 40"}),
        ({"body": " "}, {"body": "Write something below"}),
        ({"body": "x" * 70_000}, {"body": "shorten it to 64 KB"}),
        # More than any frontmatter may hold, so that no text can be made of it.
        ({"title": LONG * 30, "tags": "kept"}, {"title": "Shorten title"}),
        ({"description": LONG * 30}, {"description": "Shorten description"}),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_nothing_typed_is_lost(
    logged_in: Any, bob: Any, note: Any, changed: dict[str, str], said: dict[str, str]
) -> None:
    browser = logged_in(bob)
    form = {**form_of(browser.get(url(note)).content.decode()), **changed}
    answer = browser.post(url(note), form)
    page = answer.content.decode()
    assert answer.status_code == 422 and "Not saved yet" in page
    found = wrong_at(page)
    assert set(found) == set(said) and all(said[name] in found[name] for name in said)
    for name, value in form.items():
        if name not in ("version", "head"):
            assert " ".join(typed(page, name).split()) == " ".join(value.split()), name


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("elsewhere/x.md", "Start the path with one of"),
        ("general/x", "End the path with .md"),
        ("general/../x.md", "No segment may start with a dot"),
        ("project/payments/retries.md", "There is a note at this path already"),
    ],
)
def test_a_bad_path_is_told_at_the_path(logged_in: Any, bob: Any, note: Any, path: str, said: str) -> None:
    browser = logged_in(bob)
    form = {**form_of(browser.get(NEW).content.decode()), "path": path, "title": "Mine", "body": "- Mine\n"}
    answer = browser.post(NEW, form)
    page = answer.content.decode()
    assert answer.status_code in (409, 422) and list(wrong_at(page)) == ["path"] and said in wrong_at(page)["path"]
    assert (typed(page, "path"), typed(page, "title"), typed(page, "body")) == (path, "Mine", "- Mine\n")


def test_raw_text_and_a_proposal_tell_it_at_the_text(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser, text = logged_in(bob), f"---\ntitle: {LONG}\n---\n- x\n"
    page = browser.post(url(note), {"text": text, "revision": "1"}).content.decode()
    assert "Shorten title" in wrong_at(page)["text"] and typed(page, "text") == text
    page = browser.post(url(note), {"text": "a\n<<<<<<< mine\n", "revision": "1"}).content.decode()
    assert "still marks two versions" in wrong_at(page)["text"]
    changed = made.proposal(acme, text=made.TEXT.replace("three", "five"))
    where = f"/t/acme/proposals/{changed.public_id}/edit/"
    page = browser.post(where, {"text": text, "shown": made.shown(changed)}).content.decode()
    assert "Shorten title" in wrong_at(page)["text"] and typed(page, "text") == text


def test_fields_too_long_for_any_text_are_told_while_one_types(logged_in: Any, acme: Any, bob: Any, note: Any) -> None:
    browser = logged_in(bob)
    form = {**form_of(browser.get(url(note)).content.decode()), "title": LONG * 30}
    assert "Shorten title" in browser.post(PREVIEW, form).content.decode()
    assert "no draft is kept" in browser.post(DRAFTS, form).content.decode() and drafts(acme) == []
    switched = browser.post(url(note), {**form, "switch": "raw"}).content.decode()
    assert list(wrong_at(switched)) == ["title"], "the raw text could not show it"


def test_a_head_that_is_none_is_not_found(logged_in: Any, bob: Any, note: Any) -> None:
    for address in (url(note), DRAFTS, PREVIEW):
        assert logged_in(bob).post(address, {"head": "---\ntitle: [x\n---\n", "body": "x"}).status_code == 404
