"""A block of AGENTS.md or CLAUDE.md that is kept in step with a space."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memory.hooks import client
from memory.notes.models import Note, Proposal
from memory.recall import block
from tests.client.machine import Machine, until
from tests.conftest import Agent
from tests.pages import made

FLAGS = "---\ntitle: Flags\n---\n# Flags\n\n- Begin with `set -e`\n"
FILES = {
    "plain": "# Shop\n\nRun `make test`.\n",
    "no_newline": "# Shop",
    "crlf": "# Shop\r\n\r\nRun it.\r\n",
    "bom": "\ufeff# Ladenöffnung 東京\n",
    "trailing": "# Shop  \n\n\n\n",
    "empty": "",
}


@pytest.fixture
def shop(machine: Machine, live: str, agent: Agent, acme: Any, alice: Any) -> Path:
    """A repository on a machine that is connected, and a note that its team has approved."""
    machine.connect(live, agent.secret)
    folder = machine.home / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/shop.git\n')
    made.note(acme, alice, path="tools/bash/flags.md", text=FLAGS)
    return folder


def run(machine: Machine, *arguments: str, fails: bool = False) -> str:
    done: subprocess.CompletedProcess[bytes] = machine.run(*arguments)
    assert (done.returncode != 0) == fails, done
    return (done.stderr if fails else done.stdout).decode()


def keep(machine: Machine, file: Path, *more: str, fails: bool = False) -> str:
    return run(machine, "keep", str(file), "--yes", *more, fails=fails)


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_what_stands_around_it_stays_and_unkeep_gives_the_same_bytes(
    machine: Machine, shop: Path, content: str
) -> None:
    file = shop / "AGENTS.md"
    file.write_bytes(content.encode())
    assert "+- Begin with `set -e`" in run(machine, "keep", str(file), "--dry-run")
    assert file.read_bytes() == content.encode()
    keep(machine, file)
    once = file.read_bytes()
    assert once.startswith(content.encode()) and b"- Begin with `set -e`" in once
    assert (b"\r\n" in once) == ("\r\n" in content) and once.replace(b"\r\n", b"").count(b"\r") == 0
    assert "is in step" in keep(machine, file) and file.read_bytes() == once
    # Others write before and after it.
    file.write_bytes(b"first\n" + once + b"last\n")
    keep(machine, file, "--max-chars", "9000")
    assert file.read_bytes() == b"first\n" + once + b"last\n"
    file.write_bytes(once)
    run(machine, "unkeep", str(file), "--yes")
    assert file.read_bytes() == content.encode()
    assert not (machine.config / "kept.json").exists()


def test_a_file_that_keep_made_goes_with_the_block(machine: Machine, shop: Path) -> None:
    file = shop / "CLAUDE.md"
    keep(machine, file)
    assert (file.stat().st_mode & 0o777) == 0o644
    run(machine, "unkeep", str(file), "--yes")
    assert not file.exists()
    assert "no file" in run(machine, "keep", str(shop / "none" / "AGENTS.md"), fails=True)


def test_what_is_no_file_or_too_large_is_refused(machine: Machine, shop: Path) -> None:
    os.mkfifo(shop / "pipe.md")
    (shop / "large.md").write_bytes(b"x" * 2_000_001)
    assert "pipe.md is no file" in run(machine, "keep", str(shop / "pipe.md"), "--yes", fails=True)
    assert "2,000,001 bytes" in run(machine, "keep", str(shop / "large.md"), "--yes", fails=True)


def test_a_session_that_starts_renews_it(machine: Machine, shop: Path, acme: Any, alice: Any, bound: Any) -> None:
    file = shop / "AGENTS.md"
    file.write_text("# Shop\n")
    keep(machine, file)
    with bound(acme):
        note = Note.objects.get(path="tools/bash/flags.md")
    made.rewritten(note, alice, FLAGS.replace("set -e", "set -eu"))
    start = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": str(shop)}
    machine.hook("claude_code", "SessionStart", {**start, "cwd": str(machine.home)})
    machine.hook("claude_code", "SessionStart", start)
    until(lambda: "set -eu" in file.read_text(), "the file is renewed")
    assert file.read_text().startswith("# Shop\n")
    assert "AGENTS.md is kept in step with team" in machine.run("doctor").stdout.decode()
    # Whoever takes the block out by hand wants it no more.
    file.write_text("# Shop\n")
    machine.hook("claude_code", "SessionStart", {**start, "session_id": "s2"})
    until(lambda: not (machine.config / "kept.json").exists(), "it is kept no more")
    assert file.read_text() == "# Shop\n"


def test_an_edit_by_hand_is_never_lost(machine: Machine, shop: Path) -> None:
    file = shop / "AGENTS.md"
    file.write_text("# Shop\n")
    keep(machine, file)
    before = file.read_text()
    edited = before.replace("- Begin with `set -e`", "- Begin with `set -e`\n- Quote every `$x`")
    file.write_text(edited)
    assert "edited by hand" in keep(machine, file, fails=True)
    assert "edited by hand" in run(machine, "unkeep", str(file), "--yes", fails=True)
    assert b"the block stays" in machine.run("uninstall", "--yes").stdout
    assert file.read_text() == edited


def test_an_edit_becomes_a_proposal(machine: Machine, shop: Path, acme: Any, bound: Any) -> None:
    file = shop / "AGENTS.md"
    keep(machine, file)
    before = file.read_text()
    file.write_text(before.replace("- Begin with `set -e`", "- Begin with `set -e`\n- Quote every `$x`"))
    start = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": str(shop)}
    machine.hook("claude_code", "SessionStart", start)
    until(lambda: "by hand" in (machine.config / "kept.json").read_text(), "the renewal leaves it alone")
    assert b"is not in step: the block was edited by hand" in machine.run("doctor").stdout
    assert "To be proposed: team/tools/bash/flags.md" in keep(machine, file, "--propose")
    assert file.read_text() == before
    with bound(acme):
        proposal = Proposal.objects.open().get()
        assert proposal.text == FLAGS + "- Quote every `$x`\n" and proposal.base.number == 1
    # What is not a note's text can't be proposed, and is not written over.
    for old, new in (("What people of this team", "What we"), ("### Flags", "### Our flags")):
        file.write_text(before.replace(old, new))
        assert "Nothing was changed" in keep(machine, file, "--propose", fails=True)
        assert file.read_text() == before.replace(old, new)
    start_of = before.index("<!-- nte_")
    cut = before[:start_of] + before[before.index("<!-- <<<") :]
    file.write_text(cut)
    assert "a note was taken out" in keep(machine, file, "--propose", fails=True)
    keep(machine, file, "--discard")
    assert file.read_text() == before
    file.write_text(before + before)
    assert "damaged" in keep(machine, file, fails=True)


def test_white_space_that_editors_take_away_is_no_edit() -> None:
    text = client.with_block("AGENTS.md", "# Shop\n", "team", "a  \n\nb\t\n")
    found = client.block_in("AGENTS.md", "\n".join(line.rstrip() for line in text.split("\n")).replace("\n", "\r\n"))
    assert found is not None and not found.is_edited
    assert client.words_digest("a \nb") == block.digest("a\nb\n\n")


def test_uninstall_takes_it_out_too(machine: Machine, shop: Path) -> None:
    file = shop / "AGENTS.md"
    file.write_text("# Shop\n")
    keep(machine, file)
    assert b"Taken out of" in machine.run("uninstall", "--yes").stdout
    assert file.read_text() == "# Shop\n" and not machine.config.exists()


def test_without_a_server_nothing_changes(machine: Machine, shop: Path) -> None:
    file = shop / "AGENTS.md"
    keep(machine, file)
    before = file.read_text()
    machine.connect("http://127.0.0.1:9")
    assert "stays as it is" in keep(machine, file, fails=True)
    assert file.read_text() == before
    assert json.loads((machine.config / "kept.json").read_text())[str(file.resolve())]["space"] == "team"
