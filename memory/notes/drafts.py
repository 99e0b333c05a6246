"""What a member has typed and not sent yet: kept on the server while they type, found again, thrown away.

A draft belongs to one editor: each save names the version it saw last. Two windows with the same draft that both go on
typing end with two drafts; neither loses a word. Secrets are taken out here as everywhere: the words on the screen
stay as they are, and what comes back later is without them.
"""

from dataclasses import dataclass
from typing import Final

from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory import redact
from memory.notes.frontmatter import PERSON_NOTE_BYTES
from memory.notes.models import Autosaved, Note
from memory.tenants.access import Actor, Refused

MOST: Final = 30
MAX_BYTES: Final = 2 * PERSON_NOTE_BYTES


class TooLong(ValueError):
    """The text is longer than any note may be; it is not kept."""


@dataclass(frozen=True)
class Typed:
    """What stands in an editor. `base` is the number of the revision it was begun from."""

    text: str
    path: str = ""
    is_private: bool = False
    message: str = ""
    base: int | None = None


@dataclass(frozen=True)
class Seen:
    """The draft that an editor holds, as it was when the editor last heard of it."""

    public_id: str = ""
    version: int = 0


NONE: Final = Seen()


@dataclass(frozen=True)
class Kept:
    """What became of a save. `is_beside`: another window had gone on with the draft, so this is a new one."""

    draft: Autosaved
    redactions: int = 0
    is_beside: bool = False


def keep(typed: Typed, *, note: Note | None, seen: Seen, by: Actor) -> Kept:
    """Save what was typed. The latest 30 drafts of a member stay. Raises TooLong, Refused."""
    if len(typed.text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise TooLong(
            gettext("The text is longer than %(max_bytes)s KB, so no draft of it is kept.")
            % {"max_bytes": MAX_BYTES // 1024}
        )
    clean = redact.clean_text(typed.text)
    said = {
        "text": clean.value,
        "path": redact.brief(typed.path, 300),
        "is_private": typed.is_private,
        "message": redact.brief(typed.message, 200),
        "base": typed.base,
    }
    mine = of(by, note)
    same = mine.filter(public_id=seen.public_id, version=seen.version)
    if same.update(**said, version=F("version") + 1, saved_at=timezone.now()):
        return Kept(mine.get(public_id=seen.public_id), clean.redactions)
    made = Autosaved.objects.create(tenant_id=by.tenant_pk, member_id=_member(by), note=note, **said)
    _forget_oldest(by)
    return Kept(made, clean.redactions, is_beside=bool(seen.public_id))


def of(by: Actor, note: Note | None) -> QuerySet[Autosaved]:
    """A member's drafts of one note, or of notes that are not there yet, the latest first."""
    return Autosaved.objects.filter(member_id=_member(by), note=note).order_by("-saved_at", "-pk")


def found(public_id: str, *, note: Note | None, by: Actor) -> Autosaved | None:
    """One of them by its id."""
    return of(by, note).filter(public_id=public_id.replace("\0", "")).first()


def one(public_id: str, *, by: Actor) -> Autosaved | None:
    """A member's draft by its id, of whichever note."""
    mine = Autosaved.objects.filter(member_id=_member(by)).select_related("note")
    return mine.filter(public_id=public_id.replace("\0", "")).first()


def done(seen: Seen, *, by: Actor) -> None:
    """The words were sent: the draft goes, unless another window went on with it meanwhile."""
    Autosaved.objects.filter(member_id=_member(by), public_id=seen.public_id, version=seen.version).delete()


def _forget_oldest(by: Actor) -> None:
    mine = Autosaved.objects.filter(member_id=_member(by)).order_by("-saved_at", "-pk")
    stale = list(mine.values_list("pk", flat=True)[MOST : MOST + 100])
    if stale:
        Autosaved.objects.filter(pk__in=stale).delete()


def _member(by: Actor) -> str:
    if by.member_pk is None:
        raise Refused("note.propose")
    return by.member_pk
