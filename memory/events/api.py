"""Projects, sessions and events over REST: what agents and programs read."""

import re
from typing import Any, Final

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from memory.events import bodies, projects
from memory.events.models import Event, Session
from memory.graph import steps, workers
from memory.graph.lookup import absent
from memory.paging import Page
from memory.problems import Problem
from memory.tenants.access import TenantRequest, needs
from memory.tenants.models import Tenant
from memory.tenants.rest import describe

LIMIT: Final = OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 where left out")
CURSOR: Final = OpenApiParameter("cursor", OpenApiTypes.STR, description="A next_cursor as it was given")
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)$")


class PlaceOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    place = serializers.CharField()


class ProjectOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    slug = serializers.CharField()
    name = serializers.CharField()
    places = PlaceOut(many=True)
    sessions = serializers.IntegerField()
    last_at = serializers.DateTimeField(allow_null=True)


class SessionOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    client = serializers.CharField()
    key = serializers.CharField()
    project = serializers.CharField(allow_null=True)
    member = serializers.CharField(allow_null=True)
    state = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment] # DRF takes declared fields off the class
    cwd = serializers.CharField()
    model = serializers.CharField()
    last_prompt = serializers.CharField()
    events = serializers.IntegerField()
    is_internal = serializers.BooleanField()
    resumed_from = serializers.CharField(allow_null=True)
    workers = serializers.ListField(child=serializers.CharField(), required=False)
    first_received_at = serializers.DateTimeField()
    last_received_at = serializers.DateTimeField()


class EventOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    session = serializers.CharField()
    seq = serializers.IntegerField()
    client = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    key = serializers.CharField()
    occurred_at = serializers.DateTimeField(allow_null=True)
    received_at = serializers.DateTimeField()
    agent_id = serializers.CharField()
    tool = serializers.CharField()
    tool_use_id = serializers.CharField()
    summary = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    redactions = serializers.IntegerField()
    sanitized = serializers.IntegerField()
    head = serializers.CharField(help_text="The beginning of a payload over 16 KB; the whole is at payload.")
    tail = serializers.CharField()
    payload = serializers.CharField(help_text="Where the stored bytes are")
    payload_removed_at = serializers.DateTimeField(
        allow_null=True, help_text="When retention removed the payload: its address answers 410 from then on"
    )


def page_of(name: str, items: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The schema of a list's answer."""
    fields = {
        "items": items(many=True),
        "next_cursor": serializers.CharField(),
        "has_more": serializers.BooleanField(),
    }
    return type(name, (serializers.Serializer,), fields)


@extend_schema(
    operation_id="projects_list",
    parameters=[LIMIT, CURSOR],
    responses=page_of("ProjectPage", ProjectOut),
    tags=["events"],
)
@api_view(["GET"])
@needs("project.read")
def project_list(request: Any) -> Response:
    """Projects of the team, the oldest first."""
    page = Page.asked(request.GET, scope=f"{request.tenant.pk}:projects")
    rows = (
        projects.with_counts(request.tenant.projects.current()).prefetch_related("roots").order_by("created_at", "pk")
    )
    return Response(page.of(_after(rows, page, "created_at"), position=_at("created_at"), show=project_out))


@extend_schema(
    operation_id="sessions_list",
    parameters=[
        *(LIMIT, CURSOR),
        OpenApiParameter("project", OpenApiTypes.STR, description="Only this project's"),
        OpenApiParameter(
            "order",
            OpenApiTypes.STR,
            enum=["begun", "latest"],
            description="begun (the default): the first that began first; latest: the one of the newest event first",
        ),
    ],
    responses=page_of("SessionPage", SessionOut),
    tags=["events"],
)
@api_view(["GET"])
@needs("session.read")
def session_list(request: Any) -> Response:
    """Sessions of the team, in the order in which they began, or the one with the newest event first."""
    project_id, order = request.GET.get("project", ""), request.GET.get("order", "begun")
    # A cursor of one order is none of the other; those of the default are as they were.
    scope = f"{request.tenant.pk}:sessions:{project_id}" + (":latest" if order == "latest" else "")
    page = Page.asked(request.GET, scope=scope, known=["project", "order"])
    if order not in ("begun", "latest"):
        raise Problem(400, "invalid_order", "order is begun or latest.")
    rows = request.tenant.sessions.select_related("project", "member", "resumed_from")
    if project_id:
        rows = rows.filter(project=_the(request.tenant, request.tenant.projects.all(), project_id))
    field = "last_received_at" if order == "latest" else "first_received_at"
    found = _before(rows, page, field) if order == "latest" else _after(rows.order_by(field, "pk"), page, field)
    return Response(page.of(found, position=_at(field), show=session_out))


@api_view(["GET"])
@needs("session.read")
def session(request: Any, session_id: str) -> Response:
    """One session."""
    found = _session_of(request, session_id)
    return Response(session_out(found) | {"workers": workers.of_session(request.tenant, session_id)})


@extend_schema(
    operation_id="sessions_events",
    parameters=[LIMIT, CURSOR],
    responses=page_of("EventPage", EventOut),
    tags=["events"],
)
@api_view(["GET"])
@needs("session.read")
def session_events(request: Any, session_id: str) -> Response:
    """Events of a session by `seq`. The cursor of the last page resumes there when more arrive."""
    found = _session_of(request, session_id)
    page = Page.asked(request.GET, scope=f"{request.tenant.pk}:events:{found.pk}")
    after = page.after[0] if page.after else 0
    rows = found.events.filter(seq__gt=after).select_related("session").order_by("seq")[: page.limit + 1]
    return Response(page.of(list(rows), position=lambda event: [event.seq], show=event_out))


@extend_schema(operation_id="events_read", responses=EventOut, tags=["events"])
@api_view(["GET"])
@needs("session.read")
def event(request: Any, event_id: str) -> Response:
    """One event, without its payload; a step of a thread has its id from the same grammar."""
    if step := steps.find(request.tenant, event_id):
        return Response(steps.view(step))
    return Response(event_out(_event_of(request, event_id)))


@require_GET
@needs("session.read")
def event_payload(request: TenantRequest, event_id: str) -> HttpResponse:
    """The stored bytes, as they are; `Range: bytes=…` for a part."""
    found = _event_of(request, event_id)
    raw = bodies.stored(found)
    if raw is None:
        raise bodies.gone(found)
    return ranged(request, raw, etag=f'"{bytes(found.sha256).hex()}"')


def ranged(request: HttpRequest, raw: bytes, *, etag: str) -> HttpResponse:
    """The bytes as JSON, or the one part of them that was asked for."""
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "X-Content-Type-Options": "nosniff"}
    asked = _RANGE.match(request.headers.get("Range", ""))
    if not asked or asked[0] == "bytes=-":
        return HttpResponse(raw, content_type="application/json", headers=headers)
    first, last = asked[1], asked[2]
    start = _place(first) if first else max(0, len(raw) - _place(last))
    end = min(_place(last), len(raw) - 1) if first and last else len(raw) - 1
    if start > end:
        raise Problem(
            416,
            "range_not_satisfiable",
            f"The payload has {len(raw)} bytes.",
            headers={"Content-Range": f"bytes */{len(raw)}"},
        )
    headers["Content-Range"] = f"bytes {start}-{end}/{len(raw)}"
    return HttpResponse(raw[start : end + 1], status=206, content_type="application/json", headers=headers)


def _place(digits: str) -> int:
    """The number; one too long to be a place in any payload is as good as the largest."""
    return int(digits) if len(digits) <= 18 else 10**18


def project_out(project: Any) -> dict[str, Any]:
    return {
        "id": project.public_id,
        "slug": project.slug,
        "name": project.name,
        "places": [
            {"kind": root.kind, "place": root.place}
            for root in sorted(project.roots.all(), key=lambda r: (r.kind, r.place))
        ],
        "sessions": project.session_count,
        "last_at": project.last_at,
    }


def session_out(found: Session) -> dict[str, Any]:
    return {
        "id": found.public_id,
        "client": found.client,
        "key": found.key,
        "project": found.project.public_id if found.project else None,
        "member": found.member.public_id if found.member else None,
        "state": found.state,
        "source": found.source,
        "cwd": found.cwd,
        "model": found.model,
        "last_prompt": found.last_prompt,
        "events": found.last_seq,
        "is_internal": found.is_internal,
        "resumed_from": found.resumed_from.public_id if found.resumed_from else None,
        "first_received_at": found.first_received_at,
        "last_received_at": found.last_received_at,
    }


def event_out(found: Event) -> dict[str, Any]:
    return {
        "id": found.public_id,
        "session": found.session.public_id,
        "seq": found.seq,
        "client": found.client,
        "name": found.name,
        "kind": found.kind,
        "key": found.key,
        "occurred_at": found.occurred_at,
        "received_at": found.received_at,
        "agent_id": found.agent_id,
        "tool": found.tool,
        "tool_use_id": found.tool_use_id,
        "summary": found.summary,
        "size": found.size,
        "sha256": bytes(found.sha256).hex(),
        "redactions": found.redactions,
        "sanitized": found.sanitized,
        "head": found.head,
        "tail": found.tail,
        "payload": f"/api/v1/events/{found.public_id}/payload",
        "payload_removed_at": found.dropped_at,
    }


def _session_of(request: Any, session_id: str) -> Session:
    rows = request.tenant.sessions.select_related("project", "member", "resumed_from")
    found: Session = _the(request.tenant, rows, session_id)
    return found


def _event_of(request: Any, event_id: str) -> Event:
    found: Event = _the(request.tenant, request.tenant.events.select_related("session"), event_id)
    return found


def _the(tenant: Tenant, rows: Any, public_id: str) -> Any:
    found = rows.filter(public_id=public_id).first()
    if found is None:
        raise absent(tenant, public_id)
    return found


def _at(field: str) -> Any:
    return lambda row: [getattr(row, field).isoformat(), str(row.pk)]


def _after(rows: Any, page: Page, field: str) -> list[Any]:
    """Up to limit + 1 rows after the cursor, in the order of (field, key)."""
    if page.after:
        at, pk = page.after
        rows = rows.filter(Q(**{f"{field}__gte": at}) & (Q(**{f"{field}__gt": at}) | Q(pk__gt=pk)))
    return list(rows[: page.limit + 1])


def _before(rows: Any, page: Page, field: str) -> list[Any]:
    """Up to limit + 1 rows after the cursor, the latest first."""
    if page.after:
        at, pk = page.after
        rows = rows.filter(Q(**{f"{field}__lte": at}) & (Q(**{f"{field}__lt": at}) | Q(pk__lt=pk)))
    return list(rows.order_by(f"-{field}", "-pk")[: page.limit + 1])


describe(
    "/api/v1/events/{event_id}/payload",
    "get",
    {
        "operationId": "events_payload",
        "summary": "The stored payload of an event, byte for byte",
        "tags": ["events"],
        "parameters": [
            {"name": "event_id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "Range", "in": "header", "schema": {"type": "string"}, "description": "bytes=0-999"},
        ],
        "responses": {
            "200": {"description": "The bytes", "content": {"application/json": {}}},
            "206": {"description": "A part", "content": {"application/json": {}}},
            "404": {"description": "Unknown id", "content": {"application/problem+json": {}}},
            "410": {"description": "Deleted, or dropped by retention", "content": {"application/problem+json": {}}},
            "416": {"description": "No such part", "content": {"application/problem+json": {}}},
        },
    },
)
describe(
    "/api/v1/sessions/{session_id}",
    "get",
    {
        "operationId": "sessions_read",
        "summary": "One session",
        "tags": ["events"],
        "parameters": [{"name": "session_id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "responses": {
            "200": {"description": "The session", "content": {"application/json": {"schema": {"type": "object"}}}},
            "404": {"description": "Unknown id", "content": {"application/problem+json": {}}},
            "410": {"description": "Deleted", "content": {"application/problem+json": {}}},
        },
    },
)
