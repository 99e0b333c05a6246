"""A folder and a space, kept in step by the command."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.notes import folders
from memory.notes.models import Note, Proposal
from tests.pages import made

NOTE = "# Flags\n\n- one\n- two\n- three\n"
PATH = "tools/bash/flags.md"


@pytest.fixture
def root(tmp_path: Path, acme: Any) -> Path:
    return tmp_path


def sync(root: Path, **options: Any) -> list[str]:
    from io import StringIO

    said = StringIO()
    call_command("sync_notes", str(root), tenant="acme", stdout=said, **options)
    return said.getvalue().splitlines()


def text(bound: Any, acme: Any) -> str | None:
    with bound(acme):
        note = Note.objects.present().select_related("current").filter(path_key=PATH).first()
        return note.current.text if note and note.current else None


def test_it_goes_both_ways_and_stops(root: Path, acme: Any, bob: Any, bound: Any) -> None:
    note = made.note(acme, bob, path=PATH, text=NOTE)
    file = root / PATH
    assert sync(root)[0].startswith("written") and file.read_text() == NOTE
    assert sync(root) == ["In step already"]
    file.write_text(NOTE.replace("three", "3"))
    made.rewritten(note, bob, NOTE.replace("# Flags", "# Bash flags"))
    both = NOTE.replace("three", "3").replace("# Flags", "# Bash flags")
    assert sync(root)[0].startswith("merged")
    assert file.read_text() == both == text(bound, acme)
    (root / "general").mkdir()
    (root / "general/new.md").write_bytes(b"no end of line\r\nhere")
    assert sync(root)[0].startswith("created")
    assert sync(root) == ["In step already"] and (root / "general/new.md").read_bytes() == b"no end of line\r\nhere"
    file.unlink()
    assert sync(root)[0].startswith("deleted") and text(bound, acme) is None
    assert sync(root) == ["In step already"] and not file.exists()


def test_what_it_can_not_merge_is_proposed_once(root: Path, acme: Any, bob: Any, bound: Any) -> None:
    note = made.note(acme, bob, path=PATH, text=NOTE)
    sync(root)
    (root / PATH).write_text(NOTE.replace("two", "II"))
    made.rewritten(note, bob, NOTE.replace("two", "2"))
    assert sync(root)[0].startswith("conflict")
    assert sync(root) == ["In step already"]
    with bound(acme):
        [waiting] = Proposal.objects.open()
    assert "II" in waiting.text and (root / PATH).read_text() == NOTE.replace("two", "II")
    made.approved(waiting, bob)
    sync(root)
    assert sync(root) == ["In step already"] and text(bound, acme) == (root / PATH).read_text()


def test_a_change_wins_over_a_removal(root: Path, acme: Any, bob: Any, bound: Any) -> None:
    note = made.note(acme, bob, path=PATH, text=NOTE)
    sync(root)
    (root / PATH).unlink()
    made.rewritten(note, bob, NOTE + "- four\n")
    sync(root)
    assert (root / PATH).read_text() == NOTE + "- four\n"


@pytest.mark.parametrize("killed_at", ["_put", "_replace"])
def test_a_killed_run_is_finished_by_the_next(
    killed_at: str, root: Path, acme: Any, bob: Any, bound: Any, monkeypatch: Any
) -> None:
    note = made.note(acme, bob, path=PATH, text=NOTE)
    sync(root)
    (root / PATH).write_text(NOTE.replace("three", "3"))
    made.rewritten(note, bob, NOTE.replace("# Flags", "# Bash flags"))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(folders, killed_at, killed)
        sync(root)
    sync(root)
    both = NOTE.replace("three", "3").replace("# Flags", "# Bash flags")
    assert (root / PATH).read_text() == both == text(bound, acme)
    assert sync(root) == ["In step already"]
    with bound(acme):
        assert not Proposal.objects.open().exists()


def test_it_refuses_what_it_can_not_read_safely(root: Path, acme: Any) -> None:
    (root / "general").mkdir()
    (root / "general/a.md").symlink_to("/etc/hostname")
    with pytest.raises(CommandError, match="is a link"):
        sync(root)
    (root / "general/a.md").unlink()
    (root / "general/con.md").write_text("x")
    with pytest.raises(CommandError, match="device name"):
        sync(root)
    with pytest.raises(CommandError, match="no folder"):
        sync(root / "none")


def test_a_private_space_is_kept_apart(root: Path, acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, alice, path="profile/me.md", text="- mine\n", is_private=True)
    assert sync(root) == ["In step already"]
    sync(root, space="members/alice")
    assert (root / "profile/me.md").read_text() == "- mine\n"
