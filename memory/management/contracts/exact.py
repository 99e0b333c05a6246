"""Contracts of what is stored: the same bytes come back, whole and in pieces, and a repeat is no second record."""

import hashlib
import json
from typing import Any, Final

from memory.management.contracts.client import Answer, short
from memory.management.contracts.unknown import is_problem
from memory.management.contracts.visit import Visit

# Every byte there is, in an order that no text has; long enough to be compressed and spilled.
BINARY: Final = bytes((n * 167 + n // 256) % 256 for n in range(70_000))
LOG: Final = b"".join(b"step %d of the build: all well\r\n" % n for n in range(1, 1501)) + b"the end, without a newline"
_TEXT: Final = "Zoë said: 東京 🙂\r\n\ttabs, “quotes” and \\ back\n\n  spaces at the end  "
_JSON: Final = {"z": 1, "a": [True, None, 1.5, "é"], "long": 12345678901234567890, "nested": {"b": {}, "a": []}}


def payloads(visit: Visit) -> None:
    """A payload's bytes come back as they were sent: binary, text, JSON; sha256 and media type with them."""
    thread_id = visit.thread("payload")
    text = visit.trigger(thread_id, "text", payload=_TEXT, media_type="text/plain")
    _same_bytes(visit, text, "payload", _TEXT.encode(), "text/plain")
    document = visit.trigger(thread_id, "json", payload=_JSON)
    answer = visit.door.get(f"triggers/{document}/payload").must(200)
    if answer.json() != _JSON:
        raise answer.broken(f"the JSON that was sent, {short(_JSON)}")
    _same_bytes(visit, document, "payload", answer.body, "application/json")
    for part, raw, kind in (
        ("body", BINARY, "image/png"),
        ("full_log", LOG, "text/plain"),
        ("diff", b"x", "text/x-diff"),
    ):
        stored = _put(visit, document, part, raw, kind).must(200, 201)
        said = stored.object()
        if "sha256" in said:
            stored.must_hold("sha256", hashlib.sha256(raw).hexdigest())
        if "size" in said:
            stored.must_hold("size", len(raw))
        _same_bytes(visit, document, part, raw, kind)
    view = visit.door.get(f"triggers/{document}").must(200)
    for part in ("payload", "body", "full_log", "diff"):
        pointer = str((view.object().get("spilled") or {}).get(part, "missing"))
        if f"/triggers/{document}/payload" not in pointer:
            raise view.broken(f"spilled.{part} that says where it is", pointer)


def _put(visit: Visit, trigger_id: str, part: str, raw: bytes, kind: str) -> Answer:
    path = f"triggers/{trigger_id}/payload?part={part}"
    return visit.door.call("PUT", path, raw=raw, headers={"Content-Type": kind})


def _same_bytes(visit: Visit, trigger_id: str, part: str, raw: bytes, kind: str) -> None:
    for _ in range(2):
        answer = visit.door.get(f"triggers/{trigger_id}/payload", part=part).must(200)
        same_bytes(answer, raw)
        told = answer.headers.get("content-type", "missing")
        if told.partition(";")[0].strip() != kind:
            raise answer.broken(f"Content-Type {kind}", told)


def same_bytes(answer: Answer, raw: bytes) -> None:
    """The body is these bytes. Raises Broken with lengths, digests and the first place that differs."""
    if answer.body == raw:
        return
    pairs = zip(answer.body, raw, strict=False)
    place = next((at for at, (got, sent) in enumerate(pairs) if got != sent), min(len(raw), len(answer.body)))
    raise answer.broken(_digested(raw), f"{_digested(answer.body)}, first difference at {place}")


def _digested(raw: bytes) -> str:
    return f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()[:16]}…"


def pieces(visit: Visit) -> None:
    """`Range` and `?lines=` give exactly that piece of the stored bytes."""
    trigger = visit.trigger(visit.thread("pieces"), "pieces")
    _put(visit, trigger, "full_log", LOG, "text/plain").must(200, 201)
    path, size = f"triggers/{trigger}/payload", len(LOG)
    for asked, first, last in (
        ("0-9", 0, 9),
        ("1000-1999", 1000, 1999),
        (f"{size - 5}-", size - 5, size - 1),
        ("-26", size - 26, size - 1),
    ):
        answer = visit.door.call("GET", f"{path}?part=full_log", headers={"Range": f"bytes={asked}"}).must(206)
        same_bytes(answer, LOG[first : last + 1])
        told = answer.headers.get("content-range", "missing")
        if told != f"bytes {first}-{last}/{size}":
            raise answer.broken(f"Content-Range bytes {first}-{last}/{size}", told)
    visit.door.call("GET", f"{path}?part=full_log", headers={"Range": f"bytes={size}-"}).must(416)
    lines = LOG.splitlines(keepends=True)
    for asked, first, last in (("1-1", 1, 1), ("120-180", 120, 180), ("1499-1501", 1499, 1501)):
        answer = visit.door.get(path, part="full_log", lines=asked).must(200, 206)
        # Whether the newline after the last line belongs to it is the server's choice.
        wanted = b"".join(lines[first - 1 : last])
        same_bytes(answer, wanted if answer.body.endswith(b"\n") else wanted.rstrip(b"\r\n"))


def repeats(visit: Visit) -> None:
    """The same again is the same record and 200; something else under the same identity is 409."""
    thread_id = visit.thread("repeat")
    base = {"source": "contracts", "thread": {"id": thread_id}, "payload": {"try": 1}, "summary": "a repeat"}
    identities: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
        ({"id": visit.own("trg", "own")}, {}),
        ({"external_id": f"{visit.run}-external"}, {}),
        ({}, {"Idempotency-Key": f"{visit.run}-key"}),
    )
    found = [_repeated(visit, base | body, headers) for body, headers in identities]
    if len(set(found)) != len(found):
        raise visit.door.get(f"threads/{thread_id}").broken("three triggers", short(found))
    steps = visit.door.get(f"threads/{thread_id}/events", limit=200).must(200)
    stored = [item["trigger_id"] for item in steps.object()["items"] if item.get("trigger_id")]
    if sorted(stored) != sorted(found):
        raise steps.broken(f"each trigger once, {short(found)}", short(stored))
    _repeated_worker(visit, thread_id)


def _repeated(visit: Visit, body: dict[str, Any], headers: dict[str, str]) -> str:
    first = visit.door.post("triggers", body, headers=headers)
    trigger_id = str(first.must(201).object().get("trigger_id"))
    visit.keep(trigger_id)
    # The same JSON in other words: what counts is what it says.
    spelt = json.dumps(body, indent=1, sort_keys=True).encode()
    again = visit.door.call("POST", "triggers", raw=spelt, headers={"Content-Type": "application/json", **headers})
    again.must(200, because="an identical repeat").must_hold("trigger_id", trigger_id)
    other = visit.door.post("triggers", body | {"payload": {"try": 2}}, headers=headers)
    if other.status in (200, 201):
        visit.keep(other.object().get("trigger_id"))
    is_problem(other.must(409, because="another payload under the same identity"), 409)
    kept = visit.door.get(f"triggers/{trigger_id}/payload").must(200)
    if kept.json() != body["payload"]:
        raise kept.broken(f"the first payload, {short(body['payload'])}")
    return trigger_id


def _repeated_worker(visit: Visit, thread_id: str) -> None:
    worker = visit.worker(thread_id, "repeat")
    body = {"id": worker, "thread": {"id": thread_id}, "task": "Contract check: repeat"}
    visit.door.post("workers", body).must(200, because="an identical repeat").must_hold("worker_id", worker)
    other = visit.door.post("workers", body | {"task": "Something else"})
    is_problem(other.must(409, because="another task under the same id"), 409)
    visit.door.post("threads", {"id": thread_id}).must(200, because="it is there").must_hold("thread_id", thread_id)
