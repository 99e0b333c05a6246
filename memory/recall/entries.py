"""Keeping what search reads up to date: marked things are read again, their words at once, their vectors later.

The database puts a mark beside each change, in its transaction. A search takes away the newest few before it looks, so
that what was just recorded is found; the clock has the rest taken away by a worker. Nothing here runs inside a write.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from django.db import connection

from memory import ids
from memory.recall import words
from memory.recall.kinds import KINDS, MOST_TEXT, Subject, subjects
from memory.recall.models import Entry, Vector, Word

VERSION: Final = words.VERSION
FRESH: Final = 100  # things that a search reads before it looks
BATCH: Final = 500
PASSAGE: Final = 1_600
MOST_PASSAGES: Final = 12
MOST_WORDS: Final = 4_000


def absorb(tenant_pk: str, most: int = FRESH) -> int:
    """Read again what was marked last, up to `most` things, in the bound transaction; gives how many marks went.

    One reader a team: of two that read the same thing, the one with the older text might write last.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM recall_mark WHERE tenant_id = %s)", [tenant_pk])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended('search ' || %s, 0))", [tenant_pk])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(
            "DELETE FROM recall_mark m"
            " USING (SELECT id FROM recall_mark WHERE tenant_id = %s ORDER BY id DESC LIMIT %s) o"
            " WHERE m.tenant_id = %s AND m.id = o.id RETURNING m.kind, m.target",
            [tenant_pk, most, tenant_pk],
        )
        marked = cursor.fetchall()
    targets = defaultdict(set)
    for kind, target in marked:
        targets[kind].add(str(target))
    for kind in KINDS:
        if targets[kind]:
            _read(tenant_pk, kind, sorted(targets[kind]))
    return len(marked)


def _read(tenant_pk: str, kind: str, pks: Sequence[str]) -> None:
    found = subjects(kind, pks)
    gone = set(pks) - {one.pk for one in found}
    if gone:
        Entry.objects.filter(kind=kind, target__in=gone).delete()
    _keep_entries(tenant_pk, found)
    entries = {str(target): str(pk) for pk, target in _keys(kind, [one.pk for one in found])}
    _want_vectors(tenant_pk, [(entries[one.pk], one) for one in found])
    _keep_words(tenant_pk, found)


def _keys(kind: str, pks: Sequence[str]) -> list[tuple[object, object]]:
    return list(Entry.objects.filter(kind=kind, target__in=pks).values_list("pk", "target"))


def _keep_entries(tenant_pk: str, found: Sequence[Subject]) -> None:
    Entry.objects.bulk_create(
        [_entry(tenant_pk, one) for one in found],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["target", "kind"],
        update_fields=["reader", "place", "thread", "version", "words", "head", "size", "folded"],
    )


def _entry(tenant_pk: str, subject: Subject) -> Entry:
    head = words.terms(subject.head[:MOST_TEXT])
    every = list(dict.fromkeys([*head, *words.terms(subject.body[:MOST_TEXT])]))[:MOST_WORDS]
    return Entry(
        id=ids.new_key(),
        tenant_id=tenant_pk,
        kind=subject.kind,
        target=subject.pk,
        reader=subject.reader,
        place=subject.place,
        thread=subject.thread,
        version=VERSION,
        words=[word_number(tenant_pk, word) for word in every],
        head=[word_number(tenant_pk, word) for word in head],
        size=len(every),
        folded=" ".join(words.fold(f"{subject.head}\n{subject.body}"[:MOST_TEXT]).split()),
    )


def word_number(tenant_pk: str, word: str) -> int:
    """A word of one team as a number: the index of words itself can't mix two teams up."""
    raw = hashlib.blake2b(f"{tenant_pk} {word}".encode(), digest_size=8).digest()
    return int.from_bytes(raw, "big", signed=True)


def passages(subject: Subject) -> list[str]:
    """What vectors are made of: the text in pieces that end with a line, each with what the thing is called."""
    head = " ".join(subject.head.split())[:400]
    lines = subject.body[:MOST_TEXT].splitlines() or [""]
    pieces, piece = [], ""
    for line in lines:
        while piece and len(piece) + len(line) > PASSAGE:
            pieces.append(piece)
            piece = ""
        while len(line) > PASSAGE:
            pieces.append(line[:PASSAGE])
            line = line[PASSAGE:]
        piece = f"{piece}\n{line}" if piece else line
    pieces.append(piece)
    texts = [f"{head}\n{one}".strip() for one in pieces if one.strip()] or [head.strip()]
    return [one for one in texts if one][:MOST_PASSAGES]


def _want_vectors(tenant_pk: str, found: Iterable[tuple[str, Subject]]) -> None:
    """A row for each passage. One whose text is the same keeps its vector."""
    wanted = []
    counts = {}
    for entry_pk, one in found:
        texts = passages(one)
        counts[entry_pk] = len(texts)
        wanted += [_vector(tenant_pk, entry_pk, chunk, one, text) for chunk, text in enumerate(texts)]
    old = Vector.objects.filter(entry__in=counts).values_list("pk", "entry_id", "chunk", "sha256")
    shas = {(str(one.entry_id), one.chunk): bytes(one.sha256) for one in wanted}
    stale = [pk for pk, entry, chunk, sha in old if shas.get((str(entry), chunk)) != bytes(sha)]
    if stale:
        Vector.objects.filter(pk__in=stale).delete()
    Vector.objects.bulk_create(
        wanted,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["entry", "chunk"],
        update_fields=["reader", "place", "thread"],
    )


def _vector(tenant_pk: str, entry_pk: str, chunk: int, one: Subject, text: str) -> Vector:
    return Vector(
        id=ids.new_key(),
        tenant_id=tenant_pk,
        entry_id=entry_pk,
        chunk=chunk,
        kind=one.kind,
        reader=one.reader,
        place=one.place,
        thread=one.thread,
        sha256=sha(text),
    )


def sha(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _keep_words(tenant_pk: str, found: Sequence[Subject]) -> None:
    """Words of letters, for mistyped ones. In order, so that two writers meet without a deadlock."""
    known = {
        word
        for one in found
        for word in words.terms(f"{one.head}\n{one.body}"[:MOST_TEXT])
        if 4 <= len(word) <= 30 and word.isalpha()
    }
    new = known - set(Word.objects.filter(word__in=known).values_list("word", flat=True))
    Word.objects.bulk_create(
        [Word(tenant_id=tenant_pk, word=word) for word in sorted(new)], batch_size=1_000, ignore_conflicts=True
    )
