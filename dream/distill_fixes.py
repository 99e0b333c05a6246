"""From the order of commands and edits within one session: what failed, and what it took until it worked."""

from __future__ import annotations

import re
from typing import Any

from dream import distill_commands as commands
from dream import distill_words as words

NEAR = 6
# To leave a check out is not what made it pass, and nothing to teach.
_EVADES = re.compile(
    r"(?<!\S)(?:--no-verify|--no-gpg-sign|--force\S*|-f|--skip\S*|--ignore\S*|--allow\S*|--legacy-peer-deps)(?!\S)"
)
_VALUE = re.compile(r"\d|/|\.\w|^\"|^'")


def fixes(steps: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What first brought no success and then did, by the two forms it had.

    A call without a result is told as just that: the harness reports only what ended well, so it failed, was refused
    or was stopped. It counts only when a later call of the session did bring a result.
    """
    found: dict[str, dict[str, Any]] = {}
    open_steps: list[int] = []
    for i, step in enumerate(steps):
        if "f" not in step:
            continue
        if step.get("o") == "ok":
            same = [j for j in open_steps if steps[j]["f"] == step["f"]]
            if same:
                _same_form(found, steps, same, i)
            elif changed := _changed(steps, open_steps, i):
                _add(found, [steps[j] for j in changed], step, edits=[], between=[])
            open_steps = [
                j for j in open_steps if steps[j]["f"] != step["f"] and j not in (changed if not same else ())
            ]
        elif step.get("o") == "failed" or "p" not in step:
            open_steps.append(i)
    return found


def _same_form(found: dict[str, dict[str, Any]], steps: list[dict[str, Any]], bad: list[int], good: int) -> None:
    """The same command, later: what was edited and run after its first failure is what it took."""
    edits = list(dict.fromkeys(s["x"] for s in steps[bad[0] : good] if "x" in s and not s["x"].startswith("/")))
    mends = _MENDS.get(commands.kind(steps[good]["f"]), ())
    ran = [s["f"] for s in steps[bad[0] : good] if "p" in s and s.get("o") != "failed" and "f" in s]
    repairs = [text for text in ran if text != steps[good]["f"] and commands.kind(text) in mends]
    if edits or repairs or any("e" in steps[j] for j in bad):
        _add(found, [steps[j] for j in bad], steps[good], edits=edits, between=repairs)


# What can make a command of a kind work: formatting never made a test pass.
_MENDS = {
    "test": ("install", "generate"),
    "build": ("install", "generate"),
    "lint": ("format", "install", "generate"),
    "format": ("format", "install"),
    "install": ("install",),
    "": ("format",),
}


def _add(
    found: dict[str, dict[str, Any]],
    bad: list[dict[str, Any]],
    good: dict[str, Any],
    *,
    edits: list[str],
    between: list[str],
) -> None:
    """One row for the pair of forms; it cites the calls whose errors it quotes, or else the last, and the success."""
    told: dict[str, str] = {}
    for step in bad:
        if step.get("e"):
            told.setdefault(step["e"], step.get("p", step["id"]))
    errors = list(told)
    quoted = list(dict.fromkeys(errors[:1] + errors[-1:]))
    last = bad[-1]
    row = found.setdefault(f"{last['f']} → {good['f']}", {"n": 0, "sure": 0, "bad": last["f"], "good": good["f"]})
    row["n"] += len(bad)
    row["sure"] += sum(step.get("o") == "failed" for step in bad)
    row.update(
        when=good.get("p", good["id"]),
        error="”, later “".join(words.short(error, 95 if len(quoted) > 1 else 140) for error in quoted),
        edits=edits[-3:],
        edited=len(edits),
        between=list(dict.fromkeys(between))[-2:],
        told=bool(errors) or last.get("o") == "failed",
        ev=[*([told[e] for e in quoted] or [last.get("p", last["id"])]), good.get("p", good["id"])],
    )


def _changed(steps: list[dict[str, Any]], open_steps: list[int], good: int) -> list[int]:
    """The calls shortly before that were the same command in another form: a flag more, less or spelt otherwise."""
    ran = [j for j in range(good) if "f" in steps[j]][-NEAR:]
    near = [j for j in open_steps if j in ran and _corrected(steps[j]["f"], steps[good]["f"])]
    if near and commands.kind(steps[good]["f"]) and any("x" in step for step in steps[near[-1] : good]):
        return []  # It was the edit in between, not the form.
    return [j for j in near if steps[j]["f"] == steps[near[-1]]["f"]] if near else []


def _corrected(bad: str, good: str) -> bool:
    if bad == good or "…" in (bad[-1:], good[-1:]):
        return False
    one, other = bad.split(), good.split()
    if one[0] != other[0] or (commands.family(bad) != commands.family(good) and not _akin(one, other)):
        return False
    differ = [w for w in one if w not in other] + [w for w in other if w not in one]
    if not differ or len(differ) > 4:
        return False
    flags = [w for w in differ if w.startswith("-")]
    if commands.kind(bad) in ("test", "lint", "build") and not (flags and len(flags) == len(differ)):
        return False
    if _EVADES.search(good) or _EVADES.search(bad) or re.search(r" \d{4,}\b", good):
        return False
    if any(w.startswith(("-run", "-t", "--grep", "--limit", "-n", "-v", "--json")) for w in flags):
        return False
    return bool(flags) or (not any(_VALUE.search(w) for w in differ) and _akin(one, other))


def _akin(one: list[str], other: list[str]) -> bool:
    """`format:fix` and `format`, `--version` and `version`: one word written in another way."""
    pairs = [(a.lstrip("-"), b.lstrip("-")) for a, b in zip(one, other, strict=False) if a != b]
    return (
        len(one) == len(other)
        and len(pairs) == 1
        and (pairs[0][0].startswith(pairs[0][1]) or pairs[0][1].startswith(pairs[0][0]))
    )
