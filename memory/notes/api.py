"""REST of notes and proposals for agents. An agent reads what its member may read, and changes nothing: it proposes."""

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory.graph.answers import idempotent
from memory.notes import lookup, review, rules, shapes
from memory.notes.models import Proposal
from memory.notes.review import Draft, InvalidNote, LostUpdate
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.tenants.access import also_by_session, needs
from memory.tenants.rest import gives, strict_json

_MARKDOWN = {"text/markdown": {"type": "string"}, "application/json": {"type": "object", "required": ["text"]}}


def list_scope(request: Request, name: str) -> str:
    """What a cursor of this list is good for."""
    return lookup.list_scope(request.actor, name)  # type: ignore[attr-defined]


def etag(number: int) -> str:
    """The entity tag of a note: its revision's number."""
    return f'"{number}"'


@extend_schema(
    operation_id="note_read",
    summary="One note with the events each line rests on",
    parameters=[OpenApiParameter("revision", int, description="an older revision's number")],
    responses={200: shapes.NoteWholeOut, 404: OpenApiResponse(description="unknown id")},
)
@api_view(["GET"])
@needs("note.read")
def show_note(request: Request, note_id: str) -> Response:
    note = lookup.note(note_id, by=request.actor)  # type: ignore[attr-defined]
    at = lookup.revision(note, request.query_params.get("revision"))
    return Response(shapes.whole_note(note, at), headers={"ETag": etag(at.number)})


@extend_schema(
    operation_id="note_revisions",
    summary="The history of a note, newest first",
    parameters=shapes.PAGED,
    responses=shapes.page_of(shapes.RevisionOut),
)
@api_view(["GET"])
@needs("note.read")
def list_revisions(request: Request, note_id: str) -> Response:
    note = lookup.note(note_id, by=request.actor, is_live=False)  # type: ignore[attr-defined]
    page = Page.asked(request.query_params, scope=list_scope(request, f"revisions:{note_id}"))
    rows = note.revisions.select_related("approved_by").order_by("-number")
    if page.after:
        rows = rows.filter(number__lt=page.after[0])
    return Response(page.of(list(rows[: page.limit + 1]), position=lambda row: [row.number], show=shapes.revision))


@extend_schema(
    methods=["GET"],
    summary="A note's markdown by its path (team/PATH or members/HANDLE/PATH)",
    responses={
        (200, "text/markdown"): str,
        304: OpenApiResponse(description="If-None-Match is its ETag"),
        308: OpenApiResponse(description="the note was moved: Location is where it stands"),
    },
)
@extend_schema(
    methods=["PUT"],
    summary="Propose a note's text; a person decides",
    request=_MARKDOWN,
    responses={202: shapes.ProposalWholeOut, 200: OpenApiResponse(description="the note says this already")},
)
@extend_schema(
    methods=["DELETE"],
    summary="Propose to delete a note; a person decides",
    request=None,
    responses={202: shapes.ProposalWholeOut},
)
@gives("text/markdown", "text/plain")
@api_view(["GET", "PUT", "DELETE"])
@needs("note.read")
def by_path(request: Request, address: str) -> Response | HttpResponse:
    place = lookup.place(address, by=request.actor)  # type: ignore[attr-defined]
    if lookup.note_at(place) is None and (moved := lookup.moved(place)):
        where = reverse("api-note-by-path", args=[f"{moved.space}/{moved.path}"])
        return HttpResponse(status=308, headers={"Location": where, "X-Note-Id": moved.public_id})
    if request.method == "GET":
        return _markdown(request, place)
    return _proposed(request, place)


def _markdown(request: Request, place: lookup.Place) -> HttpResponse:
    note = lookup.note_at(place)
    if note is None or note.current is None:
        raise not_found(str(place))
    tag = etag(note.current.number)
    headers = {
        "ETag": tag,
        "X-Note-Id": note.public_id,
        "X-Revision-Id": note.current.public_id,
        "X-Content-Type-Options": "nosniff",
    }
    if tag in [one.strip() for one in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(note.current.text, content_type="text/markdown; charset=utf-8", headers=headers)


def _proposed(request: Request, place: lookup.Place) -> Response:
    """The default rule is review: what an agent sends waits for a person, unless a rule lets it in."""
    note = lookup.note_at(place)
    current = note.current.number if note and note.current else None
    _check_precondition(request, current)
    if request.method == "DELETE" and current is None:
        raise not_found(str(place))
    text, reason = _text_of(request) if request.method == "PUT" else ("", request.query_params.get("reason", ""))
    draft = Draft(
        path=place.path.shown,
        text=text,
        reason=reason,
        member=place.space.member,
        operation="write" if request.method == "PUT" else "delete",
        base=current,
    )
    try:
        proposal = review.propose(request.tenant, draft, by=request.actor)  # type: ignore[attr-defined]
    except InvalidNote as error:
        problems = [{"code": one.code, "field": one.field, "detail": one.detail} for one in error.problems]
        raise Problem(422, error.problems[0].code, str(error), problems=problems) from None
    except LostUpdate as lost:
        raise _stale(lost.current) from None
    except rules.Locked as locked:
        raise Problem(403, "locked", str(locked)) from None
    if proposal is None:
        said = {"proposal": None, "detail": "The note says this already."}
        return Response(said, headers={"ETag": etag(current or 0)})
    where = f"/api/v1/proposals/{proposal.public_id}"
    status = 202 if proposal.state == "open" else 200
    return Response(shapes.whole_proposal(proposal), status=status, headers={"Location": where})


def _check_precondition(request: Request, current: int | None) -> None:
    """Who changes a note must have read it: If-Match for one that exists, nothing or If-None-Match: * for a new one."""
    asked = request.headers.get("If-Match", "").strip()
    if current is None:
        if asked:
            raise _stale(None)
        return
    if request.headers.get("If-None-Match", "").strip() == "*":
        raise _stale(current)
    if not asked:
        raise Problem(
            428, "precondition_required", "Read the note first, then send its ETag as If-Match.", revision=current
        )
    if etag(current) not in [one.strip().removeprefix("W/") for one in asked.split(",")]:
        raise _stale(current)


def _stale(current: int | None) -> Problem:
    now = "There is no such note now." if current is None else f"The note is at revision {current} now."
    return Problem(412, "stale", f"{now} Read it again, then send its ETag as If-Match.", revision=current)


def _text_of(request: Request) -> tuple[str, str]:
    """The note and the reason for it: markdown as it is, or JSON {"text", "reason"?}."""
    raw: bytes = request.body
    if not (request.content_type or "").startswith("application/json"):
        try:
            return raw.decode(), request.query_params.get("reason", "")
        except UnicodeDecodeError:
            raise Problem(400, "not_utf8", "Send the note as UTF-8.") from None
    body = strict_json(raw)
    text, reason = (body.get("text"), body.get("reason", "")) if isinstance(body, dict) else (None, "")
    if not isinstance(text, str) or not isinstance(reason, str):
        raise Problem(400, "invalid", 'Send markdown, or JSON like {"text": "…", "reason": "…"}.')
    return text, reason


@extend_schema(
    operation_id="proposals_list",
    summary="Proposals, newest first",
    parameters=[OpenApiParameter("state", str, enum=["open", "approved", "rejected", "superseded"]),
                OpenApiParameter("note", str), *shapes.PAGED],
    responses=shapes.page_of(shapes.ProposalOut),
)  # fmt: skip
@api_view(["GET"])
@needs("note.read")
def list_proposals(request: Request) -> Response:
    state, note_id = request.query_params.get("state", "open"), request.query_params.get("note")
    page = Page.asked(
        request.query_params, scope=list_scope(request, f"proposals:{state}:{note_id}"), known=("state", "note")
    )
    rows = lookup.proposals(state, note_id, page, by=request.actor)  # type: ignore[attr-defined]
    return Response(page.of(rows, position=lambda row: [row.public_id], show=shapes.proposal))


@extend_schema(operation_id="proposal_read", summary="One proposal with its text", responses=shapes.ProposalWholeOut)
@api_view(["GET"])
@needs("note.read")
def show_proposal(request: Request, proposal_id: str) -> Response:
    return Response(shapes.whole_proposal(_proposal(request, proposal_id)))


@also_by_session
@extend_schema(
    summary="Approve: people only, in the browser",
    request=shapes.ApproveIn,
    responses={403: OpenApiResponse(description="an agent key proposes and never decides")},
)
@api_view(["POST"])
@needs("note.approve")
@idempotent
def approve(request: Request, proposal_id: str) -> Response:
    shown = str(request.data.get("shown", "")) if isinstance(request.data, dict) else ""
    try:
        revision = review.approve(_proposal(request, proposal_id), by=request.actor, shown=shown)  # type: ignore[attr-defined]
    except review.AlreadyDecided:
        raise _decided() from None
    except review.StaleProposal:
        raise Problem(412, "stale", "Send the sha256 of the text you read as `shown`; it changed since.") from None
    except rules.Locked as locked:
        raise Problem(403, "locked", str(locked)) from None
    if revision is None:
        return Response(shapes.whole_proposal(_proposal(request, proposal_id)), status=202)
    return Response(shapes.revision(revision))


@also_by_session
@extend_schema(
    summary="Reject: people only, in the browser",
    request=shapes.RejectIn,
    responses={403: OpenApiResponse(description="an agent key proposes and never decides")},
)
@api_view(["POST"])
@needs("note.approve")
@idempotent
def reject(request: Request, proposal_id: str) -> Response:
    said = request.data if isinstance(request.data, dict) else {}
    reason, closes = str(said.get("reason", "")).strip(), said.get("close_path") is True
    if not reason:
        raise Problem(422, "reason_needed", 'Say why, as {"reason": "…"}: the next dream is told the reason.')
    rejected = _proposal(request, proposal_id)
    try:
        review.reject(rejected, by=request.actor, reason=reason, close_path=closes)  # type: ignore[attr-defined]
    except review.AlreadyDecided:
        raise _decided() from None
    return Response(shapes.whole_proposal(_proposal(request, proposal_id)))


def _proposal(request: Request, proposal_id: str) -> Proposal:
    return lookup.proposal(proposal_id, by=request.actor)  # type: ignore[attr-defined]


def _decided() -> Problem:
    return Problem(409, "already_decided", "The proposal was decided before.")
