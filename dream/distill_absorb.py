"""Take events into the ledger: who asked what, which calls were made on which files, and how commands ended."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from dream import distill_git as git
from dream import distill_manifests as manifests
from dream import distill_payloads as payloads
from dream import distill_words as words
from dream.distill_ledger import count, latest, order
from dream.distill_shapes import SeenEvent
from dream.distill_shell import SHELLS, shell, step

READERS = {"Read", "read_file", "view", "readFile"}
EDITORS = frozenset({
    "Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch", "create", "str_replace",
    "Delete",
})  # fmt: skip
_TONGUES = {
    "ts": "TypeScript", "tsx": "TypeScript", "js": "JavaScript", "mjs": "JavaScript", "jsx": "JavaScript",
    "go": "Go", "py": "Python", "rs": "Rust", "java": "Java", "kt": "Kotlin", "rb": "Ruby", "php": "PHP",
    "cs": "C#", "c": "C", "h": "C", "cpp": "C++", "hpp": "C++", "swift": "Swift", "scala": "Scala",
    "ex": "Elixir", "exs": "Elixir", "lua": "Lua", "dart": "Dart", "vue": "Vue", "svelte": "Svelte",
    "templ": "templ", "sql": "SQL", "sh": "shell", "css": "CSS", "html": "HTML", "tf": "Terraform",
    "zig": "Zig", "nix": "Nix",
}  # fmt: skip
_REF = re.compile(r"(?:issues?|pull|pr|issue|task|#)[/ #]*(\d{1,6})\b", re.I)


def absorb(state: dict[str, Any], event: SeenEvent, *, project: str) -> None:
    """Add one event to the state."""
    state["events"] += 1
    state["clients"][event.client] = state["clients"].get(event.client, 0) + 1
    session = _session(state, event)
    if event.name == "prompt" and not event.agent_id:
        _prompt(state, session, event)
    elif event.name in ("tool_before", "tool_after", "tool_failed"):
        _tool(state, session, event, project=project)
    elif not event.agent_id and (said := payloads.closing(event)):
        session["closing"] = [said, event.id]


def _session(state: dict[str, Any], event: SeenEvent) -> dict[str, Any]:
    session: dict[str, Any] = state["sessions"].setdefault(
        event.session,
        {"when": "", "n": 0, "prompts": 0, "client": event.client, "member": event.member, "ev": [], "edits": {}},
    )
    session["n"] += 1
    session["when"] = max(session["when"], order(event))
    session["ev"] = [max([event.id, *session["ev"]])]
    if event.at:
        session["clock"] = max(session.get("clock", ""), event.at.isoformat())
        session["last"] = max(session.get("last", ""), event.at.date().isoformat())
    return session


def _prompt(state: dict[str, Any], session: dict[str, Any], event: SeenEvent) -> None:
    info = event.payload.get("tool_info")
    asked = event.payload.get("prompt") or (info.get("user_prompt") if isinstance(info, dict) else "")
    text = words.spoken(str(asked or ""))
    session["prompts"] += 1
    # What the agent said before is no longer where the work stands.
    session.pop("closing", None)
    if not text or words.has_secret(text):
        return
    if event.member:
        state["members"][event.member] = state["members"].get(event.member, 0) + 1
    for name in sorted(set(re.findall(r"(?<!\S)@agent-([\w-]+)", text))):
        count(state["agents"], name, event, asked=1, n=1)
    for number in sorted(set(_REF.findall(text))):
        git.learn_ref(state, number, event, asked=1)
    if words.is_small(text):
        session["small"] = [words.short(text, 40), event.id]
        return
    row = count(state["asks"], words.alike(text, 10), event, n=1)
    _seen_in(row, event)
    if order(event) >= row.get("when", ""):
        row.update(when=order(event), by=event.id, text=words.ask(text))
    session["ask"] = [words.ask(text), event.id]
    session.pop("small", None)
    _wishes(state, event, text)


def _wishes(state: dict[str, Any], event: SeenEvent, text: str) -> None:
    for rule in words.rules(text):
        row = count(state["rules"], words.alike(rule, 7), event, n=1)
        _seen_in(row, event)
        _keep_common(row, rule)
        if order(event) >= row.get("when", ""):
            row.update(when=order(event), by=event.id, text=rule)
    decided = words.decision(text)
    if decided:
        row = count(state["decisions"], words.alike(decided), event, n=1)
        if order(event) >= row.get("when", ""):
            row.update(when=order(event), by=event.id, text=decided)
    if event.member:
        for wish in words.preferences(text):
            latest(state["prefs"], f"{event.member}|{wish}", event, member=event.member, text=wish)


def _seen_in(row: dict[str, Any], event: SeenEvent) -> None:
    """Keep in which sessions it was met, up to twenty."""
    mark = hashlib.sha256(event.session.encode()).hexdigest()[:6]
    row["in"] = sorted({*row.get("in", []), mark})[:20]


def _keep_common(row: dict[str, Any], rule: str) -> None:
    """Of rules that begin alike and are of one length, the words that all of them have; the others as “…”."""
    said, own = dict(row.get("said", {})), rule.split()
    known = said.get(str(len(own)), rule).split()
    said[str(len(own))] = " ".join(a if a == b else "…" for a, b in zip(known, own, strict=True))
    row["said"] = {length: said[length] for length in sorted(said, key=int)[:6]}


def _tool(state: dict[str, Any], session: dict[str, Any], event: SeenEvent, *, project: str) -> None:
    tool = event.tool or str(event.payload.get("tool_name") or "")
    given = payloads.given_to(event.payload)
    root = str(event.payload.get("cwd") or (event.payload.get("workspace_roots") or [""])[0])
    if re.search(r"team[-_]memory", tool):
        return
    if tool in SHELLS:
        shell(state, session, event, payloads.command_of(given), root=root, project=project)
    elif tool in READERS or tool in EDITORS:
        _file(state, session, event, tool, given, root=root, project=project)
    elif tool.startswith("mcp__"):
        git.learn_server(state, event, tool, given)
    elif tool in ("Task", "Agent") and event.name == "tool_before":
        _handed(state, event, given)
    elif tool == "TodoWrite" and event.name == "tool_before":
        _todo(session, event, given)
    elif tool == "ExitPlanMode" and event.name == "tool_after":
        _plan(state, event, given)


def _handed(state: dict[str, Any], event: SeenEvent, given: dict[str, Any]) -> None:
    if given.get("subagent_type"):
        count(state["agents"], str(given["subagent_type"]), event, used=1, n=1)
    what = words.short(str(given.get("description") or ""), 90)
    if what and not words.has_secret(what):
        latest(state["history"], f"handed {what}", event, kind="handed", text=what)


def _todo(session: dict[str, Any], event: SeenEvent, given: dict[str, Any]) -> None:
    todos = given.get("todos")
    listed = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    waiting = [str(todo.get("content") or "") for todo in listed if todo.get("status") != "completed"]
    if any(words.has_secret(str(todo.get("content") or "")) for todo in listed):
        return
    waiting = [words.short(text, 70) for text in waiting if text]
    if listed:
        last = words.short(str(listed[-1].get("content") or ""), 70)
        session["todo"] = [len(waiting), len(listed), waiting[:2] or [last], event.id]


def _plan(state: dict[str, Any], event: SeenEvent, given: dict[str, Any]) -> None:
    plan = str(given.get("plan") or "")
    title = next((line.strip("# *") for line in plan.splitlines() if line.strip("# *")), "")
    if title and not words.has_secret(title):
        latest(state["decisions"], f"plan {title[:60]}", event, text=words.short(title), plan=1)


# --- files -----------------------------------------------------------------------------------------------------------


def _file(
    state: dict[str, Any],
    session: dict[str, Any],
    event: SeenEvent,
    tool: str,
    given: dict[str, Any],
    *,
    root: str,
    project: str,
) -> None:
    paths = [
        str(
            given.get("file_path")
            or given.get("path")
            or given.get("notebook_path")
            or given.get("absolute_path")
            or ""
        )
    ]
    if tool == "apply_patch":
        paths = re.findall(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", payloads.command_of(given), re.M)
    editing = tool in EDITORS
    for full in paths:
        path = payloads.below(full, root=root, project=project)
        if not path or ".team-memory/" in path or words.has_secret(path):
            continue
        if event.name == "tool_before":
            _touch(state, session, event, path, editing=editing)
        elif event.name == "tool_after":
            row = count(state["files"], path, event, **{"edited" if editing else "read": 1})
            if editing:
                row["done"] = 1
            _learn(state, event, path, given)


def _touch(state: dict[str, Any], session: dict[str, Any], event: SeenEvent, path: str, *, editing: bool) -> None:
    row = count(state["files"], path, event, **{"edits" if editing else "reads": 1})
    _seen_in(row, event)
    suffix = path.rsplit(".", 1)[-1].lower()
    if suffix in _TONGUES:
        count(state["tongues"], _TONGUES[suffix], event, n=1)
    if "/" in path and not path.startswith("/"):
        count(state["dirs"], "/".join(path.split("/")[:-1][:2]), event, n=1)
    if editing:
        session["edits"].pop(path, None)
        session["edits"][path] = event.id
        while len(session["edits"]) > 5:
            session["edits"].pop(next(iter(session["edits"])))
        step(state, event, {"x": path, "id": event.id})


def _learn(state: dict[str, Any], event: SeenEvent, path: str, given: dict[str, Any]) -> None:
    """What a manifest, a readme or an instruction file said when it was read or written whole."""
    content, start, whole = _content(event.payload, given)
    if not content:
        return
    told = manifests.told(path, content, from_start=start == 1)
    _facts(state, event, path, told, whole=whole)
    if told.needs:
        # Readings at different times differ: only what every reading named is safe to state.
        row = count(state["facts"], f"needs {path}", event, n=1)
        row["also"] = sorted({*row.get("also", []), *told.needs})[:24]
        row["lines"] = [need for need in row.get("lines", told.needs) if need in told.needs]
    for name, runs in told.scripts.items():
        if not words.has_secret(runs):
            latest(state["scripts"], name, event, text=words.short(runs, 110), file=path)
    heading = re.match(r"\s*# +([^\n]+)", content)
    if heading and path.endswith(".md") and "content" in given and not words.has_secret(heading[1]):
        latest(state["history"], f"doc {path}", event, kind="doc", path=path, text=words.short(heading[1], 90))


def _facts(state: dict[str, Any], event: SeenEvent, path: str, told: manifests.Told, *, whole: bool) -> None:
    """One row for each file. The latest reading of the whole file stands for all it says: what it lost is gone."""
    facts = {key: text for key, text in told.facts.items() if not words.has_secret(text)}
    if not (facts or told.uses or told.rules) and path not in state["facts"]:
        return
    row = state["facts"].get(path, {})
    when = f"{int(whole)}{order(event)}"
    if when >= row.get("when", ""):
        state["facts"][path] = {
            "when": when,
            "ev": [event.id],
            "text": facts.get(path, ""),
            "how": facts.get(f"{path}#run", ""),
            "lines": told.rules,
            "uses": told.uses,
        }


def _content(payload: dict[str, Any], given: dict[str, Any]) -> tuple[str, int, bool]:
    response = payload.get("tool_response")
    shown = response.get("file") if isinstance(response, dict) else None
    if isinstance(shown, dict):
        start = int(shown.get("startLine") or 1)
        whole = start == 1 and (shown.get("numLines") or 0) >= (shown.get("totalLines") or 0)
        return str(shown.get("content") or ""), start, whole
    return (str(given["content"]), 1, True) if isinstance(given.get("content"), str) else ("", 0, False)
