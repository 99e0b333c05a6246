"""Members' own spaces: theirs alone. Admins read one only while the team's rule is on, and each reading is audited.

The rule is a setting of the team, off unless an admin turns it on, which is audited too. Whose space it is sees the
rule and every reading. It opens pages to people in a browser: no key, search, export or session is given more by it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memory.notes import reading
from memory.notes.models import Note, NoteQuerySet
from memory.tenants import audit, choices
from memory.tenants.access import Actor
from memory.tenants.models import AuditEntry, Member, Setting, Tenant

RULE: Final = "private_reading"
READ: Final = "note.read_private"
READINGS_SHOWN: Final = 50


@dataclass(frozen=True)
class Rule:
    """Whether admins may read members' own spaces, and who turned it on when."""

    is_on: bool
    changed_by: str = ""
    changed_at: datetime | None = None


def rule(tenant: Tenant) -> Rule:
    """What holds in the team."""
    row = Setting.objects.filter(tenant=tenant, name=RULE).first()
    if choices.text(tenant, RULE) != "on" or row is None:
        return Rule(False)
    # The setting keeps name and id of who changed it.
    return Rule(True, row.changed_by.partition(" (")[0], row.changed_at)


def may_read(tenant: Tenant, by: Actor) -> bool:
    """Whether this person may read other members' spaces now."""
    return by.kind == "member" and by.may(READ) and choices.text(tenant, RULE) == "on"


def note(tenant: Tenant, public_id: str, *, by: Actor, page: str) -> Note | None:
    """A note to be read: the team's, the reader's own, or by the rule another member's, which is audited with `page`.

    None where there is none that they may read.
    """
    found = reading.visible(by).filter(public_id=public_id).first()
    if found is not None or not may_read(tenant, by):
        return found
    found = reading.shown(Note.objects.present().filter(tenant=tenant, public_id=public_id)).first()
    if found is not None and found.member is not None:
        audit.record(by, READ, found.public_id, before=found.member.public_id, after=page)
    return found


def notes(tenant: Tenant, owner: Member, *, by: Actor) -> NoteQuerySet | None:
    """The notes of a member's space for its member, or by the rule, which is audited. None: they may not be read."""
    found = Note.objects.present().filter(tenant=tenant, member=owner)
    if by.member_pk == str(owner.pk):
        return found
    if not may_read(tenant, by):
        return None
    audit.record(by, READ, owner.public_id, before=owner.public_id, after="list")
    return found


def readings(owner: Member) -> Sequence[AuditEntry]:
    """Who read a member's space by the rule, the latest first."""
    rows = AuditEntry.objects.filter(tenant_id=owner.tenant_id, action=READ, before=owner.public_id, outcome="done")
    return list(rows.order_by("-seq")[:READINGS_SHOWN])


def others(tenant: Tenant, by: Actor) -> Sequence[Member]:
    """The members whose spaces this person may read by the rule."""
    if not may_read(tenant, by):
        return []
    everyone = Member.objects.current().filter(tenant=tenant).order_by("handle")
    return [one for one in everyone if str(one.pk) != by.member_pk]
