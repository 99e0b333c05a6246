"""REST of finding: the list of approved notes and search in it, and search over everything."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory.notes import lookup, reach, shapes
from memory.notes.lookup import Asked, Listed, list_scope
from memory.notes.shapes import PAGED
from memory.paging import MAX_LIMIT, Page
from memory.problems import Problem, not_found
from memory.recall import asking, block, everywhere, search, vectors
from memory.recall.kinds import KINDS
from memory.tenants.access import needs
from memory.tenants.rest import gives


@extend_schema(
    operation_id="notes_list",
    summary="List or search the approved notes",
    parameters=[*(OpenApiParameter(name, str) for name in ("space", "prefix", "q")), *PAGED],
    responses=shapes.page_of(shapes.NoteFoundOut),
)
@api_view(["GET"])
@needs("note.read")
def list_notes(request: Request) -> Response:
    query = request.query_params
    asked = Asked(query.get("space"), query.get("prefix", ""))
    q = query.get("q")
    by = request.actor  # type: ignore[attr-defined]
    page = Page.asked(query, scope=list_scope(by, f"notes:{asked}:{q}"), known=("space", "prefix", "q"))
    rows = lookup.listed(asked, page, by=by) if q is None else _found(request, asked, q, page)
    return Response(page.of(rows, position=lambda row: row.position, show=Listed.show))


def _found(request: Request, asked: Asked, q: str, page: Page) -> list[Listed]:
    """Hits, best first. The place in this order is its number: the same question ranks the same notes the same."""
    start = int(page.after[0]) if page.after else 0
    reach = lookup.within(asked, by=request.actor)  # type: ignore[attr-defined]
    most = min(start + page.limit + 1, 2 * MAX_LIMIT)
    hits = search.among(reach, q, request.tenant, limit=most)  # type: ignore[attr-defined]
    return [Listed(hit.note, [number], hit.why) for number, hit in enumerate(hits, start=1)][start:]


@extend_schema(
    operation_id="notes_block",
    summary="The approved notes of a space as one block of markdown, for AGENTS.md or CLAUDE.md",
    parameters=[
        OpenApiParameter("space", str, description="team (the default) or members/HANDLE"),
        OpenApiParameter("remote", str, description="The git remote of the work; of projects' notes only its own."),
        OpenApiParameter("root", str, description="Its folder, where there is no remote."),
        OpenApiParameter("max_chars", int, description=f"From {block.LEAST} to {block.MOST}; {block.USUAL} without."),
    ],
    responses={(200, "text/markdown"): str, 304: OpenApiResponse(description="If-None-Match is its ETag")},
)
@gives("text/markdown", "text/plain")
@api_view(["GET"])
@needs("note.read")
def notes_block(request: Request) -> HttpResponse:
    query = request.query_params
    name, most = query.get("space", reach.TEAM), query.get("max_chars", str(block.USUAL))
    if not most.isascii() or not most.isdigit() or not block.LEAST <= int(most[:9]) <= block.MOST:
        raise Problem(400, "invalid", f"max_chars is a number from {block.LEAST} to {block.MOST}.")
    try:
        space = reach.space_of(name, by=request.actor)  # type: ignore[attr-defined]
    except reach.UnknownSpace:
        raise not_found(name) from None
    remote, root = (query.get(one, "").replace("\0", "")[:4000] for one in ("remote", "root"))
    text = block.of(block.Asked(space, remote, root, int(most)))
    tag = f'"{block.digest(text)}"'
    headers = {"ETag": tag, "X-Content-Type-Options": "nosniff"}
    if tag in [one.strip() for one in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(text, content_type="text/markdown; charset=utf-8", headers=headers)


class HitOut(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(KINDS)
    id = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    snippet = serializers.CharField(help_text="The piece of its text that the question met.")
    thread_id = serializers.CharField(required=False)
    path = serializers.CharField(required=False)
    score = serializers.FloatField(help_text="From 0 to 1, within this answer.")
    why = serializers.ListField(child=serializers.CharField())


@extend_schema(
    operation_id="search",
    summary="Find the first id: threads, triggers, workers' reports, notes and prompts, by name, words and meaning",
    parameters=[
        OpenApiParameter("q", str, required=True, description="Any text; nothing in it is an operator."),
        OpenApiParameter("kinds", str, description=f"Of {', '.join(KINDS)}, with commas between; all without it."),
        OpenApiParameter("project", str, description="A prj_ id or its name: of projects' things only this one's."),
        OpenApiParameter("thread", str, description="A thr_ id: only what belongs to this thread."),
        OpenApiParameter("follow", str, description="1: what the best hits are linked with stands among them."),
        *PAGED,
    ],
    responses=shapes.page_of(HitOut),
)
@api_view(["GET"])
@needs("note.read")
def find(request: Request) -> Response:
    query = request.query_params
    by = request.actor  # type: ignore[attr-defined]
    scope = list_scope(by, f"search:{[query.get(name) for name in asking.PARAMETERS]}")
    page = Page.asked(query, scope=scope, known=asking.PARAMETERS)
    asked = asking.read(query, tenant_pk=by.tenant_pk, member_pk=by.member_pk)
    start = int(page.after[0]) if page.after else 0
    if start >= everywhere.DEPTH:
        raise Problem(400, "invalid_cursor", f"A search gives {everywhere.DEPTH} hits at most; ask more narrowly.")
    most = min(start + page.limit + 1, everywhere.DEPTH)
    hits = list(enumerate(everywhere.find(asked, limit=most, by=vectors.maker()), start=1))
    return Response(page.of(hits[start:], position=lambda hit: [hit[0]], show=lambda hit: hit[1].show()))
