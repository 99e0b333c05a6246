"""What a reviewer should look at twice. Labels only: structure protects (nothing is told before a person approved it).

Detectors miss most poisoned notes (18 of 20 in a trial), so a proposal without a label is not thereby safe.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, TypeAlias

from memory.notes.lines import lost_statements, new_statements

Level: TypeAlias = Literal["high", "medium", "low"]
LEVELS: Final[tuple[Level, ...]] = ("high", "medium", "low")


@dataclass(frozen=True)
class Risk:
    """One label: a stable code, how serious it is, and the reason in words."""

    code: str
    level: Level
    reason: str


@dataclass(frozen=True)
class Change:
    """What is known about a proposal when it is made."""

    path: str
    text: str
    old: str = ""
    tier: int = 2
    is_delete: bool = False
    old_is_by_people: bool = False
    redactions: int = 0
    gave_way: Sequence[str] = ()
    target: str = ""


# Looked for in the lines that are new; the words found are quoted in the reason.
_IN_TEXT: Final[tuple[tuple[str, Level, str, re.Pattern[str]], ...]] = (
    (
        "pipe_to_shell",
        "high",
        "runs what it downloads",
        re.compile(
            r"\b(?:curl|wget|iwr|fetch)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\|\s*(?:python3?|perl|node)\b", re.I
        ),
    ),
    (
        "destructive_command",
        "high",
        "holds a command that destroys or opens things",
        re.compile(
            r"\brm\s+-[a-z]*(?:rf|fr)[a-z]*\b|\bgit\s+push\b[^\n]*(?:--force\b|\s-f\b)|\bchmod\s+(?:-R\s+)?0?777\b"
            r"|\bDROP\s+(?:TABLE|DATABASE)\b|\b--no-verify\b|\bbase64\s+(?:-d|--decode)\b|\bmkfs\b",
            re.I,
        ),
    ),
    (
        "speaks_to_the_agent",
        "high",
        "speaks to the agent instead of stating a fact",
        re.compile(
            r"\b(?:ignore|disregard|forget)\b[^\n]{0,30}\b(?:above|previous|prior|all|earlier|instructions?|rules?)\b"
            r"|^\W*(?:SYSTEM|ASSISTANT)\s*:|</?\s*(?:team-memory|system-reminder|system|instructions?)\b"
            r"|\byou are now\b|\bdo not (?:tell|mention|inform)\b|\bwithout (?:asking|telling)\b",
            re.I | re.M,
        ),
    ),
    (
        "hidden_characters",
        "high",
        "holds characters that can't be seen",
        re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"),
    ),
    (
        "address",
        "medium",
        "names an address",
        re.compile(
            # What follows an address in a sentence (a quote, a bracket, a full stop) is no part of it.
            r"\b(?:https?|ftp|ssh)://[^\s()<>\[\]`\"'“”‘’|]*[^\s()<>\[\]`\"'“”‘’|.,;:!?…*]"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",
            re.I,
        ),
    ),
    ("person", "medium", "names a person's mail address", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    (
        "rule",
        "low",
        "states a rule",
        re.compile(r"\b(?:always|never|must(?:n't)?|don't|do not)\b|luôn|không được|必须|禁止", re.I),
    ),
)
_QUOTED: Final = 60
_QUOTATION: Final = re.compile(r"“[^”\n]*”|\"[^\"\n]*\"")
_RECORD: Final = re.compile(r"(?:^|/)(?:status|requests|history)\.md$", re.I)


def labels(change: Change) -> list[Risk]:
    """Every label of a change, the most serious first."""
    found = [*_by_place(change), *_by_text(change), *_by_loss(change)]
    return sorted(found, key=lambda risk: LEVELS.index(risk.level))


def without_addresses(text: str) -> str:
    """The text without web addresses, hosts by number and people's mail addresses."""
    for code, _, _, pattern in _IN_TEXT:
        if code in ("address", "person"):
            text = pattern.sub("(an address)", text)
    return text


def level(risks: Sequence[Risk]) -> Level:
    """The most serious level among the labels; `low` where there is none."""
    return min((risk.level for risk in risks), key=LEVELS.index, default="low")


def stored(risks: Sequence[Risk]) -> list[dict[str, str]]:
    """The labels as the JSON that a proposal keeps."""
    return [asdict(risk) for risk in risks]


def loaded(rows: Sequence[dict[str, str]]) -> list[Risk]:
    """The labels that a proposal kept."""
    return [Risk(row["code"], row["level"], row["reason"]) for row in rows]  # type: ignore[arg-type]


def _by_place(change: Change) -> list[Risk]:
    is_profile = any(path.casefold().startswith("profile/") for path in (change.path, change.target))
    risks = []
    if change.target:
        risks.append(Risk("path", "low", f"Moves the note to {change.target}: another rule may hold there."))
    if change.tier >= 3:
        why = "Rests on tool output, a web page or a message from outside"
        risks.append(Risk("from_outside", "high" if is_profile else "medium", f"{why}: anyone may have written it."))
    if is_profile:
        risks.append(Risk("profile", "medium", "Stands in a profile: every session is told it."))
    if change.redactions:
        what = "A secret was" if change.redactions == 1 else f"{change.redactions} secrets were"
        risks.append(Risk("secret", "medium", f"{what} taken out of the text."))
    return risks


def _by_text(change: Change) -> list[Risk]:
    if change.is_delete:
        return []
    # Frontmatter too: a description is shown in every index.
    known = set(change.old.split("\n"))
    added = "\n".join(line for line in change.text.split("\n") if line not in known)
    # A record quotes what people asked: "never mind" in a quoted prompt is no rule of the note.
    told = _QUOTATION.sub("", added) if _RECORD.search(change.path) else added
    return [
        Risk(code, serious, f"{reason[0].upper()}{reason[1:]}: {_quote(match.group())}")
        for code, serious, reason, pattern in _IN_TEXT
        if (match := pattern.search(told if code == "rule" else added))
    ]


def _by_loss(change: Change) -> list[Risk]:
    risks = []
    if change.is_delete:
        risks.append(Risk("delete", "medium", "Deletes the note."))
    elif lost := lost_statements(change.text, change.old):
        whose = "written by people " if change.old_is_by_people else ""
        count = f"{len(lost)} line{'' if len(lost) == 1 else 's'}"
        serious: Level = "medium" if change.old_is_by_people else "low"
        if not new_statements(change.text, change.old) or change.old_is_by_people:
            risks.append(Risk("removes_lines", serious, f"Removes {count} {whose}from the note."))
    if change.gave_way:
        gone = "; ".join(_quote(line.strip()) for line in change.gave_way[:3])
        risks.append(Risk("gave_way", "low", f"People changed the same lines and theirs stay; left out: {gone}"))
    return risks


def _quote(text: str) -> str:
    shown = "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)
    return f"“{shown[:_QUOTED]}{'…' if len(shown) > _QUOTED else ''}”"
