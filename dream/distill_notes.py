"""From the ledger to notes: which statements are worth a line, in which note, in which order."""

from __future__ import annotations

import re
from typing import Any

from dream import distill_words as words
from dream.distill_command_notes import commands_draft, failures_draft
from dream.distill_history import history_draft, status_draft
from dream.distill_ledger import first_cited, names, ranked
from dream.distill_shapes import OWN_AGENT, PERSON, TOOL_OUTPUT, Draft, Statement, draft

MOST_FILES = 8
# What is asked in so many sessions is a habit of the team, and worth a line.
OFTEN_ASKED = 3
_DULL_PATHS = ("logs/", "node_modules/", "dist/", ".git/", "/tmp/", "/var/folders/")  # noqa: S108 - seen, not used


_OUTSIDE = re.compile("|".join([*map(re.escape, _DULL_PATHS), "/", "~", r"\.\./", "[A-Za-z]:/"]))


def drafts(state: dict[str, Any], *, project: str, slug: str) -> list[Draft]:
    """All notes of the project, those without a statement left out, by path.

    A session start tells whole notes in the order of their paths: what everyone needs stands above what is kept for
    those who look for it, below `work/`.
    """
    base = f"project/{slug}"
    made = [
        _overview(state, project, base),
        commands_draft(state, project, base),
        failures_draft(state, project, base),
        _files(state, project, base),
        _rules(state, project, base),
        _requests(state, project, base),
        history_draft(state, project, base),
        status_draft(state, project, base),
        *_profiles(state),
    ]
    return sorted((note for note in made if note.sections), key=lambda note: note.path)


# --- what the project is ---------------------------------------------------------------------------------------------

_TELLING = (
    "README.md", "package.json", "pyproject.toml", "Cargo.toml", "go.mod", "CLAUDE.md", "AGENTS.md", "docs/README.md",
)  # fmt: skip


def _overview(state: dict[str, Any], project: str, base: str) -> Draft:
    facts = state["facts"]
    about = [
        Statement(f"{facts[key]['text']}.", tuple(facts[key]["ev"]), TOOL_OUTPUT)
        for key in _TELLING
        if facts.get(key, {}).get("text")
    ]
    about += [_needs(key.removeprefix("needs "), row) for key, row in sorted(facts.items()) if key.startswith("needs ")]
    if "remote" in facts:
        about.append(Statement(f"{facts['remote']['text']}.", tuple(facts["remote"]["ev"]), TOOL_OUTPUT))
    return draft(
        f"{base}/overview.md",
        f"{project}: what it is",
        f"Purpose, languages, layout and helpers of {project}, from its own files and what was worked on.",
        ("What it is", about),
        ("Languages and layout", _layout(state)),
        ("Helpers the agents use", _helpers(state)),
    )


def _needs(path: str, row: dict[str, Any]) -> Statement:
    """What every reading named: readings at different times differ, and the latest is not always known."""
    listed = names(sorted(row["lines"]), 8)
    return Statement(f"`{path}` names as direct dependencies {listed}.", tuple(row["ev"]), TOOL_OUTPUT)


def _layout(state: dict[str, Any]) -> list[Statement]:
    lines = []
    tongues = ranked(state["tongues"])[:5]
    total = sum(row["n"] for row in state["tongues"].values())
    if tongues:
        shares = ", ".join(f"{name} ({row['n'] * 100 // total} %)" for name, row in tongues if row["n"] * 50 >= total)
        lines.append(
            Statement(f"Code files read or edited, by language: {shares}.", tuple(tongues[0][1]["ev"][:2]), OWN_AGENT)
        )
    dirs = [(name, row) for name, row in ranked(state["dirs"]) if not name.startswith(_DULL_PATHS)][:5]
    if dirs:
        listed = ", ".join(f"`{name}/` ({row['n']})" for name, row in dirs)
        cited = tuple(row["ev"][0] for _, row in dirs[:2])
        lines.append(Statement(f"Folders most worked in (file calls): {listed}.", cited, OWN_AGENT))
    return lines


def _helpers(state: dict[str, Any]) -> list[Statement]:
    lines = []
    agents = ranked(state["agents"], lambda row: (row.get("asked", 0), row.get("used", 0)))[:4]
    if agents:
        listed = ", ".join(f"`{name}` ({max(row.get('asked', 0), row.get('used', 0))})" for name, row in agents)
        lines.append(Statement(f"Sub-agents asked for or started (times): {listed}.", first_cited(agents), OWN_AGENT))
    servers = ranked(state["servers"])[:4]
    if servers:
        listed = ", ".join(f"`{name}` ({row['n']})" for name, row in servers)
        lines.append(Statement(f"MCP servers called (calls): {listed}.", first_cited(servers), OWN_AGENT))
    return lines


# --- files, rules, asks, profiles ------------------------------------------------------------------------------------


def _files(state: dict[str, Any], project: str, base: str) -> Draft:
    inside = {path: row for path, row in state["files"].items() if not _OUTSIDE.match(path)}
    touched = ranked(inside, lambda row: (row.get("edits", 0) + row.get("reads", 0), row.get("edits", 0), row["ev"]))
    most = [item for item in touched if item[1].get("edits", 0) + item[1].get("reads", 0) > 2][:MOST_FILES]
    read = [
        item
        for item in ranked(inside, lambda row: (row.get("reads", 0), row["ev"]))
        if item[1].get("reads", 0) > 3 * max(1, item[1].get("edits", 0)) and item not in most[: MOST_FILES - 2]
    ][:2]
    return draft(
        f"{base}/work/files.md",
        f"{project}: files most touched",
        f"Files of {project} most edited and most often read again (calls by agents, and in how many sessions).",
        ("Most touched", [_file_line(path, row) for path, row in most[: MOST_FILES - len(read)]]),
        ("Read again and again, seldom changed", [_file_line(path, row) for path, row in read]),
    )


def _file_line(path: str, row: dict[str, Any]) -> Statement:
    sessions = len(row.get("in", []))
    where = "20 or more sessions" if sessions >= 20 else f"{sessions} sessions" if sessions > 1 else "1 session"
    counts = [_times(row[what], what) for what in ("edits", "reads") if row.get(what)]
    return Statement(f"`{path}`: {', '.join(counts)}, in {where}.", tuple(row["ev"][:1]), OWN_AGENT)


def _times(n: int, what: str) -> str:
    return f"{n} {what}" if n != 1 else f"1 {what[:-1]}"


def _rules(state: dict[str, Any], project: str, base: str) -> Draft:
    spoken = _distinct(ranked(state["rules"], lambda row: (row["n"], row["when"])))
    # What was said in one session may be of its task alone, however it was put.
    standing = [row for row in spoken if _sessions(row) > 1]
    decided = {words.alike(row["text"]) for row in state["decisions"].values()}
    once = [row for row in spoken if row not in standing]
    once = [row for row in once if words.is_standing(row["text"]) or words.alike(row["text"]) not in decided]
    once.sort(key=lambda row: words.is_standing(row["text"]), reverse=True)
    written = [
        (path, row, line) for path, row in sorted(state["facts"].items()) if "uses" in row for line in row["lines"]
    ]
    return draft(
        f"{base}/rules.md",
        f"{project}: rules people stated",
        f"What people of {project} asked to be done always, never or in one way, in their words; and its own.",
        ("Said in prompts", [_said(row) for row in standing[:6]]),
        ("Said once, perhaps of one task only", [_said(row) for row in once[:5]]),
        (
            "Written in instruction files",
            [Statement(f"`{path}`: “{line}”", tuple(row["ev"]), TOOL_OUTPUT) for path, row, line in written[:4]],
        ),
    )


def _distinct(rows: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Without what another of them holds whole."""
    keys = [words.alike(row["text"]) for _, row in rows]
    held = {key for key in keys if any(key != other and key in other for other in keys)}
    return [row for (_, row), key in zip(rows, keys, strict=True) if key not in held]


def _said(row: dict[str, Any]) -> Statement:
    # The prompt that is quoted first; of the others like it the latest.
    cited = tuple(dict.fromkeys([row["by"], *row["ev"]]))[: 2 if row["n"] > 1 else 1]
    pattern = row.get("said", {}).get(str(len(row["text"].split())), row["text"])
    text = words.common(row["text"], pattern)
    return Statement(f"“{text}”{_often(row, is_common=text != row['text'])}.", cited, PERSON)


def _often(row: dict[str, Any], *, is_common: bool) -> str:
    if row["n"] == 1:
        return ""
    if is_common:
        return f" ({row['n']} prompts that begin alike; … is what differs)"
    return f" (latest of {row['n']} prompts that begin alike)"


def _sessions(row: dict[str, Any]) -> int:
    """In how many sessions; rows of older states only know how often."""
    return len(row.get("in", [])) or int(row["n"])


def _requests(state: dict[str, Any], project: str, base: str) -> Draft:
    asks = ranked(state["asks"], lambda row: (_sessions(row), row["n"], row["when"]))
    often = [row for _, row in asks if _sessions(row) >= OFTEN_ASKED and len(row["text"].split()) > 3]
    return draft(
        f"{base}/work/requests.md",
        f"{project}: what people ask for",
        f"Prompts people gave the agents in {project} again and again, condensed.",
        (f"Asked in {OFTEN_ASKED} sessions or more", [_said(row) for row in often[:6]]),
    )


def _profiles(state: dict[str, Any]) -> list[Draft]:
    """One note per member, only from what that member said of himself."""
    members = sorted({row["member"] for row in state["prefs"].values()})
    return [
        draft(
            f"profile/{member}/preferences.md",
            f"Preferences of {member}",
            f"What {member} said of their own way of working.",
            (
                "Said in the first person",
                [
                    Statement(row["text"], tuple(row["ev"]), PERSON)
                    for _, row in ranked(state["prefs"], lambda row: (row["when"], row["text"]))
                    if row["member"] == member
                ],
            ),
            kind="profile",
        )
        for member in members
    ]
