"""REST that moves notes, takes them out as files and in again, and hears that one is wrong."""

from dataclasses import asdict

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory.graph.answers import idempotent
from memory.notes import bundle, exporting, importing, lookup, moving, paths, reach, reporting, review, rules, shapes
from memory.problems import Problem, not_found
from memory.tenants.access import Refused, also_by_session, needs
from memory.tenants.proof import require_fresh
from memory.tenants.rest import gives

_ZIP = {"application/zip": {"type": "string", "format": "binary"}}


@also_by_session
@extend_schema(
    operation_id="note_move",
    summary="Move a note: by a person at once, by a key as a proposal. The old path leads to it from then on",
    request=shapes.MoveIn,
    responses={
        200: shapes.NoteOut,
        202: shapes.ProposalWholeOut,
        409: OpenApiResponse(description="another note is there"),
    },
)
@api_view(["POST"])
@needs("note.propose")
@idempotent
def move(request: Request, note_id: str) -> Response:
    note = lookup.note(note_id, by=request.actor)  # type: ignore[attr-defined]
    said = request.data if isinstance(request.data, dict) else {}
    to, reason = said.get("path"), said.get("reason", "")
    if not isinstance(to, str) or not isinstance(reason, str) or set(said) - {"path", "reason"}:
        raise Problem(400, "invalid", 'Send JSON like {"path": "tools/bash/flags.md", "reason": "…"}.')
    try:
        target = paths.clean_path(to)
        moving.require_free(note, target)
        try:
            moving.move(note, to, by=request.actor)  # type: ignore[attr-defined]
        except (Refused, rules.NeedsTwo):
            draft = review.Draft(
                note.path, "", reason=reason, member=note.member, operation="move", target=target.shown
            )
            made = review.propose(request.tenant, draft, by=request.actor)  # type: ignore[attr-defined]
            assert made is not None, "a note with a text can be moved"  # noqa: S101
            where = f"/api/v1/proposals/{made.public_id}"
            return Response(shapes.whole_proposal(made), status=202, headers={"Location": where})
    except paths.InvalidPath as error:
        raise Problem(400, "invalid_path", error.advice, reason=error.reason) from None
    except moving.PathTaken as error:
        raise Problem(409, "path_taken", str(error)) from None
    except rules.Locked as error:
        raise Problem(403, "locked", str(error)) from None
    moved = lookup.note(note_id, by=request.actor)  # type: ignore[attr-defined]
    return Response(shapes.note(moved, lookup.revision(moved, None)))


@also_by_session
@extend_schema(
    operation_id="notes_export",
    summary="A space as a zip of files with a signed manifest; the same notes give the same bytes",
    parameters=[
        OpenApiParameter("space", str, description="team (the default) or members/HANDLE"),
        OpenApiParameter("layout", str, enum=list(bundle.LAYOUTS)),
    ],
    responses={(200, "application/zip"): bytes},
)
@gives("application/zip", "application/octet-stream")
@api_view(["GET"])
@needs("note.read")
def export(request: Request) -> HttpResponse:
    require_fresh(request)
    space, layout = _space(request), request.query_params.get("layout", "markdown")
    if layout not in bundle.LAYOUTS:
        raise Problem(400, "invalid_layout", f"layout is one of {', '.join(bundle.LAYOUTS)}.")
    raw = exporting.packed(request.tenant, space.member, layout=layout)  # type: ignore[attr-defined]
    name = f"notes-{space.name.replace('/', '-')}-{layout}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(raw, content_type="application/zip", headers=headers)


@also_by_session
@extend_schema(
    operation_id="notes_import",
    summary="Take a zip of notes in, in any layout: by a person at once, by a key as proposals; conflicts are proposed",
    parameters=[OpenApiParameter("space", str)],
    request=_ZIP,
    responses={
        200: shapes.ImportOut,
        202: shapes.ImportOut,
        422: OpenApiResponse(description="refused as a whole"),
        503: OpenApiResponse(description="`partly_imported`: counts and items say what is in; send the same again"),
    },
)
@api_view(["POST"])
@needs("note.propose")
@idempotent
def take_in(request: Request) -> Response:
    space = _space(request)
    try:
        read = bundle.read(_archive(request))
    except bundle.InvalidBundle as error:
        raise Problem(422, error.code, str(error)) from None
    into = importing.Space(request.tenant, space.member, request.actor)  # type: ignore[attr-defined]
    items = importing.take(read, into, request.work)  # type: ignore[attr-defined]
    counts = importing.counts(items)
    said = {"signature": read.signature, "counts": counts, "items": [asdict(one) for one in items]}
    if failed := counts.get("failed"):
        advice = f"{failed:,} of {len(items):,} files could not be stored; the others are in. Send the same again."
        raise Problem(503, "partly_imported", advice, headers={"Retry-After": "2"}, **said)
    return Response(said, status=202 if any(one.proposal for one in items) else 200)


@also_by_session
@extend_schema(
    operation_id="note_report",
    summary="Say that a note is wrong; a person looks at it",
    request=shapes.ReportIn,
    responses={201: shapes.ReportOut, 200: shapes.ReportOut},
)
@api_view(["POST"])
@needs("note.propose")
@idempotent
def report(request: Request, note_id: str) -> Response:
    note = lookup.note(note_id, by=request.actor)  # type: ignore[attr-defined]
    reason = request.data.get("reason") if isinstance(request.data, dict) else None
    if not isinstance(reason, str):
        raise Problem(400, "invalid", 'Send JSON like {"reason": "The port is 5433 since March."}.')
    try:
        made, is_new = reporting.report(note, reason=reason, by=request.actor)  # type: ignore[attr-defined]
    except reporting.NoReason as error:
        raise Problem(422, "reason_needed", str(error)) from None
    return Response(shapes.report(made), status=201 if is_new else 200)


def _space(request: Request) -> reach.Space:
    name = request.query_params.get("space", reach.TEAM)
    try:
        return reach.space_of(name, by=request.actor)  # type: ignore[attr-defined]
    except reach.UnknownSpace:
        raise not_found(name) from None


def _archive(request: Request) -> bytes:
    """The archive: the body as it is."""
    raw: bytes = request.body
    if not raw:
        raise Problem(400, "empty", "Send the zip as the body, with Content-Type: application/zip.")
    return raw
