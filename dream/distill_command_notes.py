"""The notes on commands: which work and what for, which failed and what fixed them."""

from __future__ import annotations

import re
from typing import Any

from dream import distill_commands as commands
from dream import distill_words as words
from dream.distill_ledger import ranked, runs_of
from dream.distill_shapes import COMMANDS_BYTES, FAILURES_BYTES, OWN_AGENT, TOOL_OUTPUT, Draft, Statement, draft

Forms = list[tuple[str, dict[str, Any]]]

_KIND_NAMES = {
    "build": "Build",
    "test": "Test",
    "lint": "Lint and type check",
    "format": "Format",
    "generate": "Generate",
    "install": "Dependencies",
    "run": "Run",
}
# Of so many edited files one can guess which mattered; of more none is worth naming.
MOST_EDITED = 5
# A success in one run of more than so many is seldom.
SELDOM = 5
_TICKETS = ("gh", "glab", "backlog", "jira", "bd", "linear")
# A script that an agent wrote to try something is no command of the project.
_SCRATCH = re.compile(r"(?<!manage)\.(?:[cm]?[jt]s|py|rb|sh)\b| -[ce] |/tmp/|--help|--version|…")
_LOOKS = re.compile(r"^\S+ (?:\S+ )?(?:view|list|status|search|show)\b|(?<!\")…")
# An example of a command with a gap to fill, or one that never ends, can't succeed as it is written.
_GAP = re.compile(r"[<>{}\[\]\"']|\b[A-Z]{3,}\b|watch")


def commands_draft(state: dict[str, Any], project: str, base: str) -> Draft:
    uses = _explained(state)
    kinds = {kind: _of_kind(state, kind, uses) for kind in _KIND_NAMES}
    often_fails = [line for found in kinds.values() for works, line in found if not works]
    failing, silent = _unproven(state, uses)
    return draft(
        f"{base}/commands.md",
        f"{project}: commands that work",
        "Build, test, lint and format commands with what they are for and how often they succeeded. "
        "Unclear: no result on record, or hidden behind a pipe.",
        ("How to run", _how(state)),
        *((heading, [line for works, line in kinds[kind] if works]) for kind, heading in _KIND_NAMES.items()),
        ("Tickets and review", _tickets(state)),
        ("Fail often, or seldom seen to succeed", [*often_fails, *failing][:5]),
        ("No result on record", silent),
        most=COMMANDS_BYTES,
    )


def _how(state: dict[str, Any]) -> list[Statement]:
    facts = sorted(state["facts"].items())
    return [Statement(f"{row['how']}.", tuple(row["ev"]), TOOL_OUTPUT) for _, row in facts if row.get("how")][:2]


def _explained(state: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What each command is for, and the event that says so: people's words first, else what a script runs."""
    found: dict[str, tuple[str, str]] = {}
    for path, row in sorted(state["facts"].items()):
        for text, said in row.get("uses", {}).items():
            found.setdefault(text, (f"“{said}” ({path})", row["ev"][0]))
    scripts = {**state["banners"], **state["scripts"]}
    for text, row in sorted(scripts.items()):
        if not row["text"].startswith("command -v"):
            found.setdefault(text, (f"runs `{words.short(row['text'], 60)}`", row["ev"][0]))
    return found


# --- those that work -------------------------------------------------------------------------------------------------


def _of_kind(state: dict[str, Any], kind: str, uses: dict[str, tuple[str, str]]) -> list[tuple[bool, Statement]]:
    """The commands of one kind for the whole project, each with its record; then those for a part of it, as one.

    Each with whether it works, so that none is praised for one success among many failures.
    """
    rows = [item for item in ranked(state["forms"], _worth) if item[1]["kind"] == kind and item[1].get("ok")]
    whole = [(text, row) for text, row in rows if row["whole"] or text in uses]
    whole = [(text, row) for text, row in whole if row["ok"] > 1 or text in uses] or whole[:2]
    if kind == "run":
        again = [(text, row) for text, row in rows if row["ok"] > 1 and not _SCRATCH.search(text)][:3]
        return [(_works(row), _form_line(text, row, uses)) for text, row in again]
    whole = whole[: {"test": 5, "build": 5, "lint": 4}.get(kind, 2)]
    lines = [(_works(row), _form_line(text, row, uses)) for text, row in whole]
    parts = [line for forms in _in_parts(state, kind) if (line := _family_line(forms))]
    return lines + parts[: 2 if kind == "test" else 1 if kind in ("build", "lint") or not lines else 0]


def _worth(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row.get("ok", 0), runs_of(row), row.get("ok_ev", []))


def _form_line(text: str, row: dict[str, Any], uses: dict[str, tuple[str, str]]) -> Statement:
    said, event = uses.get(text, ("", ""))
    cited = (row["ok_ev"][0], event) if event else (row["ok_ev"][0],)
    record = f"{_record(row, row['kind'])}; {said}" if said else _record(row, row["kind"])
    return Statement(f"`{text}`: {record}.", tuple(dict.fromkeys(cited)), TOOL_OUTPUT if said else OWN_AGENT)


def _record(row: dict[str, Any], kind: object) -> str:
    runs, ok, failed = runs_of(row), row.get("ok", 0), row.get("failed", 0)
    if runs == 1:
        return "succeeded in its 1 run"
    rest = [f"{n} {word}" for n, word in ((failed, _failed(kind)), (runs - ok - failed, "unclear")) if n > 0]
    often = "" if _works(row) else "seldom seen to succeed: "
    if failed >= ok:
        fails = "reports findings or fails" if kind == "lint" else "fails"
        often = f"often {fails}: " if failed > ok else f"{fails} about as often: "
    return f"{often}succeeded in {ok} of {runs} runs" + (f" ({', '.join(rest)})" if rest else "")


def _works(row: dict[str, Any]) -> bool:
    """In most of the runs whose end is known; where next to none is known, one success proves little."""
    return bool(row.get("ok", 0) > row.get("failed", 0) and row["ok"] * SELDOM >= runs_of(row))


def _in_parts(state: dict[str, Any], kind: str) -> list[Forms]:
    """The commands that were run on many files, packages or tests: told as one, with an example that worked."""
    families: dict[str, Forms] = {}
    for text, row in sorted(state["forms"].items()):
        if row["kind"] == kind and not row["whole"]:
            families.setdefault(str(row["fam"]), []).append((text, row))
    many = [forms for forms in families.values() if len(forms) > 1 and sum(row.get("ok", 0) for _, row in forms) > 1]
    return sorted(many, key=lambda forms: (sum(row.get("ok", 0) for _, row in forms), forms[0][0]), reverse=True)


def _family_line(forms: Forms) -> tuple[bool, Statement] | None:
    good = [(text, row) for text, row in forms if row.get("ok")]
    shown = [(text, row) for text, row in good if "…" not in text]
    if not shown:
        return None
    rows = [row for _, row in forms]
    all_runs = {"before": sum(map(runs_of, rows)), "ok": _sum(rows, "ok"), "failed": _sum(rows, "failed")}
    best, row = min(shown, key=lambda item: (-item[1]["ok"], len(item[0]), item[0]))
    text = f"`{best}`{_others(forms)}: {_record(all_runs, row['kind'])}"
    if flags := _flags(good):
        text += f"; flags: {flags}"
    others = sorted((ev for _, other in good for ev in other["ok_ev"]), reverse=True)
    cited = tuple(dict.fromkeys([row["ok_ev"][0], *others]))[:2]
    return _works(all_runs), Statement(f"{text}.", cited, OWN_AGENT)


def _sum(rows: list[dict[str, Any]], what: str) -> int:
    return sum(row.get(what, 0) for row in rows)


def _others(forms: Forms) -> str:
    if len(forms) == 1:
        return ""
    return f" and {len(forms) - 1} other form{'s' if len(forms) > 2 else ''} of `{forms[0][1]['fam']}`"


def _flags(forms: Forms) -> str:
    used: dict[str, int] = {}
    for text, row in forms:
        for flag in {flag.split("=")[0] for flag in commands.flags(commands.bare(text))} - {"--"}:
            used[flag] = used.get(flag, 0) + row["ok"]
    best = sorted(used.items(), key=lambda item: (-item[1], item[0]))[:5]
    return ", ".join(f"`{flag}`" for flag, _ in best)


def _tickets(state: dict[str, Any]) -> list[Statement]:
    """The tools of tickets and code review, in the form that succeeded most."""
    families: dict[str, Forms] = {}
    for text, row in sorted(state["forms"].items()):
        if not row["kind"] and row["fam"].split()[0] in _TICKETS and row.get("ok") and not _LOOKS.search(text):
            families.setdefault(str(row["fam"]), []).append((text, row))
    worth = [(-_sum([row for _, row in forms], "ok"), forms) for _, forms in sorted(families.items())]
    return [_ticket_line(forms, -ok) for ok, forms in sorted(worth, key=lambda item: item[0]) if ok < -2][:3]


def _ticket_line(forms: Forms, ok: int) -> Statement:
    text, row = min(forms, key=lambda item: (-item[1]["ok"], len(item[0]), item[0]))
    return Statement(f"`{text}`{_others(forms)}: succeeded {ok} times.", tuple(row["ok_ev"][:1]), OWN_AGENT)


def _unproven(state: dict[str, Any], uses: dict[str, tuple[str, str]]) -> tuple[list[Statement], list[Statement]]:
    """What the project's own files explain or agents ran again and again, and was never seen to succeed.

    Those that failed, and those of which no result is known: they need not be broken.
    """
    forms = state["forms"]
    often = {text for text, row in forms.items() if row["whole"] and runs_of(row) > 2}
    named = {text for text, (said, _) in uses.items() if said.startswith("“")}
    failing: list[tuple[int, Statement]] = []
    silent: list[tuple[int, Statement]] = []
    for text in sorted(often | named):
        row = forms.get(text, {})
        if row.get("ok") or _GAP.search(text) or commands.kind(text) not in ("test", "build", "lint", "format"):
            continue
        said, event = uses.get(text, ("", ""))
        cited = [*([event] if event else []), *row.get("failed_ev", row.get("ev", []))[:1]]
        line = Statement(
            f"`{text}`: {f'{said}; ' if said else ''}{_no_success(text, row)}.",
            tuple(dict.fromkeys(cited)),
            TOOL_OUTPUT if said else OWN_AGENT,
        )
        (failing if row.get("failed") else silent).append((-runs_of(row), line))
    ordered = [[line for _, line in sorted(found, key=lambda item: item[0])][:3] for found in (failing, silent)]
    return ordered[0], ordered[1]


def _no_success(text: str, row: dict[str, Any]) -> str:
    runs, failed = runs_of(row), row.get("failed", 0)
    if failed:
        often = f"{failed} of {runs} runs" if runs > 1 else "its 1 run"
        return f"{_failed(commands.kind(text))} in {often}, and was not seen to succeed"
    # Behind a pipe there was a result, but not one that tells.
    result = "no clear result was recorded" if row.get("after") or row.get("chained") else "no result was recorded"
    return f"{runs} runs, {result}" if runs > 1 else result


# --- failures --------------------------------------------------------------------------------------------------------


def failures_draft(state: dict[str, Any], project: str, base: str) -> Draft:
    rows = list(state["fixes"].values())
    rows.sort(key=_lesson, reverse=True)
    fixed = [row for row in rows if row["bad"] == row["good"] and commands.kind(row["bad"]) not in ("", "run")]
    fixed = [row for row in fixed if _teaches(row)]
    changed = [row for row in rows if row["bad"] != row["good"]]
    return draft(
        f"{base}/work/failures.md",
        f"{project}: what failed and what fixed it",
        f"Commands in {project} that failed or gave no result, later succeeded, and what was done in between.",
        ("Failed at first, succeeded later", [_fix_line(row) for row in fixed if "…" not in row["bad"]][:7]),
        ("As first written → as it worked", [_changed_line(row) for row in changed][:5]),
        most=FAILURES_BYTES,
    )


def _lesson(row: dict[str, Any]) -> tuple[Any, ...]:
    """A command that repaired it says most, then the error itself, then how often it failed."""
    whole = commands.named(row["bad"])["whole"]
    return (bool(row["between"]), bool(row["error"]) and whole, row["n"] > 2, bool(row["error"]), row["n"], row["when"])


def _teaches(row: dict[str, Any]) -> bool:
    """That something failed once or twice and succeeded later says nothing by itself."""
    return bool(row["error"] or row["between"] or 0 < row["edited"] <= MOST_EDITED or row["n"] > 2)


def _fix_line(row: dict[str, Any]) -> Statement:
    runs = "1 run" if row["n"] == 1 else f"{row['n']} runs"
    what = f"`{row['bad']}`: {_failed(commands.kind(row['bad']), is_sure=row['sure'] == row['n'])} in {runs}"
    if row["error"]:
        what += f" (“{row['error']}”)"
    done = [f"`{text}`" for text in row["between"]]
    if 0 < row["edited"] <= MOST_EDITED:
        done.append(_edits(row))
    return Statement(
        f"{what}; succeeded {'after ' + ' and '.join(done) if done else 'later'}.",
        tuple(row["ev"]),
        TOOL_OUTPUT if row["error"] else OWN_AGENT,
    )


def _failed(kind: object, *, is_sure: bool = True) -> str:
    """A linter that ends badly did its work: it found something."""
    if kind == "lint":
        return "reported findings or failed" if is_sure else "reported findings, failed or gave no result"
    return "failed" if is_sure else "failed or gave no result"


def _edits(row: dict[str, Any]) -> str:
    listed = ", ".join(f"`{path}`" for path in row["edits"])
    more = row["edited"] - len(row["edits"])
    return f"edits to {listed}" + (f" and {more} other files" if more > 1 else " and 1 other file" if more else "")


def _changed_line(row: dict[str, Any]) -> Statement:
    error = f" (“{row['error']}”)" if row["error"] else ""
    return Statement(
        f"`{row['bad']}`: {'failed' if row['told'] else 'no success'}{error} → `{row['good']}` succeeded.",
        tuple(row["ev"]),
        TOOL_OUTPUT if row["error"] else OWN_AGENT,
    )
