"""Two sides' changes to one text, brought together line by line: for imports, folders kept in step, and undoing.

Built on our own `diff.merge3`, which is bounded by a budget of comparisons. The `merge3` package is under the GPL,
which a product under Apache-2.0 can't bring along, and matches lines by difflib, which can take cubic time.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from memory.notes.diff import Conflict, marked, merge3

Kind: TypeAlias = Literal["same", "ours", "theirs", "merged", "conflict"]


@dataclass(frozen=True)
class Outcome:
    """What both sides come to. `text` is None where there is nothing left (a note or file that was deleted).

    `same`: both say it already. `ours` or `theirs`: only that side changed. `merged`: both did, in different places.
    `conflict`: both did in one place; `text` holds both between marker lines, or is None where one side deleted it.
    """

    kind: Kind
    text: str | None
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        return self.kind != "conflict"


def merge(base: str | None, ours: str | None, theirs: str | None) -> Outcome:
    """The text that both sides' changes to `base` come to; None stands for no text at all."""
    if ours == theirs:
        return Outcome("same", ours)
    if theirs == base:
        return Outcome("ours", ours)
    if ours == base:
        return Outcome("theirs", theirs)
    if ours is None or theirs is None:
        return Outcome("conflict", None, (Conflict(base or "", ours or "", theirs or ""),))
    if base is None:
        # Without a common ancestor every line is both sides' own: nothing says which of two texts is the older one.
        return Outcome("conflict", marked(ours, theirs), (Conflict("", ours, theirs),))
    merged = merge3(base, ours, theirs)
    if merged.conflicts:
        return Outcome("conflict", merged.text, merged.conflicts)
    # Where both made some changes alike, one side may already hold all of the other.
    if merged.text in (ours, theirs):
        return Outcome("ours" if merged.text == ours else "theirs", merged.text)
    return Outcome("merged", merged.text)


def on_top(base: str | None, ours: str | None, theirs: str) -> str:
    """`theirs` as a change to `ours`: both sides' changes, and where they meet, theirs. What a conflict proposes."""
    if base is None or ours is None:
        return theirs
    parts = merge3(base, ours, theirs).parts
    return "".join(part if isinstance(part, str) else part.theirs for part in parts)


def undo(now: str | None, *, made: str | None, before: str | None) -> Outcome:
    """`now` without the change that turned `before` into `made`; what was changed later stays.

    `theirs` says that nothing was changed since; `ours` that there is nothing left to take back.
    """
    return merge(made, now, before)
