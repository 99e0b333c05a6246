"""The tree of notes: whole while it is small, else a folder at a time; and the notes that hold some words."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from memory.notes import reach
from memory.notes.models import Note, NoteQuerySet
from memory.notes.reading import shown
from memory.tenants.access import Actor
from memory.tenants.models import Member

# Up to so many notes the tree stands open as a whole: one look, and the browser finds words in it.
WHOLE: Final = 300
# What of one folder, or of one search, is shown at once.
AT_ONCE: Final = 200
MANY: Final = 1_000
# Words that more notes hold than these are answered with some of them: who searches adds a word.
MOST_FOUND: Final = 400
_WORDS: Final = 8


@dataclass
class Folder:
    """One folder of the tree. What is in a closed one is fetched when it is opened."""

    path: str
    name: str
    notes: list[Note] = field(default_factory=list)
    folders: list["Folder"] = field(default_factory=list)
    is_closed: bool = False

    @property
    def query(self) -> str:
        """Its address, on the page of the tree."""
        return urlencode({"folder": self.path})


@dataclass(frozen=True)
class Level:
    """What stands directly in a folder. `after` is the path key behind which the rest of it follows, or empty."""

    folders: list[Folder]
    notes: list[Note]
    after: str = ""


# What stands directly in a folder, from one to the next by the index of the tree: below a folder that was met the rest
# is passed over unread. Under row level security, as every query; the conditions are those of `present`.
_STEPS: Final = """
WITH RECURSIVE step (key, path) AS (
  (SELECT n.path_key COLLATE "C", n.path FROM notes_note n WHERE {live} AND n.path_key COLLATE "C" >= %(first)s
     AND n.path_key COLLATE "C" < %(end)s ORDER BY n.path_key COLLATE "C" LIMIT 1)
  UNION ALL
  SELECT found.key, found.path FROM step, LATERAL (
    SELECT n.path_key COLLATE "C" AS key, n.path FROM notes_note n WHERE {live}
      AND n.path_key COLLATE "C" > CASE
        WHEN strpos(substr(step.key, %(depth)s), '/') > 0
        THEN left(step.key, %(depth)s - 1) || split_part(substr(step.key, %(depth)s), '/', 1) || '/' || chr(1114111)
        ELSE step.key END
      AND n.path_key COLLATE "C" < %(end)s
    ORDER BY n.path_key COLLATE "C" LIMIT 1) found
)
SELECT key, path FROM step LIMIT %(most)s
"""
_LIVE: Final = "n.deleted_at IS NULL AND n.current_id IS NOT NULL AND n.member_id "


def count(by: Actor) -> int:
    """How many notes a person may read, counted as far as it is told: `MANY` says that many or more."""
    return len(reach.notes(by.member_pk).present().order_by().values_list("pk")[:MANY])


def above(folder: str) -> list[Folder]:
    """The folders that a folder is in, the outermost first."""
    parts = folder.split("/")
    return [Folder("/".join(parts[: place + 1]), part) for place, part in enumerate(parts[:-1])]


def tree(notes: Iterable[Note], *, is_one_space: bool = False) -> list[Folder]:
    """Notes as nested folders; a private space is a folder of its own, unless all are of one."""
    root = Folder("", "")
    known = {"": root}
    for note in notes:
        parent = ""
        parts = [*(note.space.split("/") if note.member and not is_one_space else []), *note.path.split("/")[:-1]]
        for name in parts:
            path = f"{parent}/{name}" if parent else name
            if path not in known:
                known[path] = Folder(path, name)
                known[parent].folders.append(known[path])
            parent = path
        known[parent].notes.append(note)
    if root.notes:
        root.folders.append(Folder("/", gettext("Other notes"), root.notes))
    return root.folders


def level(by: Actor, folder: str, *, after: str = "") -> Level:
    """One folder of what a person may read; "" is all of it, with their own space as `members/HANDLE`."""
    own = f"{reach.PRIVATE}{by.label}"
    if folder and by.member_pk and f"{folder}/".startswith(f"{own}/"):
        return of_space(by.member_pk, folder, after=after, root=own)
    found = of_space(None, folder, after=after)
    if not folder and by.member_pk and Note.objects.present().filter(member_id=by.member_pk).exists():
        found.folders.append(Folder(own, own, is_closed=True))
    return found


def of_space(member_pk: str | None, folder: str, *, after: str = "", root: str = "") -> Level:
    """One folder of the team's space, or of a member's. Addresses of its folders begin with `root`."""
    inner = folder.removeprefix(root).strip("/").casefold()
    start = f"{inner}/" if inner else ""
    asked: dict[str, str | int | None] = {
        "first": max(start, f"{after}\U0010ffff" if after else ""),
        "end": f"{inner}0" if inner else "\U0010ffff",
        "depth": len(start) + 1,
        "most": AT_ONCE + 1,
        "member": member_pk,
    }
    live = _LIVE + ("= %(member)s" if member_pk else "IS NULL")
    with connection.cursor() as cursor:
        cursor.execute(_STEPS.format(live=live), asked)
        steps: list[tuple[str, str]] = cursor.fetchall()
    # Of a folder the name as far as it goes: what follows it on the next page begins behind all that is below it.
    names = [(key[len(start) :].partition("/"), path.split("/")) for key, path in steps[:AT_ONCE]]
    before = "".join(f"{one}/" for one in (root, inner) if one)
    depth = start.count("/")
    folders = [Folder(f"{before}{name}", path[depth], is_closed=True) for (name, slash, _), path in names if slash]
    keys = [f"{start}{name}" for (name, slash, _), _ in names if not slash]
    mine = Q(member_id=member_pk) if member_pk else Q(member__isnull=True)
    of_member = Note.objects.present().filter(mine, path_key__in=keys)
    last = names[-1][0] if len(steps) > AT_ONCE else ("", "", "")
    return Level(folders, list(shown(of_member)) if keys else [], f"{start}{last[0]}{last[1]}" if last[0] else "")


def whole_or_top(rows: NoteQuerySet, owner: Member) -> list[Folder]:
    """The tree of a member's own notes: whole while it is small, else its outermost folders."""
    notes = list(shown(rows)[: WHOLE + 1])
    if len(notes) <= WHOLE:
        return tree(notes, is_one_space=True)
    return of_space(str(owner.pk), "").folders


@dataclass(frozen=True)
class Holding:
    """The notes that hold some words, by space and path; `are_more` where these are only some of them."""

    notes: list[Note]
    are_more: bool


def holding(by: Actor, q: str) -> Holding:
    """The notes that hold each word of `q` in path, title, description or text, whatever the case."""
    words = q.split()[:_WORDS]
    # An index of letters does not work under row level security: this names the notes, which are then read under it.
    with connection.cursor() as cursor:
        patterns = [f"%{_literal(word)}%" for word in sorted(words, key=len, reverse=True)]
        cursor.execute("SELECT * FROM notes_holding(%s, %s, %s)", [patterns, by.member_pk, MOST_FOUND])
        found = [pk for (pk,) in cursor.fetchall()]
    rows: QuerySet[Note] = shown(reach.notes(by.member_pk).present().filter(pk__in=found))
    notes = list(rows[: AT_ONCE + 1])
    return Holding(notes[:AT_ONCE], len(notes) > AT_ONCE or len(found) == MOST_FOUND)


def _literal(word: str) -> str:
    """A word as a pattern that means itself."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
