"""/t/<team>/notes/files/: a space's notes out as a zip, and in again."""

import io
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memory.notes.models import Note, Proposal
from tests.notes.test_files_api import edited, unzipped
from tests.pages import made

HERE = "/t/acme/notes/files/"
OUT = "/t/acme/notes/export/"
TEXT = "---\ntitle: Flags\n---\n- Begin with `set -e`\n- Quote variables\n- Use long options\n"


@pytest.fixture
def note(acme: Any, alice: Any) -> Any:
    return made.note(acme, alice, path="tools/bash/flags.md", text=TEXT)


def send(client: Any, *files: tuple[str, bytes], space: str = "team", **headers: str) -> Any:
    uploads = [SimpleUploadedFile(name, raw) for name, raw in files]
    return client.post(HERE, {"files": uploads, "space": space}, headers=headers)


@pytest.mark.parametrize("layout", ["markdown", "skills", "memories"])
def test_what_goes_out_comes_in(
    logged_in: Any, vera: Any, bob: Any, charlie: Any, note: Any, layout: str, globex: Any
) -> None:
    answer = logged_in(vera).get(f"{OUT}?layout={layout}")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Disposition"] == f'attachment; filename="acme-team-{layout}.zip"'
    page = send(logged_in(bob), ("n.zip", answer.content)).content.decode()
    assert "As it was" in page and "It was exported and signed here." in page
    there = logged_in(charlie)
    upload = {"files": SimpleUploadedFile("n.zip", answer.content), "space": "team"}
    assert "New" in there.post("/t/globex/notes/files/", upload).content.decode()
    assert there.get(f"/t/globex/notes/export/?layout={layout}").content == answer.content


def test_changes_are_merged_and_where_they_meet_proposed(
    logged_in: Any, acme: Any, alice: Any, note: Any, bound: Any
) -> None:
    client = logged_in(alice)
    raw = client.get(OUT).content
    made.rewritten(note, alice, TEXT.replace("set -e", "set -eu"))
    merged = edited(raw, "tools/bash/flags.md", "long options", "short options")
    piece = send(client, ("n.zip", merged), **{"HX-Request": "true"}).content.decode()
    assert "<html" not in piece and "Merged" in piece and note.public_id in piece
    clash = edited(raw, "tools/bash/flags.md", "set -e", "set -x")
    page = send(client, ("n.zip", clash)).content.decode()
    with bound(acme):
        proposal = Proposal.objects.open().get()
        assert "set -x" in proposal.text and "set -eu" in Note.objects.get().current.text
    assert "Conflict, proposed" in page and f"/proposals/{proposal.public_id}/" in page
    assert "1 of them waits in the inbox" in " ".join(page.split())


def test_other_tools_files_become_proposals(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    files = (("CLAUDE.md", b"# Rules\n\n- Round half-even\n"), ("ts.mdc", b"---\nglobs: *.ts\n---\nUse strict\n"))
    page = send(logged_in(alice), *files, ("bad.md", b"\xff")).content.decode()
    assert page.count(">Proposed<") == 3 and "it is not UTF-8." in page
    assert "As it was" in send(logged_in(alice), *files).content.decode()
    with bound(acme):
        paths = sorted(Proposal.objects.values_list("note__path", flat=True))
        assert paths == ["general/imported/claude.md", "general/imported/ts.md"]
        assert not Note.objects.live().exists()


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("n.zip", b"no zip", "Send a zip archive"),
        ("n.txt", b"x", "Send a zip archive"),
        ("n.zip", None, "leaves the archive"),
    ],
)
def test_it_says_what_is_wrong_and_takes_nothing_in(
    logged_in: Any, acme: Any, alice: Any, bound: Any, name: str, raw: bytes | None, words: str
) -> None:
    if raw is None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("../../general/a.md", "x")
        raw = packed.getvalue()
    answer = send(logged_in(alice), ("CLAUDE.md", b"# Rules\n"), (name, raw))
    assert answer.status_code == 422 and words in answer.content.decode()
    assert send(logged_in(alice)).status_code == 422
    with bound(acme):
        assert not Note.objects.exists()


def test_an_archive_without_a_note_says_so(logged_in: Any, acme: Any, alice: Any) -> None:
    packed = io.BytesIO()
    zipfile.ZipFile(packed, "w").close()
    assert "No note in it" in send(logged_in(alice), ("n.zip", packed.getvalue())).content.decode()


def test_a_private_space_is_its_members_alone(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice, path="general/own.md", is_private=True)
    mine = logged_in(alice).get(f"{OUT}?space=members/alice")
    assert list(unzipped(mine.content)) == ["general/own.md", "manifest.json"]
    assert "general/own.md" not in unzipped(logged_in(alice).get(OUT).content)
    for query in ("space=members/alice", "space=members/none", "layout=tar"):
        assert logged_in(bob).get(f"{OUT}?{query}").status_code == 404
    assert send(logged_in(bob), ("n.zip", mine.content), space="members/alice").status_code == 404


def test_who_may_what(logged_in: Any, acme: Any, vera: Any, mia: Any, charlie: Any, note: Any, bound: Any) -> None:
    assert "may not propose" in logged_in(vera).get(HERE).content.decode()
    assert send(logged_in(vera), ("CLAUDE.md", b"x")).status_code == 403
    raw = edited(logged_in(mia).get(OUT).content, "tools/bash/flags.md", "set -e", "set -x")
    assert ">Proposed<" in send(logged_in(mia), ("n.zip", raw)).content.decode()
    with bound(acme):
        assert Note.objects.get().current.text == TEXT
    for path in (HERE, OUT):
        assert Client().get(path).status_code == 302
        assert logged_in(charlie).get(path).status_code == 404
    assert logged_in(vera).post(OUT).status_code == 405 and logged_in(vera).put(HERE).status_code == 405
