"""REST of finding: the list of approved notes and search in it, and search over everything."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory.notes import lookup, shapes
from memory.notes.lookup import Asked, Listed, list_scope
from memory.notes.shapes import PAGED
from memory.paging import MAX_LIMIT, Page
from memory.problems import Problem
from memory.recall import asking, everywhere, search, vectors
from memory.recall.kinds import KINDS
from memory.tenants.access import needs


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
