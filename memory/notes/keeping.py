"""Lock, pin and end of a note: said about it, not in it, so no revision is made."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.db import transaction

from memory.notes.holding import locked, require_may
from memory.notes.models import Note
from memory.tenants import audit
from memory.tenants.access import Actor


@dataclass(frozen=True)
class Kept:
    """How a note is kept from now on."""

    is_locked: bool = False
    is_pinned: bool = False
    expires_at: datetime | None = None


def end_of(day: str) -> datetime:
    """The last moment of a day (UTC). Raises ValueError for what is no date like 2027-01-31."""
    return datetime.combine(date.fromisoformat(day), time.max, UTC)


def keep(note: Note, kept: Kept, *, by: Actor) -> None:
    """Raises Refused."""
    with transaction.atomic():
        note = locked(note)
        require_may(by, "note.edit", note)
        before = _said(Kept(note.is_locked, note.is_pinned, note.expires_at))
        note.is_locked, note.is_pinned, note.expires_at = kept.is_locked, kept.is_pinned, kept.expires_at
        note.save(update_fields=["is_locked", "is_pinned", "expires_at"])
        audit.record(by, "note.keep", note.public_id, before=before, after=_said(kept))


def _said(kept: Kept) -> str:
    ends = f"until {kept.expires_at:%Y-%m-%d}" if kept.expires_at else ""
    return " ".join(filter(None, ("locked" * kept.is_locked, "pinned" * kept.is_pinned, ends)))
