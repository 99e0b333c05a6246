"""What command output and MCP calls tell of commits, branches, issues, pull requests, releases and tasks."""

from __future__ import annotations

import json
import re
from typing import Any

from dream import distill_commands as commands
from dream import distill_words as words
from dream.distill_ledger import count, latest, order
from dream.distill_shapes import SeenEvent

_BANNER = re.compile(r"^> (\S+)@(\d\S*) ([\w:.-]+)\n> (\S[^\n]*)$", re.M)
_COMMIT = re.compile(r"^\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M)
_URL = re.compile(r"https://[\w.-]+/[\w.-]+/[\w.-]+/(pull|issues|merge_requests)/(\d+)\s*$", re.M)
_TITLE_FLAG = re.compile(r"(?:--title|-t)[ =](?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_NUMBERED = re.compile(r'"number":\s*(\d+),.{0,200}?"title":\s*"((?:[^"\\]|\\.)*)"', re.S)
_REMOTE = re.compile(r"^(?:To|From) ((?:https://|git@|ssh://)\S+?)(?:\.git)?$", re.M)


def learn(
    state: dict[str, Any],
    session: dict[str, Any],
    event: SeenEvent,
    command: str,
    found: list[commands.Part],
    known: list[str],
    output: str,
) -> None:
    output = commands.plain(output)
    for name, version, script, runs in _BANNER.findall(output):
        latest(state["banners"], f"npm run {script}", event, text=words.short(runs, 110), package=f"{name} {version}")
    for branch, sha, subject in _COMMIT.findall(output) if "git commit" in command else ():
        if not words.has_secret(subject):
            latest(
                state["history"],
                f"commit {sha[:8]}",
                event,
                kind="commit",
                branch=branch,
                text=words.short(subject, 110),
            )
            session["commit"] = [sha[:8], words.short(subject, 80), event.id, branch]
    remote = _REMOTE.search(output)
    if remote and re.search(r"\bgit (?:push|pull|fetch)\b", command) and not words.has_secret(remote[1]):
        latest(state["facts"], "remote", event, text=f"Git remote: `{words.safe(remote[1])}`", tier=3)
    for part, outcome in zip(found, known, strict=True):
        if outcome == "ok":
            _git_part(state, event, part.text, output)


def _git_part(state: dict[str, Any], event: SeenEvent, text: str, output: str) -> None:
    if made := re.match(r"git (?:checkout -b|switch -c) (\S+)", text):
        latest(state["history"], f"branch {made[1]}", event, kind="branch", text=made[1])
    elif gone := re.match(r"git branch -[dD] (.+)", text):
        latest(state["history"], f"deleted {gone[1]}", event, kind="deleted", text=words.short(gone[1], 110))
    elif text.startswith(("gh pr create", "gh issue create")):
        title = _TITLE_FLAG.search(text)
        for what, number in _URL.findall(output):
            name = words.short((title[1] or title[2]) if title else "", 100)
            latest(
                state["history"],
                f"opened {number}",
                event,
                kind="pr" if what == "pull" else "issue",
                number=number,
                text=name,
            )
            learn_ref(state, number, event, title=name)
    elif merged := re.match(r"gh pr merge (?:\S*/)?(\d+)", text):
        latest(state["history"], f"merged {merged[1]}", event, kind="merged", number=merged[1], text="")
    elif released := re.match(r"(?:gh release create|git tag(?: -a)?|npm version) (v?\d[\w.-]*)", text):
        latest(state["history"], f"release {released[1]}", event, kind="release", text=released[1])
    elif viewed := re.match(r"gh (?:issue|pr) view (\d+)", text):
        titled = re.search(r"^title:\t(.+)$", output, re.M)
        if titled:
            learn_ref(state, viewed[1], event, title=words.short(titled[1], 100))
    elif task := re.match(r"backlog task edit (\d+)\b(.*)", text, re.S):
        status = re.search(r"(?:-s|--status)[ =]\"?'?(Done|In Progress|To Do)", task[2])
        if status:
            latest(state["history"], f"task {task[1]}", event, kind="task", number=task[1], text=status[1])
    if named := re.search(r"tasks/task-(\d+) - ([\w.-]+)\.md", output) if text.startswith("backlog task ") else None:
        learn_ref(state, f"task-{named[1]}", event, title=words.short(named[2].replace("-", " "), 100))


def learn_ref(state: dict[str, Any], number: str, event: SeenEvent, *, asked: int = 0, title: str = "") -> None:
    row = count(state["refs"], number, event, asked=asked, n=1)
    row["when"] = max(row.get("when", ""), order(event))
    if title and order(event) >= row.get("titled", ""):
        row.update(titled=order(event), title=title)


def learn_server(state: dict[str, Any], event: SeenEvent, tool: str, given: dict[str, Any]) -> None:
    name = tool.split("__")[1] if tool.count("__") >= 2 else tool
    if event.name == "tool_before":
        count(state["servers"], name, event, n=1)
        return
    if event.name != "tool_after":
        return
    said = (
        json.dumps(event.payload.get("tool_response"), ensure_ascii=False) if event.payload.get("tool_response") else ""
    )
    plain = said.replace('\\"', '"').replace("\\\\", "\\")
    number = str(given.get("pullNumber") or given.get("pull_number") or given.get("issue_number") or "")
    found = _NUMBERED.search(plain[:3000])
    title = words.short(_unslashed(found[2]), 100) if found and not words.has_secret(found[2]) else ""
    if tool.endswith("__merge_pull_request") and '"merged":true' in plain.replace(" ", ""):
        latest(state["history"], f"merged {number}", event, kind="merged", number=number, text="")
    elif tool.endswith(("__create_pull_request", "__create_issue")) and found:
        kind = "pr" if tool.endswith("pull_request") else "issue"
        latest(state["history"], f"opened {found[1]}", event, kind=kind, number=found[1], text=title)
        learn_ref(state, found[1], event, title=title)
    elif tool.endswith(("__get_issue", "__get_pull_request")) and found and found[1] == number:
        learn_ref(state, number, event, title=title)


def _unslashed(text: str) -> str:
    return text.replace("\\", "")
