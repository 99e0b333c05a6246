"""What came with a trigger, part by part: stored once, read back byte for byte."""

import re
from dataclasses import dataclass

from memory.graph import bodies, content, steps
from memory.graph.content import Content
from memory.graph.models import Part, Trigger
from memory.graph.refusals import Invalid
from memory.problems import Problem, not_found

MAIN = "payload"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Sent:
    """A part without secrets, packed before the transaction that stores it."""

    name: str
    content: Content
    packed: bodies.Packed


def part_name(asked: str) -> str:
    """A part's name. Raises Invalid."""
    if not _NAME.fullmatch(asked):
        raise Invalid("invalid_part", "part is a name like payload, full_log, diff or body: a-z, 0-9 and _, up to 40.")
    return asked


def packed(name: str, raw: bytes, media_type: str, *, tenant_pk: str) -> Sent:
    """The bytes as they will be stored; a large one is uploaded here, where a storage is set."""
    clean = content.cleaned(raw, media_type)
    return Sent(name, clean, bodies.pack(clean.raw, tenant_pk=tenant_pk))


def store(trigger: Trigger, sent: Sent) -> tuple[Part, bool]:
    """Put a part to its trigger, and say whether it is new. Other bytes under its name are a step of the thread."""
    old = Part.objects.select_for_update().filter(trigger=trigger, name=sent.name).first()
    if sent.packed.is_spilled:
        bodies.keep(str(trigger.tenant_id), sent.packed)
    part = Part(
        trigger=trigger,
        name=sent.name,
        tenant_id=trigger.tenant_id,
        media_type=sent.content.media_type,
        size=sent.packed.size,
        sha256=sent.packed.sha256,
        redactions=sent.content.redactions,
        sanitized=sent.content.sanitized,
        content=None if sent.packed.is_spilled else sent.packed.content,
    )
    if old is None:
        part.save(force_insert=True)
        return part, True
    if bytes(old.sha256) != sent.packed.sha256 or old.media_type != part.media_type:
        part.save(force_update=True)
        told = f"{sent.name} replaced: sha256 {bytes(old.sha256).hex()} → {sent.packed.sha256.hex()}"
        steps.add(trigger.thread, "payload_replaced", trigger=trigger.public_id, summary=told)
    return part, False


def find(trigger: Trigger, name: str) -> Part:
    """A trigger's part. Raises Problem 404."""
    found = Part.objects.filter(trigger=trigger, name=name).first()
    if found is None:
        raise not_found(f"{trigger.public_id}/payload?part={name}")
    return found


def stored(part: Part) -> bytes:
    """The bytes as they were stored. Raises Problem 410 where retention has dropped them."""
    if part.dropped_at is not None:
        raise gone(part)
    if part.content is not None:
        return bytes(part.content)
    raw = bodies.fetch(str(part.tenant_id), bytes(part.sha256))
    if raw is None:
        raise gone(part)
    return raw


def gone(part: Part) -> Problem:
    """410: when the bytes went and why. The row, its size and its digest stay."""
    on = f" on {part.dropped_at:%Y-%m-%d}" if part.dropped_at else ""
    at = part.dropped_at.isoformat() if part.dropped_at else None
    detail = f"This payload was removed{on} by the team's retention. The trigger, its summary and its thread stay."
    return Problem(410, "payload_gone", detail, removed_at=at, reason="retention")
