"""The guide: a page for each audience, and every example in it runs."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from django.conf import settings

from memory import guide
from tests.conftest import new_agent

DOCS = settings.BASE_DIR / "templates" / "docs"
COMMANDS = {path.stem for path in (settings.BASE_DIR / "memory/management/commands").glob("[a-z]*.py")} | {"migrate"}


def blocks(text: str) -> list[str]:
    return [block.strip() for block in re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)]


def test_every_page_is_shown_to_whoever_may_log_in(logged_in: Any, vera: Any, teams: Any) -> None:
    assert {path.stem for path in DOCS.glob("*.md")} == set(guide.ORDER)
    for page in guide.pages():
        answer = logged_in(vera).get(f"/t/acme/guide/{page.slug}/")
        assert answer.status_code == 200 and f">{page.title}<" in answer.content.decode()


def test_every_command_in_the_guide_exists() -> None:
    for path in [*DOCS.glob("*.md"), settings.BASE_DIR / "README.md"]:
        named = re.findall(r"manage\.py (?:--data-dir \w+ )?([a-z_]+)", path.read_text())
        assert set(named) <= COMMANDS, path.name


def test_the_api_examples_run_against_a_live_server(live: str, teams: Any, alice: Any, tmp_path: Path) -> None:
    agent = new_agent(alice)
    (tmp_path / "calls.ndjson").write_text(
        '{"client": "codex", "payload": {"hook_event_name": "SessionStart", "session_id": "c1", "cwd": "/src/shop"}}\n'
    )
    (tmp_path / "retries.md").write_text("---\ntitle: Retries\ndescription: How often\n---\n# Retries\n\nTwice.\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "remote", "add", "origin", "git@github.com:acme/shop.git"], cwd=tmp_path, check=True)
    examples = [block for block in blocks((DOCS / "api.md").read_text()) if block.startswith("curl")]
    assert len(examples) >= 4
    environment = {"PATH": os.environ["PATH"], "TEAM_MEMORY_URL": live, "TEAM_MEMORY_KEY": agent.secret}
    for example in examples:
        command = example.replace("curl ", "curl -sS --fail-with-body ", 1)
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)  # noqa: S602
        assert done.returncode == 0, (example, done.stdout, done.stderr)
