"""How the caches' doors answer: the body, `Cache-Status`, parts of a text."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson
from django.http import HttpRequest, HttpResponse

from cache_admin.lookup import Answer
from memory.problems import Problem, forbidden
from memory.tenants import audit, rls
from memory.tenants.middleware import key_actor

CACHE: Final = "team-memory"
_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def refused(request: HttpRequest) -> Problem:
    """403, and a line of the audit."""
    actor = key_actor(request)
    with rls.tenant_scope(actor.tenant_pk):
        audit.record(actor, "cache.use", request.path_info, outcome="refused")
    return forbidden("cache.use")


def said(answer: Answer) -> dict[str, Any]:
    """The answer as JSON."""
    about = answer.about
    body: dict[str, Any] = {"status": answer.status}
    if answer.key is not None:
        body["key"] = answer.key.hex
    if answer.status == "hit":
        body |= _of_hit(answer)
    else:
        body["reason"] = answer.reason
    if answer.lease:
        body["lease"] = answer.lease
    if answer.status in ("miss", "wait"):
        body["lease_until"] = about.get("until")
    if answer.status == "wait":
        body["retry_after"] = about["retry_after"]
    return body


def _of_hit(answer: Answer) -> dict[str, Any]:
    about = answer.about
    body = {
        "result_id": about["result_id"],
        "age_s": round(float(about["age_s"]), 1),
        "ttl_s": None if about.get("ttl_s") is None else round(float(about["ttl_s"]), 1),
        "full_length_chars": about["chars"],
    }
    where = f"GET /api/v1/results/{about['result_id']} (?lines=, ?grep=, Range)"
    if answer.reason == "unchanged":
        body |= {
            "unchanged": True,
            "unchanged_since": about["stored_at"],
            "note": f"This session has it; again: {where}",
        }
    elif answer.content is None:
        body |= {"summary": about["summary"], "note": f"A summary; the whole: {where}"}
    else:
        body["result"] = orjson.Fragment(answer.content) if about["is_json"] else answer.content.decode()
    if about.get("revalidate"):
        body["revalidate"] = True
    return body


def told(answer: Answer, body: Mapping[str, Any]) -> HttpResponse:
    """The answer with its `Cache-Status` (RFC 9211)."""
    response = HttpResponse(orjson.dumps(body), content_type="application/json")
    response["Cache-Status"] = cache_status(answer)
    if answer.status == "wait":
        response["Retry-After"] = str(math.ceil(answer.about["retry_after"]))
    return response


def cache_status(answer: Answer) -> str:
    """RFC 9211: what the cache did, and why."""
    parts = [CACHE]
    if answer.status == "hit":
        parts.append("hit")
        ttl = answer.about.get("ttl_s")
        parts += [f"ttl={int(ttl)}"] if ttl is not None else []
    elif answer.status == "bypass":
        parts.append("fwd=bypass")
    else:
        parts.append("fwd=stale" if answer.reason == "expired" else "fwd=uri-miss")
        parts += ["collapsed"] if answer.status == "wait" else []
    if answer.key is not None:
        parts.append(f'key="{answer.key.hex}"')
    if answer.reason:
        parts.append(f"detail={_NO_TOKEN.sub('_', answer.reason)}")
    return "; ".join(parts)


def ranged(request: HttpRequest, text: str, *, etag: str, media_type: str) -> HttpResponse:
    """The bytes of a text, or the one part of them that was asked for. Raises Problem 416."""
    raw = text.encode()
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "X-Content-Type-Options": "nosniff"}
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or not any(found.groups()):
        return HttpResponse(raw, content_type=media_type, headers=headers)
    first, last = found[1], found[2]
    start = int(first) if first else max(0, len(raw) - int(last))
    end = min(int(last), len(raw) - 1) if first and last else len(raw) - 1
    if start > end:
        whole = {"Content-Range": f"bytes */{len(raw)}"}
        raise Problem(416, "range_not_satisfiable", f"The text has {len(raw)} bytes.", headers=whole)
    headers["Content-Range"] = f"bytes {start}-{end}/{len(raw)}"
    return HttpResponse(raw[start : end + 1], status=206, content_type=media_type, headers=headers)
