"""The notes on what was decided and done, and where each session stopped."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from dream import distill_commands as commands
from dream import distill_words as words
from dream.distill_ledger import UNTIMED, names, ranked
from dream.distill_shapes import OWN_AGENT, PERSON, TOOL_OUTPUT, Draft, Statement, draft

MOST_SESSIONS = 4


def history_draft(state: dict[str, Any], project: str, base: str) -> Draft:
    """Decisions, what was delivered, and the habits of commits and branches."""
    rows = ranked(state["history"], lambda row: (row["when"],))
    rules = {words.alike(row["text"]) for row in state["rules"].values() if words.is_standing(row["text"])}
    decided = [
        item
        for item in ranked(state["decisions"], lambda row: (row["when"],))
        if words.alike(item[1]["text"]) not in rules
    ]
    merged = [
        row
        for _, row in rows
        if row["kind"] in ("pr", "release")
        or (row["kind"] == "merged" and f"opened {row['number']}" not in state["history"])
    ]
    commits = [_commit(key, row) for key, row in rows if row["kind"] == "commit"]
    return draft(
        f"{base}/work/history.md",
        f"{project}: decisions and deliveries",
        f"What people decided in {project}, pull requests, tasks and issues on record, and the habits of commits.",
        ("Decided by people", [_decision(row) for _, row in decided[:8]]),
        ("Pull requests and releases", [_opened(state, row) for row in merged[:8]]),
        ("Commits and branches", [*_habits(rows), *commits[:6]]),
        ("Tasks", [_task(state, row) for _, row in rows if row["kind"] == "task"][:6]),
        ("Issues opened", [_opened(state, row) for _, row in rows if row["kind"] == "issue"][:6]),
        ("Documents written", [_document(row) for _, row in rows if _is_document(row)][:4]),
    )


def _decision(row: dict[str, Any]) -> Statement:
    return Statement(
        f"{'Plan accepted: ' if row.get('plan') else ''}“{row['text']}”",
        (row.get("by", row["ev"][0]),),
        OWN_AGENT if row.get("plan") else PERSON,
    )


def _is_document(row: dict[str, Any]) -> bool:
    """A page of the documentation: what lies beside the sources is mostly an agent's own report."""
    return row["kind"] == "doc" and "/" in row["path"].lstrip("/") and not row["path"].startswith("/")


def _document(row: dict[str, Any]) -> Statement:
    return Statement(f"`{row['path']}`: “{row['text']}”", tuple(row["ev"]), OWN_AGENT)


def _opened(state: dict[str, Any], row: dict[str, Any]) -> Statement:
    if row["kind"] == "release":
        return Statement(f"Released {row['text']}.", tuple(row["ev"]), OWN_AGENT)
    name = row["text"] or state["refs"].get(row["number"], {}).get("title", "")
    titled = f" “{name}”" if name else ""
    if row["kind"] == "merged":
        return Statement(f"PR #{row['number']} merged{titled}.", tuple(row["ev"]), TOOL_OUTPUT)
    if row["kind"] == "issue":
        return Statement(f"Issue #{row['number']} opened{titled}.", tuple(row["ev"]), OWN_AGENT)
    merged = state["history"].get(f"merged {row['number']}")
    cited = (*row["ev"], *merged["ev"]) if merged else tuple(row["ev"])
    return Statement(f"PR #{row['number']} opened{' and merged' if merged else ''}{titled}.", cited, OWN_AGENT)


def _task(state: dict[str, Any], row: dict[str, Any]) -> Statement:
    title = state["refs"].get(f"task-{row['number']}", {}).get("title", "")
    return Statement(
        f"Backlog task {row['number']}{f' “{title}”' if title else ''} set to {row['text']}.",
        tuple(row["ev"]),
        OWN_AGENT,
    )


def _commit(key: str, row: dict[str, Any]) -> Statement:
    return Statement(
        f"{key.removeprefix('commit ')} on `{row['branch']}`: “{row['text']}”", tuple(row["ev"]), OWN_AGENT
    )


def _habits(rows: list[tuple[str, dict[str, Any]]]) -> list[Statement]:
    """How commits and branches are named here, where most of those seen are named alike."""
    commits = [row for _, row in rows if row["kind"] == "commit"]
    branches = [row for _, row in rows if row["kind"] == "branch"]
    return [
        *_habit(commits, r"(\w+(?:\([^)]*\))?!?:) ", "Commit subjects begin with", "commits"),
        *_habit(branches, r"([\w-]+/)", "Branches begin with", "branches made"),
    ]


def _habit(rows: list[dict[str, Any]], pattern: str, what: str, seen: str) -> list[Statement]:
    found = [(match[1], row["ev"][0]) for row in rows if (match := re.match(pattern, row["text"]))]
    if len(rows) < 3 or len(found) * 2 < len(rows):
        return []
    counted = sorted(Counter(begin for begin, _ in found).items(), key=lambda item: (-item[1], item[0]))[:5]
    listed = ", ".join(f"`{begin}` ({n})" for begin, n in counted)
    cited = tuple(event for _, event in found[:2])
    return [Statement(f"{what} {listed} in the {len(rows)} {seen} on record.", cited, OWN_AGENT)]


# --- where the work stopped ------------------------------------------------------------------------------------------


def status_draft(state: dict[str, Any], project: str, base: str) -> Draft:
    """Where the latest sessions stopped. Without a time only the order of arrival is known, and said."""
    told = [(key, row) for key, row in ranked(state["sessions"], lambda row: (row["when"],)) if _is_telling(row)]
    timed = [item for item in told if not item[1]["when"].startswith(f"{UNTIMED}|")]
    untimed = [item for item in told if item not in timed]
    # What is left open is worth more than what was finished.
    untimed.sort(key=lambda item: (_is_open(item[1]), bool(item[1]["edits"])), reverse=True)
    return draft(
        f"{base}/status.md",
        f"{project}: where the work stopped",
        f"The latest sessions in {project}: last thing asked, files edited, last commit, and what was left open.",
        ("Latest sessions", [_session(state, key, row) for key, row in timed[: MOST_SESSIONS - len(untimed[:2])]]),
        (
            "Sessions without a recorded time" if timed else "Sessions, the last to arrive first",
            [_session(state, key, row) for key, row in untimed[: MOST_SESSIONS - len(timed[:2])]],
        ),
    )


def _is_telling(row: dict[str, Any]) -> bool:
    return bool(row.get("ask") or row.get("closing")) and bool(row["edits"] or row.get("commit") or row["n"] >= 10)


def _is_open(row: dict[str, Any]) -> bool:
    return bool(row.get("todo") and row["todo"][0])


def _session(state: dict[str, Any], key: str, row: dict[str, Any]) -> Statement:
    """One line for a session; the latest event of each kind is cited, three at most."""
    said: list[tuple[str, str, int]] = []
    if ask := row.get("ask"):
        small = row.get("small")
        said.append(
            (f"last asked “{words.short(ask[0], 90)}”" + (f", then “{small[0]}”" if small else ""), ask[1], PERSON)
        )
    if closing := row.get("closing"):
        said.append((f"the agent ended with “{closing[0]}”", closing[1], OWN_AGENT))
    if todo := row.get("todo"):
        said.append((_todo(todo), todo[3], OWN_AGENT))
    if at := row["stuck"] if "stuck" in row else stuck(state, key):
        said.append((f"no success seen since it failed: `{at[0]}`", at[1], OWN_AGENT))
    if commit := row.get("commit"):
        said.append((f"last commit seen {commit[0]} “{commit[1]}” on `{commit[3]}`", commit[2], OWN_AGENT))
    if row["edits"] and len(said) < 2:
        latest = list(reversed(row["edits"].items()))
        said.append((f"edits to {names([path for path, _ in latest[:2]], 2)}", latest[0][1], OWN_AGENT))
    told = "; ".join(text for text, _, _ in said)
    head = f"{row['last']}: {told}" if row.get("last") else told[0].upper() + told[1:]
    cited = tuple(dict.fromkeys(event for _, event, _ in said))[:3]
    return Statement(f"{head}.", cited, max(tier for _, _, tier in said))


def _todo(todo: list[Any]) -> str:
    waiting, listed, shown, _ = todo
    if not waiting:
        return f"its last todo list all done ({listed}), “{shown[0]}” at its end"
    more = f" and {waiting - len(shown)} more" if waiting > len(shown) else ""
    return f"open in its last todo list: {', '.join(f'“{text}”' for text in shown)}{more}"


def stuck(state: dict[str, Any], session: str) -> list[str] | None:
    """The last build, test or lint command of a session that failed and brought nothing else afterwards."""
    steps = [step for step in state["trails"].get(session, {}).get("steps", []) if "f" in step]
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        if step.get("o") == "failed" and commands.kind(step["f"]) in ("test", "build", "lint"):
            ended = any(s["f"] == step["f"] and "p" in s and s.get("o") != "failed" for s in steps[place + 1 :])
            return None if ended else [step["f"], step.get("p", step["id"])]
    return None
