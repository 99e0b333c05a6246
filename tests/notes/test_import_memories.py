"""Other tools' memories become proposals."""

from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from memory.notes.models import Note, Proposal


def run(*places: Path, **options: Any) -> str:
    said = StringIO()
    call_command("import_memories", *map(str, places), tenant="acme", stdout=said, **options)
    return said.getvalue()


def test_it_proposes_what_is_there_once(tmp_path: Path, acme: Any, bound: Any) -> None:
    root = tmp_path / "Payments"
    (root / ".cursor/rules").mkdir(parents=True)
    (root / "memory").mkdir()
    (root / "CLAUDE.md").write_text("# Rules\n\n- Run `make test`\n")
    (root / "AGENTS.md").write_text("- Ask Bob\n")
    (root / ".cursor/rules/ts.mdc").write_text(
        "---\ndescription: TS: style\nglobs: *.ts\nalwaysApply: false\n---\n- tabs\n"
    )
    (root / "memory/retry.md").write_text("---\ntitle: Retry\n---\n- three times\n")
    (root / "memory/link.md").symlink_to("/etc/hostname")
    (root / "memory/bad.md").write_bytes(b"\xff\xfe")
    said = run(root, project="payments")
    assert "4 proposals wait" in said and "bad.md: it is not UTF-8" in said and "link.md" not in said
    with bound(acme):
        found = {proposal.note.path: proposal.text for proposal in Proposal.objects.open().select_related("note")}
        assert not Note.objects.live().exists()
    assert set(found) == {
        "project/payments/claude.md", "project/payments/agents.md",
        "project/payments/cursor/rules/ts.md", "project/payments/memory/retry.md",
    }  # fmt: skip
    assert 'globs: "*.ts"' in found["project/payments/cursor/rules/ts.md"]
    assert found["project/payments/memory/retry.md"] == "---\ntitle: Retry\n---\n- three times\n"
    assert "0 proposals wait" in run(root, project="payments")
