"""REST of finding notes: the list of what is approved, and search in it."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from memory.notes import lookup, shapes
from memory.notes.lookup import Asked, Listed, list_scope
from memory.notes.shapes import PAGED
from memory.paging import MAX_LIMIT, Page
from memory.recall import search
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
