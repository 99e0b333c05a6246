"""Recompute from raw hook logs what a note may claim: command runs, file touches, prompts.

Usage: python truth.py FOLDER [FOLDER…]   → JSON on stdout, one entry per folder that holds *.jsonl.gz.

It shares no code with the application on purpose: it is the second opinion that a test compares notes with.
"""

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]

# A call without a PostToolUse counts as failed only if calls this near on both sides have theirs:
# some stretches of the logs lost every PostToolUse, and there a missing one proves nothing.
NEIGHBOURS = 5

EDITING_TOOLS = {"Edit", "MultiEdit", "Write", "NotebookEdit"}


def read_session(path: Path) -> list[Line]:
    """All lines of one session's log, in the order of `seq`."""
    with gzip.open(path, "rt", encoding="utf-8") as log:
        return sorted((json.loads(text) for text in log if text.strip()), key=lambda line: int(line["seq"]))


def call_key(line: Line) -> str:
    """What ties a PostToolUse to its PreToolUse: the tool and its exact input.

    `tool_use_id` is absent from most lines, so it isn't used: counts per command don't depend on which of two equal
    calls got which answer.
    """
    payload = line["payload"]
    return json.dumps([payload["tool_name"], payload.get("tool_input")], sort_keys=True)


def outcomes(lines: list[Line]) -> Iterator[tuple[Line, str]]:
    """Each call of a session once, with "ok", "failed" or "unknown"; a PostToolUse alone is a call that was ok."""
    waiting: dict[str, list[Line]] = defaultdict(list)
    calls: list[Line] = []
    for line in lines:
        event = line["payload"]["hook_event_name"]
        if event == "PostToolUse":
            waiting[call_key(line)].append(line)
        elif event == "PreToolUse":
            calls.append(line)
    # From the last call backwards: when one command ran twice and one run failed, the answer belongs to a later line.
    posts: dict[int, Line] = {}
    for call in reversed(calls):
        answers = waiting[call_key(call)]
        if answers and int(answers[-1]["seq"]) > int(call["seq"]):
            posts[int(call["seq"])] = answers.pop()
    # Two hooks that ran side by side may have written their lines in the wrong order; what is left pairs anyhow.
    for call in calls:
        answers = waiting[call_key(call)]
        if int(call["seq"]) not in posts and answers:
            posts[int(call["seq"])] = answers.pop(0)
    answered = [int(call["seq"]) in posts for call in calls]
    for place, call in enumerate(calls):
        if answered[place]:
            yield call, "ok"
        else:
            before = answered[max(0, place - NEIGHBOURS) : place]
            after = answered[place + 1 : place + 1 + NEIGHBOURS]
            yield call, "failed" if any(before) and any(after) else "unknown"
    for answers in waiting.values():
        for answer in answers:
            yield answer, "ok"


def tally(folder: Path) -> dict[str, Any]:
    """The truth about one project's folder of logs."""
    commands: dict[str, Counter[str]] = defaultdict(Counter)
    files: dict[str, Counter[str]] = defaultdict(Counter)
    prompts: list[dict[str, Any]] = []
    last_prompts: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        session = path.name.removesuffix(".jsonl.gz")
        lines = read_session(path)
        for line, outcome in outcomes(lines):
            count_call(line["payload"], outcome, commands=commands, files=files)
        for line in lines:
            if line["payload"]["hook_event_name"] == "UserPromptSubmit":
                text = line["payload"]["prompt"]
                prompts.append({"session": session, "line": line["seq"], "text": text})
                last_prompts[session] = text
    return {
        "commands": {text: spelled(counts, "ok", "failed", "unknown") for text, counts in sorted(commands.items())},
        "files": {text: {"reads": n["reads"], "edits": n["edits"]} for text, n in sorted(files.items())},
        "prompts": prompts,
        "last_prompts": last_prompts,
    }


def count_call(
    payload: dict[str, Any], outcome: str, *, commands: dict[str, Counter[str]], files: dict[str, Counter[str]]
) -> None:
    """Add one call to the command or the file it is about."""
    tool, arguments = payload["tool_name"], payload.get("tool_input") or {}
    if tool == "Bash" and "command" in arguments:
        commands[arguments["command"]][outcome] += 1
    elif tool == "Read" and "file_path" in arguments:
        files[arguments["file_path"]]["reads"] += 1
    elif tool in EDITING_TOOLS and "file_path" in arguments:
        files[arguments["file_path"]]["edits"] += 1


def spelled(counts: Counter[str], *names: str) -> dict[str, int]:
    """Every name with its count, zeros too, and the sum as `runs`."""
    return {"runs": sum(counts.values()), **{name: counts[name] for name in names}}


def main() -> None:
    """Print the truth about every folder named, or about the folders below it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    projects: dict[str, Any] = {}
    for root in parser.parse_args().folders:
        for folder in [root, *sorted(path for path in root.iterdir() if path.is_dir())]:
            if any(folder.glob("*.jsonl.gz")):
                projects[folder.resolve().name] = tally(folder)
    if not projects:
        parser.error("no *.jsonl.gz in the folders named")
    json.dump(projects, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
