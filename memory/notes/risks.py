"""What a reviewer should look at twice. Labels only: structure protects (nothing is told before a person approved it).

Detectors miss most poisoned notes (18 of 20 in a trial), so a proposal without a label is not thereby safe.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal, TypeAlias

from memory.notes.lines import lost_statements, new_statements
from memory.sentences import sentence

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


# Commands are looked for as they are typed, in a fence, in backticks or bare in a sentence: lower case, the verb behind
# the program. "The command palette", "push notifications" and "Docker pushes layers" are none.
_SHELLS: Final = r"(?:ba|z|da|k|fi)?sh"
_LOADERS: Final = r"(?:curl|wget|iwr|irm|fetch|Invoke-WebRequest|Invoke-RestMethod)"
# The rest of one command, over lines that a backslash continues. Bounded, for such a search is quadratic.
_REST: Final = r"(?:[^\n]|\\\n){0,400}?"
_TO_SHELL: Final = re.compile(
    rf"\b{_LOADERS}\b{_REST}\|\s*(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+)?(?:/\S*/)?(?:{_SHELLS}|python3?|perl|ruby|node|php|iex)\b"
    # `bash <(curl …)`, `sh -c "$(curl …)"`, `eval $(wget …)`, `iex (irm …)`
    rf"|\b(?:{_SHELLS}|source|eval|iex|python3?|node)\b[^\n|;]{{0,40}}[<$]?[(`]\s*{_LOADERS}\b"
    # What a program prints is run: no row of a table, which ends with its own bar.
    rf"|\|\s*(?:sudo\s+)?(?:{_SHELLS}|python3?|perl|node|ruby|php)\b(?![^\n]{{0,400}}\|[ \t]*$)",
    re.I | re.M,
)
_DESTROYS: Final = re.compile(
    r"\brm\s+(?:-\S+\s+)*-(?:[a-zA-Z]*[rR][a-zA-Z]*|-recursive)\b|\bfind\s[^\n]{0,400}?\s-delete\b"
    r"|\bgit\s+push\b[^\n]{0,400}?(?:\s--force\b|\s-f\b|\s--mirror\b|\s--delete\b|\s\+\w)"
    r"|\bgit\s+(?:reset\s+--hard|clean\s+-\w*[fdx]\w*|branch\s+-D|filter-branch|filter-repo)\b"
    r"|\bchmod\s+(?:-R\s+)?(?:0?777|a\+rwx)\b|\b(?:mkfs(?:\.\w+)?|shred|wipefs)\s+\S|\bdd\s+[^\n]{0,400}?\bof=/dev/"
    r"|\b(?i:drop\s+(?:table|database|schema)|truncate\s+table)\s+\S|(?<![\w-])--no-verify\b|\bbase64\s+(?:-d|-D|--decode)\b"
    r"|\bkubectl\s+(?:-\S+\s+(?:\S+\s+)?)?(?:delete|drain)\b|\bhelm\s+(?:uninstall|delete)\b"
    r"|\b(?:terraform|tofu|pulumi|cdk)\s+destroy\b|\bdocker\s+(?:system|volume|image|container)\s+(?:prune|rm)\b"
    r"|\b(?:dropdb|dropuser)\s+\S|\bredis-cli\b[^\n]{0,400}?\b(?i:flushall|flushdb)\b"
    r"|\baws\s+[^\n]{0,400}?\b(?:rm|rb|delete-[\w-]+|terminate-instances)\b|\b(?:gcloud|az|heroku|fly|gh)\s+[^\n]{0,400}?\s(?:delete|destroy)\b"
    r"|\b(?:npm|yarn|pnpm)\s+unpublish\b|\bkill\s+-(?:9|KILL)\b|\b(?:pkill|killall)\s+-?\w|:\(\)\s*\{\s*:\|:&\s*\}"
)
_REACHES_OUT: Final = re.compile(
    r"\b(?:npm|yarn|pnpm|cargo|poetry|flit|hatch|uv|lerna)\s+publish\b|\btwine\s+upload\b|\bgem\s+push\b"
    r"|\bdocker\s+(?:push|login)\b|\bhelm\s+(?:install|upgrade|push)\b|\b(?:terraform|tofu)\s+apply\b|\bpulumi\s+up\b"
    r"|\bkubectl\s+(?:-\S+\s+(?:\S+\s+)?)?(?:apply|exec|patch|scale|rollout|set|cp|edit|replace)\b"
    r"|\bgit\s+(?:push|remote\s+(?:add|set-url)|config\s+--(?:global|system))\b|\bgh\s+(?:release|pr|repo|secret)\s+\w+"
    r"|\bsudo\s+-?[a-z./]|\bssh\s+(?:-\S+\s+)*[\w.-]+@[\w.-]+|\b(?:scp|rsync)\s[^\n]{0,400}?\w:\S"
    r"|\b(?:curl|wget)\s+(?:-|[\"'$]|https?:|[\w-]+\.\w|localhost)|\bnc\s+-\w|\bcrontab\s+-\w"
    r"|\bsystemctl\s+(?:start|stop|restart|enable|disable|mask)\b|\bchown\s+(?:-R\s+)?[\w.-]+[: ]"
    r"|\baws\s+(?:s3|ecs|ec2|iam|lambda|ssm)\s+\w|\bvercel\s+(?:deploy|--prod)|\b(?:fly|firebase|serverless|sls|cdk)\s+deploy\b"
)

# Looked for in the lines that are new; the words found are quoted in the reason.
_IN_TEXT: Final[tuple[tuple[str, Level, str, re.Pattern[str]], ...]] = (
    ("pipe_to_shell", "high", sentence("Holds a command that runs what it downloads or prints: %(found)s"), _TO_SHELL),
    ("destructive_command", "high", sentence("Holds a command that destroys or opens things: %(found)s"), _DESTROYS),
    ("command", "medium", sentence("Holds a command that reaches outside the working copy: %(found)s"), _REACHES_OUT),
    (
        "speaks_to_the_agent",
        "high",
        sentence("Speaks to the agent instead of stating a fact: %(found)s"),
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
        sentence("Holds characters that can't be seen: %(found)s"),
        re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"),
    ),
    (
        "address",
        "medium",
        sentence("Names an address: %(found)s"),
        re.compile(
            # What follows an address in a sentence (a quote, a bracket, a full stop) is no part of it.
            r"\b(?:https?|ftp|ssh)://[^\s()<>\[\]`\"'“”‘’|]*[^\s()<>\[\]`\"'“”‘’|.,;:!?…*]"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}\b",
            re.I,
        ),
    ),
    (
        "person",
        "medium",
        sentence("Names a person's mail address: %(found)s"),
        re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    ),
    (
        "rule",
        "low",
        sentence("States a rule: %(found)s"),
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
        risks.append(
            Risk(
                "path", "low", sentence("Moves the note to %(path)s: another rule may hold there.", path=change.target)
            )
        )
    if change.tier >= 3:
        why = sentence("Rests on tool output, a web page or a message from outside: anyone may have written it.")
        risks.append(Risk("from_outside", "high" if is_profile else "medium", why))
    if is_profile:
        risks.append(Risk("profile", "medium", sentence("Stands in a profile: every session is told it.")))
    if change.redactions:
        what = sentence("A secret was taken out of the text.")
        if change.redactions > 1:
            what = sentence("%(many)s secrets were taken out of the text.", many=change.redactions)
        risks.append(Risk("secret", "medium", what))
    return risks


def _by_text(change: Change) -> list[Risk]:
    if change.is_delete:
        return []
    # Frontmatter too: a description is shown in every index.
    known = set(change.old.split("\n"))
    added = "\n".join(line for line in change.text.split("\n") if line not in known)
    # A record quotes what people asked: "never mind" in a quoted prompt is no rule of the note.
    told = _QUOTATION.sub("", added) if _RECORD.search(change.path) else added
    found = [
        Risk(code, serious, reason % {"found": _quote(match.group())})
        for code, serious, reason, pattern in _IN_TEXT
        if (match := pattern.search(told if code == "rule" else added))
    ]
    # One label of commands, the worst: `curl … | sh` reaches outside too.
    is_worse = any(risk.code in ("pipe_to_shell", "destructive_command") for risk in found)
    return [risk for risk in found if risk.code != "command" or not is_worse]


def _by_loss(change: Change) -> list[Risk]:
    risks = []
    if change.is_delete:
        risks.append(Risk("delete", "medium", sentence("Deletes the note.")))
    elif lost := lost_statements(change.text, change.old):
        serious: Level = "medium" if change.old_is_by_people else "low"
        if not new_statements(change.text, change.old) or change.old_is_by_people:
            risks.append(Risk("removes_lines", serious, _removes(len(lost), is_by_people=change.old_is_by_people)))
    if change.gave_way:
        gone = "; ".join(_quote(line.strip()) for line in change.gave_way[:3])
        risks.append(
            Risk(
                "gave_way",
                "low",
                sentence("People changed the same lines and theirs stay; left out: %(lines)s", lines=gone),
            )
        )
    return risks


def _removes(lines: int, *, is_by_people: bool) -> str:
    if is_by_people and lines == 1:
        return sentence("Removes 1 line written by people from the note.")
    if is_by_people:
        return sentence("Removes %(many)s lines written by people from the note.", many=lines)
    if lines == 1:
        return sentence("Removes 1 line from the note.")
    return sentence("Removes %(many)s lines from the note.", many=lines)


def _quote(text: str) -> str:
    shown = "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)
    return f"“{shown[:_QUOTED]}{'…' if len(shown) > _QUOTED else ''}”"
