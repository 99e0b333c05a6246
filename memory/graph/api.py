"""Triggers over REST, and the graph's hot reads: one round trip checks the key, binds the tenant, reads or writes."""

from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from memory import problems
from memory.graph import asked, content, download, incoming, linking, lookup, parts, tombstones
from memory.graph import batch as batches
from memory.graph.models import Part
from memory.graph.record import Told
from memory.graph.refusals import gone, of_outcome
from memory.problems import Problem, forbidden, not_found
from memory.tenants import audit, limits, rls
from memory.tenants.access import Actor, Refused, TenantRequest, brings_own_transaction, needs, require
from memory.tenants.middleware import bad_key, bearer, bound, key_actor
from memory.tenants.models import Tenant
from memory.tenants.races import persistently


def read_thread(request: HttpRequest, thread_id: str) -> HttpResponse:
    """A thread by id."""
    return _read(request, "thread", thread_id)


def read_trigger(request: HttpRequest, trigger_id: str) -> HttpResponse:
    """A trigger by id, in its inline view."""
    return _read(request, "trigger", trigger_id)


def _read(request: HttpRequest, kind: str, public_id: str) -> HttpResponse:
    try:
        return HttpResponse(asked.found(kind, bearer(request), public_id), content_type="application/json")
    except asked.NotOk as no:
        raise _refused(request, no.state, "graph.read", public_id=public_id, said=no.said) from None


def read_steps(request: HttpRequest, thread_id: str) -> HttpResponse:
    """A page of a thread's steps by `seq`. The cursor of the last page resumes there when more arrive."""
    try:
        return HttpResponse(asked.steps(bearer(request), thread_id, request.GET), content_type="application/json")
    except asked.NotOk as no:
        raise _refused(request, no.state, "graph.read", public_id=thread_id, said=no.said) from None


def post_trigger(request: HttpRequest) -> HttpResponse:
    """Record a trigger: 201, or 200 for an identical repeat."""
    key_hash = bearer(request)
    told = incoming.read(request.body, idempotency_key=request.headers.get("Idempotency-Key"))
    try:
        state, body = asked.stored(key_hash, told, tenant_pk=storage_folder(request, [told]))
    except asked.NotOk as no:
        raise _refused(request, no.state, "graph.record", public_id=no.said or "") from None
    return HttpResponse(body, status=201 if state == "new" else 200, content_type="application/json")


def post_batch(request: HttpRequest) -> HttpResponse:
    """Many triggers, one a line. A line that can't be stored is refused alone, by its number."""
    key_hash = bearer(request)
    tenant_pk = key_actor(request).tenant_pk
    lines = batches.lines_of(request.body)
    limits.admit(key_hash, "triggers", len(lines) - 1)
    folder = tenant_pk if settings.PAYLOADS_IN_STORAGE else None
    try:
        tally = batches.record_lines(key_hash, lines, access=asked.RECORD, tenant_pk=folder)
        linking.triggers(tenant_pk, tally.naming)
    except batches.Denied as denied:
        raise _refused(request, str(denied), "graph.record") from None
    return HttpResponse(orjson.dumps(tally.told()), content_type="application/json")


def storage_folder(request: HttpRequest, told: list[Told]) -> str | None:
    """Whose folder a payload is uploaded to, where a storage is set; the key is asked for it only then."""
    is_needed = settings.PAYLOADS_IN_STORAGE and any(one.value is not None for one in told)
    return key_actor(request).tenant_pk if is_needed else None


def _refused(request: HttpRequest, state: str, action: str, *, public_id: str = "", said: str | None = None) -> Problem:
    """What a hot door's state stands for. A refusal is a line of the audit, in a transaction of its own."""
    if state == "unknown_key":
        return bad_key(bearer(request))
    if state == "forbidden":
        actor = key_actor(request)
        _audit(actor, action, request)
        return forbidden(action)
    if state == "missing":
        return not_found(public_id)
    if state == "gone":
        return gone(public_id, said)
    return of_outcome(state, public_id or None)


def _audit(actor: Actor, action: str, request: HttpRequest) -> None:
    with rls.tenant_scope(actor.tenant_pk):
        audit.record(actor, action, request.path_info, outcome="refused")


@needs("graph.withdraw")
def delete_trigger(request: TenantRequest, trigger_id: str) -> HttpResponse:
    """Delete a trigger with its payloads; its id stays known and is never used again."""
    tombstones.delete_trigger(lookup.trigger(request.tenant, trigger_id), by=request.actor)
    return _deleted(trigger_id)


@needs("graph.withdraw")
def delete_thread(request: TenantRequest, thread_id: str) -> HttpResponse:
    """Delete a thread with its triggers."""
    tombstones.delete_thread(lookup.thread(request.tenant, thread_id), by=request.actor)
    return _deleted(thread_id)


@needs("graph.withdraw")
def delete_worker(request: TenantRequest, worker_id: str) -> HttpResponse:
    """Delete a worker with its report."""
    tombstones.delete_worker(lookup.worker(request.tenant, worker_id), by=request.actor)
    return _deleted(worker_id)


def _deleted(public_id: str) -> HttpResponse:
    return HttpResponse(orjson.dumps({"id": public_id, "deleted": True}), content_type="application/json")


@needs("graph.read")
def payload(request: TenantRequest, trigger_id: str) -> HttpResponse:
    """The stored bytes of a part, or a piece of them: `Range`, `?lines=`, `?grep=`."""
    wanted = _asked(request, ("part", "lines", "grep"))
    trigger = lookup.trigger(request.tenant, trigger_id)
    part = parts.find(trigger, parts.part_name(wanted.get("part", parts.MAIN)))
    disposition = f'attachment; filename="{trigger.public_id}.{part.name}"'
    return download.piece_of(request, parts.stored(part), bytes(part.sha256).hex(), part.media_type, disposition)


def _asked(request: HttpRequest, known: tuple[str, ...]) -> dict[str, str]:
    for name in request.GET:
        if name not in known:
            raise Problem(400, "unknown_parameter", f"Unknown parameter {name[:40]!r}. Known are {', '.join(known)}.")
    return request.GET.dict()


def put_payload(request: HttpRequest, trigger_id: str) -> HttpResponse:
    """Store raw bytes as a part of a trigger. They are cleaned and packed before the transaction begins."""
    actor = key_actor(request)
    try:
        require(actor, "graph.record")
    except Refused:
        _audit(actor, "graph.record", request)
        raise
    tenant = Tenant(pk=actor.tenant_pk)
    wanted = _asked(request, ("part",))
    name = parts.part_name(wanted.get("part", parts.MAIN))
    with rls.tenant_scope(actor.tenant_pk):
        lookup.trigger(tenant, trigger_id)
    raw = request.body
    if len(raw) > settings.MAX_BODY_BYTES:
        raise Problem(413, "too_large", "A part is 32 MB at most.", limit_bytes=settings.MAX_BODY_BYTES)
    media_type = request.headers.get("Content-Type", "").strip() or content.BINARY
    if not content.is_media_type(media_type):
        raise Problem(400, "invalid_media_type", "Content-Type is like text/plain or application/octet-stream.")
    sent = parts.packed(name, raw, content.fit_media_type(media_type), tenant_pk=actor.tenant_pk)
    part, is_new = persistently(lambda: _stored(tenant, trigger_id, sent))
    if name == parts.MAIN:
        linking.triggers(actor.tenant_pk, [trigger_id])
    said = {
        "trigger_id": trigger_id,
        "part": name,
        "size": part.size,
        "sha256": bytes(part.sha256).hex(),
        "media_type": part.media_type,
        "redactions": part.redactions,
    }
    return HttpResponse(orjson.dumps(said), status=201 if is_new else 200, content_type="application/json")


def _stored(tenant: Tenant, trigger_id: str, sent: parts.Sent) -> tuple[Part, bool]:
    with rls.tenant_scope(str(tenant.pk)):
        return parts.store(lookup.trigger(tenant, trigger_id), sent)


def by_method(**views: Any) -> Any:
    """One address, a view for each method. GET and POST may be hot, the others bound like any other."""

    def dispatch(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        view = views.get(request.method or "")
        if view is None:
            bearer(request)
            return HttpResponseNotAllowed(sorted(views))
        if not hasattr(view, "action") and not hasattr(view, "cls"):
            return view(request, *args, **kwargs)
        actor = key_actor(request)
        return bound(request, actor, Tenant(pk=actor.tenant_pk), lambda: _rendered(request, view, args, kwargs))

    dispatch.csrf_exempt = True  # type: ignore[attr-defined]
    return brings_own_transaction(dispatch)


def _rendered(request: HttpRequest, view: Any, args: Any, kwargs: Any) -> Any:
    """The answer inside the bound transaction: DRF renders late, and the refusal is to be seen before the rollback."""
    try:
        answer = view(request, *args, **kwargs)
    except Refused as refused:
        request.refused = str(refused)  # type: ignore[attr-defined]
        return problems.response(forbidden(str(refused)))
    return answer.render() if hasattr(answer, "render") else answer
