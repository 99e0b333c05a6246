"""Dreams over REST: start one, look at them, cancel one."""

from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from dream import forget as forgetting
from dream import run as dreams
from dream.models import Run
from memory.events.models import Session
from memory.graph.lookup import absent
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.tenants.access import needs
from memory.tenants.rest import describe


class DreamSerializer(serializers.Serializer[dict[str, Any]]):
    id = serializers.CharField()
    status = serializers.ChoiceField(["queued", "running", "succeeded", "no_change", "failed", "cancelled"])
    mind = serializers.CharField()
    model = serializers.CharField()
    asked_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    events_read = serializers.IntegerField()
    sessions_read = serializers.IntegerField()
    tokens = serializers.DictField(child=serializers.IntegerField())
    error = serializers.CharField()


class WholeDreamSerializer(DreamSerializer):
    proposals = serializers.ListField(child=serializers.CharField())


class StartedSerializer(serializers.Serializer[dict[str, Any]]):
    id = serializers.CharField()
    status = serializers.CharField()


class DreamPageSerializer(serializers.Serializer[dict[str, Any]]):
    items = DreamSerializer(many=True)
    next_cursor = serializers.CharField()
    has_more = serializers.BooleanField()


def show(run: Run) -> dict[str, Any]:
    return {
        "id": run.public_id,
        "status": run.state,
        "mind": run.mind,
        "model": run.model,
        "asked_by": run.asked_by,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "retry_at": run.retry_at,
        "events_read": run.events_read,
        "sessions_read": run.sessions_read,
        "tokens": {"in": run.tokens_in, "out": run.tokens_out, "cached": run.tokens_cached},
        "error": run.error,
    }


@extend_schema(methods=["GET"], operation_id="dreams_list", responses=DreamPageSerializer)
@extend_schema(methods=["POST"], operation_id="dreams_start", request=None, responses={202: StartedSerializer})
@api_view(["GET", "POST"])
@needs("dream.read")
def dream_list(request: Any) -> Response:
    """The team's dreams, latest first; POST starts one."""
    if request.method == "POST":
        return start(request)
    page = Page.asked(request.GET, scope=f"{request.tenant.pk}:dreams")
    rows = request.tenant.dreams.page(after=page.after, limit=page.limit + 1)
    return Response(page.of(rows, position=lambda run: [run.created_at.isoformat(), str(run.pk)], show=show))


def start(request: Any) -> Response:
    try:
        run = dreams.start(request.tenant, by=request.actor)
    except dreams.AlreadyRunning as running:
        raise Problem(
            409, "already_running", "A dream of this team waits or runs. Wait for it, or cancel it.", id=str(running)
        ) from None
    return Response({"id": run.public_id, "status": run.state}, status=202)


@extend_schema(operation_id="dreams_get", responses=WholeDreamSerializer)
@api_view(["GET"])
@needs("dream.read")
def dream(request: Any, dream_id: str) -> Response:
    """One dream and the proposals it made."""
    run = found(request, dream_id)
    made = run.changes.order_by("proposal__created_at", "proposal_id")
    return Response({**show(run), "proposals": list(made.values_list("proposal__public_id", flat=True))})


@extend_schema(operation_id="dreams_cancel", request=None, responses=StartedSerializer)
@api_view(["POST"])
@needs("dream.start")
def cancel(request: Any, dream_id: str) -> Response:
    """End a dream that waits or runs; what it has proposed stays."""
    run = found(request, dream_id)
    try:
        dreams.cancel(run, by=request.actor)
    except dreams.AlreadyFinished:
        raise Problem(409, "already_finished", "This dream has ended: nothing to cancel.", id=dream_id) from None
    return Response({"id": run.public_id, "status": "cancelled"})


def found(request: Any, dream_id: str) -> Run:
    run: Run | None = request.tenant.dreams.filter(public_id=dream_id).first()
    if run is None:
        raise not_found(dream_id)
    return run


@api_view(["DELETE"])
@needs("session.delete")
def session_delete(request: Any, session_id: str) -> Response:
    """Delete a session with all that it recorded."""
    kept = request.GET.get("keep_report", "false")
    if kept not in ("true", "false"):
        raise Problem(400, "invalid_field", "keep_report is true or false.", field="keep_report")
    session: Session | None = request.tenant.sessions.filter(public_id=session_id).first()
    if session is None:
        raise absent(request.tenant, session_id)
    gone = forgetting.forget(session, by=request.actor, keep_report=kept == "true")
    return Response({"id": session_id, "deleted": True, **asdict(gone)})


_PROBLEM: Final = {"description": "application/problem+json", "content": {"application/problem+json": {}}}
describe(
    "/api/v1/sessions/{session_id}",
    "delete",
    {
        "operationId": "sessions_delete",
        "summary": "Delete a session with all that it recorded",
        "description": "Its member may, and an admin. Its ids are never used again, and what comes later under its key "
        "is refused. Approved notes stay; the worker it was, and drafts of notes from it alone, go with it.",
        "tags": ["events"],
        "parameters": [
            {"name": "session_id", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "keep_report",
                "in": "query",
                "schema": {"type": "boolean", "default": False},
                "description": "Keep the worker it was with its report, and the drafts.",
            },
        ],
        "responses": {
            "200": {"description": "What went", "content": {"application/json": {"schema": {"type": "object"}}}},
            **dict.fromkeys(("400", "401", "403", "404", "410"), _PROBLEM),
        },
    },
)
