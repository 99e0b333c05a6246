"""Questions that were answered in other words: the nearest one of the very same space, and only past the guard."""

import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final

from django.conf import settings
from django.db import connection

from cache_admin import guard, weekly
from cache_admin.lookup import Answer, Asked, look
from cache_admin.models import Decision, Entry, Flight, Lookup, Pair
from cache_admin.pairs import REVIEW_FROM, REVIEW_TO
from memory import embed, ids
from memory.embed import Embedder, EmbedFailed, key_of
from memory.tenants import rls, trip
from memory.tenants.models import Tenant

log = logging.getLogger(__name__)
MOST_CHARACTERS: Final = 2_000
# Up to so many vectors the exact scan takes some 7 ms; an index of all teams' vectors finds too few of a small space.
EXACT_UP_TO: Final = 4_000
CANDIDATES: Final = 5
# So many more are fetched, for those that have expired.
SPARE: Final = 20
_INDEXED_DIMENSIONS: Final = 384
_large: set[bytes] = set()


@dataclass(frozen=True)
class Near:
    """A question that was answered, and how alike it is."""

    asked: str
    entry_pk: str
    score: float


@dataclass(frozen=True)
class Found:
    """The answer, and the question it was given to, where that was another one."""

    answer: Answer
    score: float | None = None
    matched_query: str = ""
    guard: str = ""


@cache
def maker() -> Embedder | None:
    """What makes vectors here; None where nothing does."""
    return embed.embedder(settings.EMBED, model=settings.EMBED_MODEL, key=settings.EMBED_KEY)


def ask(key_hash: bytes, asked: Asked) -> Found:
    """The answer to a question: of the same words, else of the nearest ones. Raises as `look`."""
    by = maker()
    if by is None:
        return Found(look(key_hash, replace(asked, bypass="embedder_off")))
    answer = look(key_hash, replace(asked, embedder=key_of(by)))
    if answer.status != "miss" or answer.policy is None:
        return Found(answer, 1.0 if answer.status == "hit" else None, asked.question if answer.status == "hit" else "")
    began = time.perf_counter()
    vector = _vector(by, guard.wording(asked.question))
    if vector is None:
        return Found(answer, guard="embedder_failed")
    embed_us = int((time.perf_counter() - began) * 1e6)
    with rls.tenant_scope(answer.standing.tenant):
        return _nearest_answer(asked, answer, vector, embed_us)


def prepare(asked: Asked) -> None:
    """Make the vector of a question beforehand, for who is about to ask inside a transaction."""
    by = maker()
    if by is not None:
        _vector(by, guard.wording(asked.question))


def _vector(by: Embedder, text: str) -> tuple[float, ...] | None:
    try:
        return _cached_vector(by, text)  # type: ignore[arg-type] # embedders are compared by identity
    except EmbedFailed as why:
        log.warning("questions are compared by their words alone: %s", why)
        return None


@lru_cache(maxsize=512)
def _cached_vector(by: Any, text: str) -> tuple[float, ...]:
    return tuple(by.embed([text], kind="query")[0])


def _nearest_answer(asked: Asked, answer: Answer, vector: Sequence[float], embed_us: int) -> Found:
    policy, key = answer.policy, answer.key
    if policy is None or key is None:
        return Found(answer)
    near = nearest(answer.space, vector)
    rows = Lookup.objects.filter(pk=answer.log)
    if not near:
        _log(asked, answer, "no_question")
        rows.update(embed_us=embed_us)
        return Found(answer)
    refusals = [guard.refusal(asked.question, one.asked) for one in near]
    fits = [one for one, why in zip(near, refusals, strict=True) if not why and one.score >= policy.threshold]
    best, why = (fits[0], "") if fits else (near[0], refusals[0])
    is_served = bool(fits) and policy.semantic
    if REVIEW_FROM <= best.score <= REVIEW_TO or (why and best.score >= policy.threshold):
        _for_review(asked, answer, best, why, is_served=is_served)
    served = _served(answer, best) if is_served else None
    if served is None:
        said = f"guard_{why}" if why else "evicted" if is_served else "semantic_off" if fits else "below_threshold"
        _log(asked, answer, said, best)
        rows.update(embed_us=embed_us, reason=said)
        return Found(replace(answer, reason=said), best.score, best.asked, why)
    _log(asked, answer, "served", best)
    Flight.objects.filter(tenant_id=answer.standing.tenant, key=key.digest, lease=answer.lease).delete()
    rows.update(
        status="hit",
        reason="similar",
        result_pk=served.about["result_pk"],
        embed_us=embed_us,
        tokens_stored=served.about["tokens"],
        tokens_returned=served.about["tokens_returned"],
        saved_ms=served.about["duration_ms"],
    )
    return Found(served, best.score, best.asked)


def _log(asked: Asked, answer: Answer, outcome: str, best: Near | None = None) -> None:
    """Each comparison with the best score and the question it was of."""
    Decision.objects.create(
        tenant_id=answer.standing.tenant,
        tool=asked.call.tool,
        project_id=answer.standing.project or None,
        asked=asked.question,
        matched=best.asked if best else "",
        score=best.score if best else None,
        threshold=answer.policy.threshold if answer.policy else 0.0,
        outcome=outcome,
    )


def _for_review(asked: Asked, answer: Answer, best: Near, why: str, *, is_served: bool) -> None:
    """A person is asked once about two questions, however often agents ask them."""
    same = {
        "tenant_id": answer.standing.tenant,
        "tool": asked.call.tool,
        "asked": asked.question,
        "matched": best.asked,
    }
    if not Pair.objects.filter(**same).exists():
        place = answer.standing.project or None
        Pair.objects.create(**same, project_id=place, score=best.score, guard=why, was_served=is_served)
        weekly.expect(answer.standing.tenant)


def _served(answer: Answer, near: Near) -> Answer | None:
    """The stored answer to the near question, or None where its text is gone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.public_id, r.is_json, r.summary, r.chars, r.tokens, r.summary_tokens, c.content, c.codec,"
            " extract(epoch FROM now() - e.created_at), extract(epoch FROM e.expires_at - now()),"
            " coalesce(e.duration_ms, 0), r.id FROM cache_admin_entry e JOIN cache_admin_result r ON r.id = e.result_id"
            " JOIN cache_admin_content c ON c.sha256 = r.sha256 WHERE e.id = %s"
            " AND (e.expires_at IS NULL OR (e.expires_at > now() AND e.created_at <= now() + interval '1 minute'))",
            [near.entry_pk],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    result_id, is_json, summary, chars, tokens, summary_tokens, content, codec, age, ttl, duration, result_pk = row
    text = zlib.decompress(bytes(content)) if codec == "zlib" else bytes(content)
    about = {
        "result_id": result_id,
        "is_json": is_json,
        "summary": summary or None,
        "chars": chars,
        "age_s": float(age),
        "ttl_s": None if ttl is None else float(ttl),
        "tokens": tokens,
        "tokens_returned": summary_tokens if summary else tokens,
        "duration_ms": duration,
        "result_pk": result_pk,
    }
    said = ("summary", None) if summary else ("text", text)
    return replace(answer, status="hit", reason="similar", lease="", about={**about, "given": said[0]}, content=said[1])


def nearest(space: str, vector: Sequence[float], *, most: int = CANDIDATES) -> list[Near]:
    """The nearest answered questions of a space, the nearest first. The tenant must be bound."""
    digest, said = bytes.fromhex(space), f"[{','.join(f'{value:.6g}' for value in vector)}]"
    is_large = len(vector) == _INDEXED_DIMENSIONS and _is_large(digest)
    rows = trip.rows(
        "SELECT said, entry::text, score FROM cache_nearest(%b, %t::vector, %s, %s)",
        (digest, said, most + SPARE, is_large),
    )
    found = [Near(asked, entry, float(score)) for asked, entry, score in rows]
    return sorted(found, key=lambda one: -one.score)[:most]


def _is_large(digest: bytes) -> bool:
    """Whether a space is worth its index. One that was large is taken for large: counting costs more than asking."""
    if digest in _large:
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM cache_admin_question WHERE space = %s LIMIT %s) AS few",
            [digest, EXACT_UP_TO + 1],
        )
        is_large = int(cursor.fetchone()[0]) > EXACT_UP_TO
    if is_large:
        _large.add(digest)
    return is_large


def remember(tenant: Tenant, entry: Entry, inputs: Mapping[str, Any]) -> None:
    """Keep the question beside its answer, for who will ask it in other words."""
    by = maker()
    vector = _vector(by, guard.wording(inputs["question"])) if by is not None else None
    if vector is None:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cache_admin_question (id, tenant_id, space, tool, asked, entry_id, embedding)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s::vector) ON CONFLICT (entry_id) DO NOTHING",
            [
                ids.new_key(),
                str(tenant.pk),
                bytes.fromhex(inputs["space"]),
                inputs["tool"],
                inputs["question"],
                str(entry.pk),
                f"[{','.join(f'{value:.6g}' for value in vector)}]",
            ],
        )
