"""Dreams over REST: start one, look at them, cancel one."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from dream import forget as forgetting
from dream import reading, undo
from dream import run as dreams
from dream.models import Change, Run, Window
from memory.events.models import Session
from memory.graph.answers import idempotent
from memory.graph.lookup import absent
from memory.llm import UnknownModel
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
    cost_usd = serializers.FloatField(help_text="Of the calls whose price is known.")
    unpriced_calls = serializers.IntegerField()
    duration_s = serializers.FloatField(allow_null=True)
    progress = serializers.IntegerField(allow_null=True, help_text="Percent of the events read, while it runs.")
    prompt_version = serializers.CharField()
    replays = serializers.CharField(allow_null=True, help_text="Of a dry run: the dream it reads again.")
    undone_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class WindowSerializer(serializers.Serializer[dict[str, Any]]):
    session_id = serializers.CharField()
    from_seq = serializers.IntegerField()
    to_seq = serializers.IntegerField()
    outcome = serializers.CharField()
    detail = serializers.CharField()


class OperationSerializer(serializers.Serializer[dict[str, Any]]):
    op = serializers.CharField()
    path = serializers.CharField()
    reason = serializers.CharField()
    proposal_id = serializers.CharField(allow_null=True)
    state = serializers.CharField(allow_null=True)
    undo = serializers.CharField(allow_null=True)
    text = serializers.CharField(required=False, help_text="Of a dry run: what the note would say.")


class WholeDreamSerializer(DreamSerializer):
    proposals = serializers.ListField(child=serializers.CharField())
    operations = OperationSerializer(many=True)
    windows = WindowSerializer(many=True)


class UndoneSerializer(serializers.Serializer[dict[str, Any]]):
    proposal_id = serializers.CharField()
    path = serializers.CharField()
    outcome = serializers.ChoiceField(["undone", "withdrawn", "proposed", "conflict", "kept"])
    detail = serializers.CharField()
    conflicts = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))


class UndoSerializer(serializers.Serializer[dict[str, Any]]):
    id = serializers.CharField()
    status = serializers.CharField()
    undone = UndoneSerializer(many=True)


class AskedUndoSerializer(serializers.Serializer[dict[str, Any]]):
    proposal_id = serializers.CharField(required=False, help_text="Only this change; without it the whole dream.")


class AskedReplaySerializer(serializers.Serializer[dict[str, Any]]):
    model = serializers.CharField(required=False, allow_blank=True, max_length=120, help_text="distill, or a model.")
    instructions = serializers.CharField(required=False, allow_blank=True, max_length=20_000)


class StartedSerializer(serializers.Serializer[dict[str, Any]]):
    id = serializers.CharField()
    status = serializers.CharField()


class DreamPageSerializer(serializers.Serializer[dict[str, Any]]):
    items = DreamSerializer(many=True)
    next_cursor = serializers.CharField()
    has_more = serializers.BooleanField()


def show(run: Run) -> dict[str, Any]:
    reading.timed(run)
    reading.measured(run, run.tenant)
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
        "cost_usd": float(run.cost),
        "unpriced_calls": run.unpriced_calls,
        "duration_s": run.duration_s,  # type: ignore[attr-defined]
        "progress": run.progress,  # type: ignore[attr-defined]
        "prompt_version": run.prompt_version,
        "replays": run.replays.public_id if run.replays else None,
        "undone_at": run.undone_at,
        "error": run.error,
    }


def _operation(change: Change) -> dict[str, Any]:
    proposal = change.proposal
    row = {
        "op": change.kind,
        "path": change.path,
        "reason": change.reason,
        "proposal_id": proposal.public_id if proposal else None,
        "state": proposal.state if proposal else None,
        "undo": change.undo or None,
    }
    return row if proposal else row | {"text": change.text}


def _window(read: Window) -> dict[str, Any]:
    return {
        "session_id": read.session.public_id,
        "from_seq": read.from_seq,
        "to_seq": read.to_seq,
        "outcome": read.outcome,
        "detail": read.detail,
    }


def _undone(one: undo.Undone) -> dict[str, Any]:
    found = undo.conflicts(one.change) if one.outcome == "conflict" else []
    return {
        "proposal_id": one.change.proposal.public_id if one.change.proposal else "",
        "path": one.change.path,
        "outcome": one.outcome,
        "detail": one.detail,
        "conflicts": [{"dream": each.base, "now": each.mine, "before": each.theirs} for each in found],
    }


@extend_schema(methods=["GET"], operation_id="dreams_list", responses=DreamPageSerializer)
@extend_schema(methods=["POST"], operation_id="dreams_start", request=None, responses={202: StartedSerializer})
@api_view(["GET", "POST"])
@needs("dream.read")
@idempotent
def dream_list(request: Any) -> Response:
    """The team's dreams, latest first; POST starts one."""
    if request.method == "POST":
        return start(request)
    page = Page.asked(request.GET, scope=f"{request.tenant.pk}:dreams")
    rows = request.tenant.dreams.select_related("replays", "tenant").page(after=page.after, limit=page.limit + 1)
    return Response(page.of(rows, position=lambda run: [run.created_at.isoformat(), str(run.pk)], show=show))


def start(request: Any) -> Response:
    try:
        run = dreams.start(request.tenant, by=request.actor)
    except dreams.AlreadyRunning as running:
        raise _already(running) from None
    return Response({"id": run.public_id, "status": run.state}, status=202)


@extend_schema(operation_id="dreams_get", responses=WholeDreamSerializer)
@api_view(["GET"])
@needs("dream.read")
def dream(request: Any, dream_id: str) -> Response:
    """One dream: what it read, what it did, what it cost, and the proposals it made."""
    run = found(request, dream_id)
    rows = run.changes.filter(reading.of_mine(request.actor)).select_related("proposal").order_by("pk")
    read = run.windows.select_related("session").order_by("session_id", "from_seq")
    whole = {
        "proposals": [change.proposal.public_id for change in rows if change.proposal],
        "operations": [_operation(change) for change in rows],
        "windows": [_window(window) for window in read],
    }
    return Response({**show(run), **whole})


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


@extend_schema(operation_id="dreams_undo", request=AskedUndoSerializer, responses=UndoSerializer)
@api_view(["POST"])
@needs("dream.undo")
def undo_dream(request: Any, dream_id: str) -> Response:
    """Take back what a dream brought, whole or one change; later edits stay. A key asks for it by a proposal."""
    run = found(request, dream_id)
    asked = _asked(AskedUndoSerializer, request)
    one = asked.validated_data.get("proposal_id")
    try:
        if one:
            rows = run.changes.filter(reading.of_mine(request.actor), proposal__public_id=one.replace("\0", ""))
            change = rows.select_related("proposal__note", "run").first()
            if change is None:
                raise not_found(one)
            done = [undo.undo_change(change, by=request.actor)]
        else:
            done = undo.undo(run, by=request.actor)
    except undo.NotFinished:
        raise Problem(409, "not_finished", "This dream waits or runs. Cancel it first.", id=dream_id) from None
    except undo.NothingToUndo:
        raise Problem(409, "dry_run", "A dry run changed nothing: nothing to undo.", id=dream_id) from None
    return Response({"id": run.public_id, "status": run.state, "undone": [_undone(each) for each in done]})


@extend_schema(operation_id="dreams_replay", request=AskedReplaySerializer, responses={202: StartedSerializer})
@api_view(["POST"])
@needs("dream.start")
def replay_dream(request: Any, dream_id: str) -> Response:
    """Read the same events by another model or prompt; what it would propose is only shown."""
    of = found(request, dream_id)
    asked = _asked(AskedReplaySerializer, request)
    if of.replays_id is not None or of.state in ("queued", "running"):
        raise Problem(409, "not_finished", "Only a dream that has ended can be replayed.", id=dream_id)
    try:
        dry = dreams.Dry(of, asked.validated_data.get("model", ""), asked.validated_data.get("instructions", ""))
        run = dreams.start(request.tenant, by=request.actor, dry=dry)
    except UnknownModel as why:
        raise Problem(400, "unknown_model", str(why)) from None
    except dreams.AlreadyRunning as running:
        raise _already(running) from None
    return Response({"id": run.public_id, "status": run.state}, status=202)


def _asked(kind: type[serializers.Serializer[dict[str, Any]]], request: Any) -> serializers.Serializer[dict[str, Any]]:
    """What a body asks for; an empty one asks for nothing. A misspelt field is refused: without it, all is meant."""
    said = {} if request.data is None else request.data
    names = kind().fields
    if not isinstance(said, Mapping):
        raise Problem(400, "not_an_object", "The body is a JSON object, or empty.")
    for name in said:
        if name not in names:
            detail = f"Unknown field {name[:60]!r}. Known are {', '.join(sorted(names))}."
            raise Problem(400, "unknown_field", detail, field=name[:60])
    asked = kind(data=said)
    asked.is_valid(raise_exception=True)
    return asked


def _already(running: dreams.AlreadyRunning) -> Problem:
    detail = "A dream of this team waits or runs. Wait for it, or cancel it."
    return Problem(409, "already_running", detail, id=str(running))


def found(request: Any, dream_id: str) -> Run:
    rows = request.tenant.dreams.select_related("replays")
    run: Run | None = rows.filter(public_id=dream_id).first()
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
    try:
        gone = forgetting.forget(session, by=request.actor, keep_report=kept == "true")
    except Session.DoesNotExist:  # another request deleted it a moment ago
        raise absent(request.tenant, session_id) from None
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
