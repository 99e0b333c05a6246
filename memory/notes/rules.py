"""Rules: which changes are let in by themselves, which wait for a person, and which nobody may make.

The first rule whose glob matches decides; without one, changes are reviewed. A member's own space has no rules: there
the member decides.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from django.utils.translation import gettext

from memory.notes import paths
from memory.notes.models import Note, Rule
from memory.problems import Problem
from memory.sentences import sentence
from memory.tenants import access, audit
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant

MODES: Final = ("auto", "review", "locked")
MOST_RULES: Final = 200
MAX_GLOB: Final = 200
WORST_AUTO_TIER: Final = 1


class Locked(Problem):
    """The note, or the rule of its path, is locked; `str()` says what to do."""

    def __init__(self, advice: str) -> None:
        super().__init__(403, "locked", advice)


class NeedsTwo(Problem):
    """The rule asks for two people, or for others: a change is proposed, not made."""

    def __init__(self, advice: str) -> None:
        super().__init__(409, "needs_two", advice)


class InvalidRule(ValueError):
    """The rule can't be kept; `str()` says what to mend."""


@dataclass(frozen=True)
class Verdict:
    """What holds for one path."""

    mode: str = "review"
    four_eyes: bool = False
    approvers: tuple[str, ...] = ()
    glob: str = ""
    # Of a move: what the rule of the path asks for where the note shall stand.
    also: tuple[str, ...] = ()

    def lets_decide(self, by: Actor) -> bool:
        """True where the rule lets this person approve: their role or their handle is named, or nobody is."""
        named = (self.approvers, self.also)
        return by.role == "owner" or all(not one or by.role in one or f"@{by.label}" in one for one in named)


@dataclass(frozen=True)
class Wanted:
    """A rule as a form says it."""

    glob: str
    mode: str = "review"
    four_eyes: bool = False
    approvers: Sequence[str] = field(default_factory=tuple)
    position: int | None = None


DEFAULT: Final = Verdict()


@lru_cache(maxsize=1024)
def pattern(glob: str) -> re.Pattern[str]:
    """The glob as a pattern over path keys: `*` and `?` stay within a level, `**` crosses them."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", paths.path_key(glob))
    spoken = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(spoken.get(part, re.escape(part)) for part in parts), re.DOTALL)


def matches(glob: str, path_key: str) -> bool:
    return pattern(glob).fullmatch(path_key) is not None


def first(rules: Iterable[Rule], path_key: str) -> Verdict:
    """The verdict of the first rule that matches."""
    for rule in rules:
        if matches(rule.glob, path_key):
            return Verdict(rule.mode, rule.four_eyes, tuple(rule.approvers), rule.glob)
    return DEFAULT


def listed(tenant: Tenant) -> list[Rule]:
    """The team's rules in the order in which they are tried."""
    return list(Rule.objects.filter(tenant=tenant).order_by("position", "glob"))


def at(tenant_pk: str, path_key: str) -> Verdict:
    """What the team's rules say of a path."""
    return first(Rule.objects.filter(tenant_id=tenant_pk).order_by("position", "glob"), path_key)


def verdict(note: Note, target: str = "") -> Verdict:
    """What holds for a note: its own lock first, then the rules. With `target`, where it shall be moved, what either
    path asks for: else a move would be the way round a rule.
    """
    if note.member_id is not None:
        return Verdict("locked", glob=sentence("this note")) if note.is_locked else DEFAULT
    found = at(str(note.tenant_id), note.path_key)
    if target:
        there = at(str(note.tenant_id), paths.path_key(target))
        found = replace(found, four_eyes=found.four_eyes or there.four_eyes, also=there.approvers)
        found = replace(found, mode="locked", glob=there.glob) if there.mode == "locked" else found
    return replace(found, mode="locked", glob=sentence("this note")) if note.is_locked else found


def require_open(note: Note, target: str = "") -> Verdict:
    """What holds for a note that may be changed. Raises Locked."""
    found = verdict(note, target)
    if found.mode == "locked":
        if note.is_locked:
            raise Locked(sentence("The note is locked. A person has to unlock it before anybody changes it."))
        raise Locked(
            sentence(
                "The rule %(glob)s locks this path. A person has to unlock it before anybody changes it.",
                glob=found.glob,
            )
        )
    return found


def require_one(note: Note, by: Actor, target: str = "") -> None:
    """Raises Locked, and NeedsTwo where this person alone may not change the note."""
    found = require_open(note, target)
    if found.four_eyes:
        raise NeedsTwo(
            gettext("Two people decide on changes of this note: propose the change, and another approves it.")
        )
    if not found.lets_decide(by):
        raise NeedsTwo(
            gettext("The rule %(glob)s names who approves here: propose the change, and they decide.")
            % {"glob": found.glob or "**"}
        )


def hits(tenant: Tenant, glob: str) -> list[Note]:
    """The notes of the team that a rule with this glob would match. Raises InvalidRule."""
    wanted = check_glob(glob)
    notes = Note.objects.present().filter(tenant=tenant, member__isnull=True).order_by("path_key", "pk")
    return [note for note in notes.select_related("current").defer("current__text") if matches(wanted, note.path_key)]


def check_glob(glob: str) -> str:
    """A glob that can match a note's path. Raises InvalidRule."""
    text = glob.strip()
    head = text.split("/", 1)[0].casefold()
    if not text or len(text) > MAX_GLOB or "\0" in text or "\\" in text or ".." in text or text.startswith("/"):
        raise InvalidRule(gettext("Write a glob such as tools/** or project/payments/*.md, without a leading slash."))
    if text.count("*") > 12 or "***" in text:
        raise InvalidRule(gettext("Use ** for any folders and * within a level, at most twelve stars in all."))
    if "*" not in head and "?" not in head and head not in paths.FAMILIES:
        raise InvalidRule(
            gettext("No path starts with %(head)s/: use %(known)s or **.")
            % {"head": head, "known": ", ".join(f"{name}/" for name in paths.FAMILIES)}
        )
    return text


def save(tenant: Tenant, wanted: Wanted, *, by: Actor, rule: Rule | None = None) -> Rule:
    """A new rule, or a changed one. Raises Refused, InvalidRule."""
    access.require(by, "rule.manage")
    glob = check_glob(wanted.glob)
    if wanted.mode not in MODES:
        raise InvalidRule(gettext("Choose auto, review or locked."))
    _check_approvers(tenant, wanted.approvers)
    others = [one for one in listed(tenant) if rule is None or one.pk != rule.pk]
    if any(paths.path_key(one.glob) == paths.path_key(glob) for one in others):
        raise InvalidRule(gettext("There is a rule for %(glob)s already: change that one.") % {"glob": glob})
    if len(others) >= MOST_RULES:
        raise InvalidRule(gettext("A team has %(most_rules)s rules at most.") % {"most_rules": MOST_RULES})
    made = rule or Rule(tenant=tenant)
    before = f"{made.glob} {made.mode}" if rule else ""
    made.glob, made.mode, made.four_eyes = glob, wanted.mode, wanted.four_eyes
    made.approvers, made.changed_by = sorted(set(wanted.approvers)), by.label
    at = len(others) if wanted.position is None else min(max(wanted.position - 1, 0), len(others))
    _number([*others[:at], made, *others[at:]])
    audit.record(by, "rule.manage", made.public_id, before=before, after=f"{glob} {made.mode}")
    return made


def remove(rule: Rule, *, by: Actor) -> None:
    """Take a rule away. Raises Refused."""
    access.require(by, "rule.manage")
    before = f"{rule.glob} {rule.mode}"
    audit.record(by, "rule.manage", rule.public_id, before=before)
    rule.delete()


def _number(rules: list[Rule]) -> None:
    for position, rule in enumerate(rules, start=1):
        rule.position = position
        rule.save()


def _check_approvers(tenant: Tenant, approvers: Sequence[str]) -> None:
    named = {one for one in approvers if one.startswith("@")}
    handles = {one[1:] for one in named}
    known = set(Member.objects.current().filter(tenant=tenant, handle__in=handles).values_list("handle", flat=True))
    wrong = sorted(one for one in named if one[1:] not in known) or sorted(
        one for one in approvers if not one.startswith("@") and one not in access.REVIEWERS
    )
    if wrong:
        raise InvalidRule(
            gettext("Nobody here may approve as %(wrong)s: name owner, admin, reviewer or a member like @bob.")
            % {"wrong": wrong[0]}
        )
