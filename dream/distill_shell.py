"""Take shell commands into the ledger: how often each form was run, how it ended, and in which order."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from dream import distill_commands as commands
from dream import distill_git as git
from dream import distill_payloads as payloads
from dream import distill_words as words
from dream.distill_ledger import MAX_TRAIL_STEPS, cite, order
from dream.distill_shapes import SeenEvent

SHELLS = frozenset({
    "Bash", "Shell", "bash", "shell", "local_shell", "exec_command", "run_shell_command", "run_in_terminal",
})  # fmt: skip
_DULL = {
    "cd", "ls", "cat", "grep", "rg", "find", "echo", "sed", "awk", "head", "tail", "wc", "mkdir", "rm", "cp",
    "mv", "touch", "chmod", "pwd", "sleep", "which", "xargs", "sort", "uniq", "tree", "printf", "true",
    "export", "source", "test", "[", "jq", "cut", "tr", "ps", "kill", "date", "diff", "file", "stat", "du",
    "for", "while", "if", "do", "done", "then", "fi", "rmdir", "env", "pkill", "set", "basename",
}  # fmt: skip


_CHANGES_FOLDER = re.compile(r"(?:cd|pushd) \S+$")


def shell(
    state: dict[str, Any], session: dict[str, Any], event: SeenEvent, command: str, *, root: str, project: str
) -> None:
    """Count the parts of a command line, with their outcomes where the answer proves them."""
    if not command or words.has_secret(command):
        return
    found = commands.parts(command)
    if event.name == "tool_before" and re.search(r"\bgit commit\b", command):
        # Where this one brings no answer, the commit known before is no longer the last.
        session.pop("commit", None)
    mark = hashlib.sha256(command.encode()).hexdigest()[:8]
    end = payloads.ending(event)
    known = _outcomes(found, event, end)
    left = _left_project(found, payloads.top_of(root, project), project)
    for i, (part, outcome) in enumerate(zip(found[:left], known[:left], strict=True)):
        text = commands.form(part.text, root=root)
        chained = _may_not_run(found, i)
        if _is_dull(text) or (chained and not outcome):
            continue
        failed = (commands.error_line(end.error) or commands.failure_line(end.output)) if outcome == "failed" else ""
        _count_form(state, event, text, outcome, failed, chained=chained)
        _trail(state, event, text, mark, outcome, failed)
    if event.name == "tool_after" and left == len(found):
        git.learn(state, session, event, command, found, known, end.output)


def _outcomes(found: list[commands.Part], event: SeenEvent, end: payloads.Ending) -> list[str]:
    """What is proven of each part. `cd` in front of a command does not hide whose failure it was."""
    background = bool(payloads.given_to(event.payload).get("run_in_background"))
    known = commands.outcomes(found, ended_well=end.well, output=end.output, background=background)
    alone = [i for i, part in enumerate(found) if not _CHANGES_FOLDER.match(part.text)]
    if len(alone) == 1 and alone[0] == len(found) - 1 and not background:
        if end.broke:
            known[alone[0]] = "failed"
        elif event.name == "tool_after" and not end.well and not _is_stopped(event):
            known[alone[0]] = commands.said(end.output) if commands.checks(found[alone[0]].text) else ""
    for i, part in enumerate(found):
        # The output of `cat` or `gh run view` tells of failures of others.
        if known[i] == "failed" and not end.broke and not commands.checks(part.text):
            known[i] = ""
    return known


def _is_stopped(event: SeenEvent) -> bool:
    answer = event.payload.get("tool_response")
    return isinstance(answer, dict) and bool(answer.get("interrupted"))


def _left_project(found: list[commands.Part], top: str, project: str) -> int:
    """Where a command line goes elsewhere by `cd`: what follows tells nothing of this project."""
    for i, part in enumerate(found):
        there = re.match(r"(?:cd|pushd) +[\"']?((?:/|~)[^\"']*)", part.text)
        folder = f"{there[1].rstrip('/')}/" if there and top else ""
        if folder and not folder.startswith(f"{top}/") and f"/{project}/" not in folder:
            return i
    return len(found)


def _may_not_run(found: list[commands.Part], i: int) -> bool:
    """Behind `&&` or `||` a command may never have run: it counts only when its outcome is known."""
    before = [part for part in found[:i] if not _CHANGES_FOLDER.match(part.text)]
    return any(part.joined in ("&&", "||") for part in before)


def _is_dull(text: str) -> bool:
    first = commands.bare(text).split(" ", 1)[0]
    return not text or first in _DULL or not re.match(r"[\w./@~-]+$", first) or "=" in first or first in ("…", '"…"')


def _count_form(
    state: dict[str, Any], event: SeenEvent, text: str, outcome: str, failed: str, *, chained: bool
) -> None:
    row = state["forms"].setdefault(text, {})
    if event.name == "tool_before":
        row["before"] = row.get("before", 0) + 1
        if not row.get("ok") and not row.get("failed"):
            cite(row, event.id)
        return
    counter = "chained" if chained else "after"
    row[counter] = row.get(counter, 0) + 1
    if not outcome:
        row["unclear_at"] = max(row.get("unclear_at", ""), order(event))
        return
    row[outcome] = row.get(outcome, 0) + 1
    slot = "ok_ev" if outcome == "ok" else "failed_ev"
    row[slot] = sorted({*row.get(slot, []), event.id}, reverse=True)[:2]
    if order(event) >= row.get(f"{outcome}_at", ""):
        row[f"{outcome}_at"] = order(event)
        if failed and not words.has_secret(failed):
            row["error"] = words.short(failed, 140)


def step(state: dict[str, Any], event: SeenEvent, made: dict[str, Any]) -> None:
    """Add a command or an edit to the session's trail, from which repairs are read."""
    trail = state["trails"].setdefault(event.session, {"when": "", "steps": []})
    trail["when"] = max(trail["when"], order(event))
    last = trail["steps"][-1] if trail["steps"] else {}
    if "x" in made and last.get("x") == made["x"]:
        return
    trail["steps"].append(made)
    del trail["steps"][:-MAX_TRAIL_STEPS]


def _trail(state: dict[str, Any], event: SeenEvent, text: str, mark: str, outcome: str, failed: str) -> None:
    if event.name == "tool_before":
        step(state, event, {"f": text, "h": mark, "id": event.id})
        return
    steps = state["trails"].get(event.session, {}).get("steps", [])
    # The latest call of the same text: an earlier one without a result stays without one.
    call = next((s for s in reversed(steps) if s.get("h") == mark and s.get("f") == text and "p" not in s), None)
    if call is None:
        call = {"f": text, "h": mark, "id": event.id}
        step(state, event, call)
    call.update(p=event.id, o=outcome)
    if failed and not words.has_secret(failed):
        call["e"] = words.short(failed, 140)
