"""The duplicate audit on real hook logs: `python tests/bench/cache_repeats.py FOLDER`, with a folder per project.

Prints per project and session the tools that count, calls, exact repeats and the share whose result had changed, and
recounts the projects' calls and repeats from the raw files by code that shares nothing with the audit.
"""

import collections
import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402

from tests import database  # noqa: E402

django.setup()

from cache_admin.repeats import Repeats, audit, uses  # noqa: E402

READERS = frozenset({"Read", "Grep", "Glob", "LS"})
KINDS = {"PreToolUse": "tool_before", "PostToolUse": "tool_after"}


def lines(folder: Path) -> list[dict[str, Any]]:
    """The logged hook calls of a project in the order in which they were made."""
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.glob("*.gz"))]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(rows, key=lambda row: (row["log_i"] is None, row["log_i"] or 0))


def events(project: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    for row in rows:
        payload = row["payload"]
        if payload["hook_event_name"] in KINDS:
            use_id = row["tool_use_id"] or ""
            yield project, payload["session_id"], KINDS[payload["hook_event_name"]], use_id, payload


def recount(folder: Path) -> tuple[int, int]:
    """Calls and exact repeats, by grep and wc in Python."""
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    for path in folder.glob("*.gz"):
        with gzip.open(path, "rt") as file:
            for line in file:
                payload = json.loads(line)["payload"]
                if payload["hook_event_name"] == "PreToolUse" and payload["tool_name"] in READERS:
                    seen[(payload["tool_name"], json.dumps(payload["tool_input"], sort_keys=True))] += 1
    return sum(seen.values()), sum(seen.values()) - len(seen)


def said(name: str, found: Repeats) -> str:
    share = "-" if found.share is None else f"{found.share:.1%}"
    changed = "-" if found.changed_share is None else f"{found.changed_share:.0%} of {found.compared}"
    return (
        f"{name:60} {found.calls:5} calls {found.repeats:4} repeats {share:>6}  changed {changed:>10}"
        f"  {found.repeated_tokens:7} tokens repeated, {found.saved_tokens:7} the same  {' '.join(sorted(found.tools))}"
    )


def main(folder: Path) -> None:
    for project in sorted(path for path in folder.iterdir() if path.is_dir()):
        found = audit(uses(events(project.name, lines(project))), readers=READERS)
        whole = found.projects[project.name]
        print(said(project.name, whole), "->", whole.verdict)
        for (_, session), one in sorted(found.sessions.items()):
            print(said(f"  {session}", one))
        calls, repeats = recount(project)
        verdict = "agrees" if (calls, repeats) == (whole.calls, whole.repeats) else "DIFFERS"
        print(f"recount: {calls} calls, {repeats} repeats: {verdict}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    finally:
        database.end()
