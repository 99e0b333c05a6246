"""Recorded sessions, replayed through the cache client: what it serves is compared with what the log says was said."""

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cache_admin.client import Cache
from memory import tokens

READERS = ("Read", "Grep", "Glob", "LS")
WRITERS = ("Write", "Edit", "MultiEdit")
# Shell commands that change sources. Builds and test runs leave them alone; what the log says afterwards is the judge.
WRITES = re.compile(
    r">|\b(?:sed|perl) +-\w*i|\b(?:mv|cp|rm|tee|patch|rsync|unzip|gofmt)\s"
    r"|--fix\b|--write\b|\bfmt\b|\bformat\b|\bgenerate\b"
    r"|\bgit +(?:checkout|switch|restore|reset|stash|pull|merge|rebase|apply|am|cherry-pick|revert|clean)\b"
    r"|\b(?:npm|yarn|pnpm|bun|pip|go) +(?:i|install|ci|add|get|mod|update|init)\b"
)


def sessions_of(folder: Path) -> list[list[dict[str, Any]]]:
    """The logged hook calls of a project, session by session in the order in which they began.

    Only within a session does `seq` tell the order of calls and results; `log_i` counts each kind of event by itself.
    """
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted(folder.glob("*.gz"))]
    sessions = [sorted(map(json.loads, text.splitlines()), key=lambda row: int(row["seq"])) for text in texts]
    return sorted(sessions, key=lambda rows: min((row["log_i"] for row in rows if _begins(row)), default=0))


def _begins(row: dict[str, Any]) -> bool:
    return bool(row["payload"]["hook_event_name"] == "PreToolUse")


def may_write(payload: dict[str, Any]) -> bool:
    """Whether a call may change files that its arguments do not name. What other agents do is in the log itself."""
    if payload.get("tool_name") != "Bash":
        return False
    command = str(payload["tool_input"].get("command", ""))
    return WRITES.search(re.sub(r"2>&1|[12&]?> ?/dev/null", "", command)) is not None


@dataclass
class Tree:
    """What is in the files as far as the events so far say: of whole ones, and of the lines that were read."""

    whole: dict[str, str] = field(default_factory=dict)
    parts: dict[tuple[str, Any, Any], str] = field(default_factory=dict)

    def before(self, payload: dict[str, Any]) -> None:
        """A call begins: what it may change is not known until it has ended."""
        if payload.get("tool_name") in WRITERS:
            self.forget(str(payload["tool_input"].get("file_path", "")))
        elif may_write(payload):
            self.forget()

    def forget(self, path: str = "") -> None:
        """A file's content is not known any more; without a path no file's is."""
        self.whole = {name: text for name, text in self.whole.items() if path and name != path}
        self.parts = {part: text for part, text in self.parts.items() if path and part[0] != path}

    def after(self, payload: dict[str, Any]) -> None:
        """A call has ended: its result may tell what is in a file."""
        self.before(payload)
        tool, told = payload.get("tool_name", ""), payload.get("tool_response")
        given = payload.get("tool_input") or {}
        path = str(given.get("file_path", ""))
        if tool in WRITERS and isinstance(told, dict):
            content = _written(tool, told)
            if content is not None:
                self.whole[path] = content
        elif tool == "Read" and isinstance(told, dict) and isinstance(told.get("file"), dict):
            self._read(path, given, told["file"])

    def _read(self, path: str, given: dict[str, Any], file: dict[str, Any]) -> None:
        content = str(file["content"])
        if path in self.whole and content not in self.whole[path]:
            self.forget(path)
        if file["startLine"] == 1 and file["numLines"] == file["totalLines"]:
            self.whole[path] = content
        self.parts[(path, given.get("offset"), given.get("limit"))] = f"{file['totalLines']}\n{content}"

    def digest(self, payload: dict[str, Any]) -> str:
        """Of all that a reader's answer hangs on; empty where that is not known."""
        given, tool = payload["tool_input"], payload["tool_name"]
        path = str(given.get("file_path") or given.get("path") or "")
        text = self.whole.get(path) if tool in ("Read", "Grep") else None
        if text is None and tool == "Read":
            text = self.parts.get((path, given.get("offset"), given.get("limit")))
        return "" if text is None else "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _written(tool: str, told: dict[str, Any]) -> str | None:
    """The whole of a file after a write, where the result tells it."""
    if tool == "Write":
        return str(told["content"])
    if told.get("userModified"):
        return None
    if tool == "Edit":
        return _edited(told.get("originalFile"), [told])
    return _edited(told.get("originalFileContents"), told["edits"])


def _edited(text: Any, edits: list[dict[str, Any]]) -> str | None:
    if not isinstance(text, str):
        return None
    for edit in edits:
        old = str(edit.get("oldString", edit.get("old_string", "")))
        new = str(edit.get("newString", edit.get("new_string", "")))
        if not old or old not in text:
            return None
        is_all = edit.get("replaceAll", edit.get("replace_all", False))
        text = text.replace(old, new) if is_all else text.replace(old, new, 1)
    return text


@dataclass
class Replayed:
    """What became of the readers' calls."""

    counts: Counter[str] = field(default_factory=Counter)
    stale: list[str] = field(default_factory=list)

    @property
    def hit_rate(self) -> float:
        asked = self.counts["hit"] + self.counts["miss"]
        return self.counts["hit"] / asked if asked else 0.0


@dataclass(frozen=True)
class Asked:
    """A reader's call that has an answer: the digest known before it, and the one known once it has answered."""

    payload: dict[str, Any]
    before: str
    after: str


def calls(rows: list[dict[str, Any]]) -> Iterator[Asked]:
    """The readers' calls of one session. What others did to its tree before it began is not known."""
    tree = Tree()
    begun: dict[str, str] = {}
    for row in rows:
        payload = row["payload"]
        event, tool = payload["hook_event_name"], payload.get("tool_name", "")
        call = str(row["tool_use_id"] or json.dumps([tool, payload.get("tool_input")], sort_keys=True))
        if event == "PreToolUse":
            tree.before(payload)
            if tool in READERS:
                begun[call] = tree.digest(payload)
        elif event == "PostToolUse":
            # As the client does: the digest before, and again after; what changed between is not cached.
            now, then = (tree.digest(payload), begun.pop(call, "")) if tool in READERS else ("", "")
            tree.after(payload)
            if tool in READERS:
                yield Asked(payload, now if now == then else "", tree.digest(payload))
        elif event in ("SessionStart", "UserPromptSubmit"):
            # While an agent waits for its next prompt, a person may change anything.
            tree.forget()


def replay(sessions: list[list[dict[str, Any]]], cache: Cache) -> Replayed:
    """Ask the cache before each call, as a tool's author would; tell it what the log says the tool answered."""
    found = Replayed()
    for asked in (one for rows in sessions for one in calls(rows)):
        found.counts["calls"] += 1
        if asked.before:
            said = _ask(asked, asked.before, cache)
            found.counts[str(said.get("status"))] += 1
            if said.get("status") == "hit":
                _judge(found, said, asked.payload, cache)
        else:
            found.counts["unknown_state"] += 1
            # The first look at a file: the tool runs, and its answer tells what the digest was.
            said = _ask(asked, asked.after, cache) if asked.after else {}
        if said.get("lease"):
            _tell(found, said, asked, cache)
    return found


def _ask(asked: Asked, digest: str, cache: Cache) -> dict[str, Any]:
    session = {"context": {**cache.context, "session": asked.payload["session_id"]}}
    call = asked.payload
    return cache.lookup(call["tool_name"], call["tool_input"], content_hash=digest, **session) or {}


def _tell(found: Replayed, said: dict[str, Any], asked: Asked, cache: Cache) -> None:
    more = {"content_hash": asked.before or asked.after, "session": asked.payload["session_id"]}
    kept = cache.store(said["key"], said["lease"], asked.payload["tool_response"], **more)
    found.counts["stored" if kept and kept.get("stored") else "not_kept"] += 1


def _judge(found: Replayed, said: dict[str, Any], payload: dict[str, Any], cache: Cache) -> None:
    truth, whole = payload["tool_response"], cache.expand(said["result_id"])
    served = json.loads(whole) if isinstance(truth, dict) and whole is not None else whole
    if served != truth:
        found.stale.append(f"{payload['session_id']} {payload['tool_name']} {payload['tool_input']}")
    shown = said.get("summary") or ("" if said.get("unchanged") else whole or "")
    found.counts["tokens_saved"] += tokens.count(whole or "") - tokens.count(shown)
    found.counts["tokens_whole"] += tokens.count(whole or "")
