"""Threads, workers, owners, links and the walk over REST."""

from typing import Any, Final

import orjson
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.response import Response

from memory import ids, redact
from memory.graph import budget, citations, download, fields, linking, links, lookup, shapes, threads, walk, workers
from memory.graph.answers import idempotent
from memory.graph.models import Thread, Worker
from memory.graph.refusals import Invalid, UnknownThread, UnknownWorker
from memory.graph.threads import Wanted
from memory.graph.workers import Said
from memory.paging import Page
from memory.problems import Problem, not_found
from memory.tenants.access import TenantRequest, needs, require

MAX_TASK: Final = 20_000
MAX_SUMMARY: Final = 4_000
MAX_REPORT: Final = 8 * 1024 * 1024
_THREAD: Final = ("id", "key", "title", "state", "summary")
_WORKER: Final = ("id", "thread", "thread_id", "task", "state", "session", "session_id", "report", "cites")


@extend_schema(
    methods=["GET"],
    operation_id="threads_list",
    summary="Threads in the order in which they began",
    parameters=[*shapes.PAGED, *(OpenApiParameter(name, str) for name in ("key", "state", "q"))],
    responses=shapes.page_of("ThreadPage", shapes.ThreadRowOut),
    tags=["graph"],
)
@extend_schema(
    methods=["POST"],
    operation_id="threads_open",
    summary="Open a thread, or take the one that has this key or id",
    request=shapes.ThreadIn,
    responses={201: shapes.ThreadOut, 200: shapes.ThreadOut},
    tags=["graph"],
)
@api_view(["GET", "POST"])
@idempotent
def thread_list(request: Any) -> Response:
    require(request.actor, "graph.read" if request.method == "GET" else "graph.record")
    if request.method == "GET":
        return _list(request)
    body = fields.only(request.data, _THREAD, shape='{"key": "github:acme/payments#412", "title": "…"}')
    thread_id, key = fields.named_id(body.get("id"), "thread"), fields.name_of(body, "key")
    thread, is_new = threads.open_thread(request.tenant, thread_id=thread_id, key=key, wanted=_wanted(body))
    return _shown(thread, status=201 if is_new else 200)


def _list(request: Any) -> Response:
    asked = {name: request.GET.get(name, "") for name in ("key", "state", "q")}
    scope = orjson.dumps([str(request.tenant.pk), "threads", asked]).decode()
    page = Page.asked(request.GET, scope=scope, known=tuple(asked))
    rows = threads.listed(request.tenant, **asked)
    if page.after:
        rows = threads.past(rows, *page.after)
    shown = list(rows[: page.limit + 1])
    return Response(page.of(shown, position=lambda row: [row.created_at.isoformat(), str(row.pk)], show=threads.row))


def _wanted(body: dict[str, Any]) -> Wanted:
    return Wanted(
        title=fields.line_of(body, "title", most=fields.MAX_TITLE),
        state=fields.state_of(body),
        summary=fields.words(body, "summary", most=MAX_SUMMARY),
    )


def _shown(thread: Thread, *, status: int = 200) -> Response:
    return Response(orjson.loads(threads.view(thread)), status=status)


@api_view(["PUT"])
@needs("graph.record")
def change_thread(request: Any, thread_id: str) -> Response:
    """Set a thread's title, state or summary; what is left out stays."""
    thread = lookup.thread(request.tenant, thread_id)
    body = fields.only(request.data, ("title", "state", "summary"), shape='{"state": "closed"}')
    threads.change(thread, _wanted(body))
    return _shown(thread)


@extend_schema(
    operation_id="threads_index",
    summary="One line for each open thread, the newest activity first, within a budget of tokens",
    parameters=[OpenApiParameter("budget_tokens", int, description="100 to 100,000; 2,000 where left out")],
    responses=shapes.IndexOut,
    tags=["graph"],
)
@api_view(["GET"])
@needs("graph.read")
def thread_index(request: Any) -> HttpResponse:
    _known(request, "budget_tokens")
    most = budget.asked(request.GET, default=2_000)
    return HttpResponse(threads.index(request.tenant, budget_tokens=most), content_type="application/json")


@extend_schema(
    methods=["POST"],
    operation_id="owners_add",
    summary="Make a worker an owner of a thread; with pass_through new triggers go straight into its inbox",
    request=shapes.OwnerIn,
    responses={201: shapes.ThreadOut, 200: shapes.ThreadOut},
    tags=["graph"],
)
@extend_schema(
    methods=["DELETE"],
    operation_id="owners_remove",
    parameters=[OpenApiParameter("worker_id", str)],
    request=shapes.OwnerIn,
    responses=shapes.ThreadOut,
    tags=["graph"],
)
@api_view(["POST", "DELETE"])
@needs("graph.record")
@idempotent
def owners(request: Any, thread_id: str) -> Response:
    """Owners of a thread: POST adds one, DELETE takes one away."""
    thread = lookup.thread(request.tenant, thread_id)
    said = request.data or {"worker_id": request.GET.get("worker_id")}
    body = fields.only(said, ("worker_id", "pass_through"), shape='{"worker_id": "wkr_…", "pass_through": true}')
    worker = _worker_named(request, body.get("worker_id"))
    if request.method == "DELETE":
        if not workers.disown(thread, worker):
            raise not_found(worker.public_id)
        return _shown(thread)
    is_new = workers.own(thread, worker, pass_through=fields.flag(body, "pass_through"))
    return _shown(thread, status=201 if is_new else 200)


@extend_schema(
    methods=["POST"],
    operation_id="links_add",
    summary="Link a thread to another, or to the key of one that may come later",
    request=shapes.LinkIn,
    responses={201: shapes.ThreadOut, 200: shapes.ThreadOut},
    tags=["graph"],
)
@extend_schema(
    methods=["DELETE"],
    operation_id="links_remove",
    parameters=[OpenApiParameter(name, str) for name in ("thread_id", "key", "kind")],
    request=shapes.LinkIn,
    responses=shapes.ThreadOut,
    tags=["graph"],
)
@api_view(["POST", "DELETE"])
@needs("graph.record")
@idempotent
def thread_links(request: Any, thread_id: str) -> Response:
    """Links of a thread: POST adds one, DELETE takes those to a thread or key away."""
    thread = lookup.thread(request.tenant, thread_id)
    shape = '{"thread_id": "thr_…", "kind": "pr"}'
    body = fields.only(request.data or request.GET.dict(), ("thread_id", "key", "kind"), shape=shape)
    # Each by itself: under the name "key" any value would count as a secret.
    body |= {name: redact.clean(body[name]).value for name in ("key", "kind") if body.get(name)}
    kind = fields.name_of(body, "kind", most=40)
    to = _target(request, body)
    if request.method == "DELETE":
        if not links.remove(thread, to, kind=kind):
            raise not_found(to.shown)
        return _shown(thread)
    made_by = request.actor.id
    is_new = links.add(thread, to, kind=kind or "related", made_by=made_by)[1]
    return _shown(thread, status=201 if is_new else 200)


def _target(request: Any, body: dict[str, Any]) -> links.Target:
    named, key = fields.named_id(body.get("thread_id"), "thread"), fields.name_of(body, "key")
    if (named is None) == (key is None):
        raise Invalid("invalid_field", "Give thread_id or key: where the link leads.", field="thread_id")
    return links.target(request.tenant, key) if key else links.Target(_thread_named(request, named))


def _thread_named(request: Any, public_id: str | None) -> Thread:
    try:
        return lookup.thread(request.tenant, public_id or "")
    except Problem:
        raise UnknownThread(public_id) from None


def _worker_named(request: Any, value: Any) -> Worker:
    named = fields.named_id(value, "worker")
    if named is None:
        raise Invalid("invalid_field", "worker_id names the worker.", field="worker_id")
    try:
        return lookup.worker(request.tenant, named)
    except Problem:
        raise UnknownWorker(named) from None


@extend_schema(
    operation_id="workers_start",
    summary="A worker begins: one agent doing one task",
    request=shapes.WorkerIn,
    responses={201: shapes.WorkerOut, 200: shapes.WorkerOut},
    tags=["graph"],
)
@api_view(["POST"])
@needs("graph.record")
@idempotent
def start_worker(request: Any) -> Response:
    body = fields.only(request.data, _WORKER, shape='{"thread": "thr_pr_412", "task": "Find why the deploy failed"}')
    thread_id, key, title = fields.thread_named(body.get("thread", body.get("thread_id")))
    worker_id = fields.own_id(body.get("id"), "worker")
    said = _said(body)
    thread = None
    if thread_id is not None or key is not None:
        thread, _ = threads.open_thread(
            request.tenant, thread_id=thread_id, key=key, wanted=Wanted(title=title or None)
        )
    worker, is_new = workers.start(request.tenant, worker_id, thread, said, by=request.actor.id)
    if said.report is not None or said.task:
        linking.report(worker)
    return Response(workers.view(worker), status=201 if is_new else 200)


def _said(body: dict[str, Any]) -> Said:
    report = fields.words(body, "report", most=MAX_REPORT)
    return Said(
        task=fields.words(body, "task", most=MAX_TASK),
        state=fields.state_of(body),
        session_id=fields.name_of({"session_id": body.get("session_id", body.get("session"))}, "session_id", most=100),
        report=None if report is None else workers.packed_report(report),
        cites=None if body.get("cites") is None else citations.given(body["cites"]),
    )


@api_view(["GET"])
@needs("graph.read")
def show_worker(request: Any, worker_id: str) -> Response:
    """A worker: task, state, report, what it cites."""
    return Response(workers.view(lookup.worker(request.tenant, worker_id)))


@api_view(["PATCH"])
@needs("graph.record")
def change_worker(request: Any, worker_id: str) -> Response:
    """Set a worker's state, report or cites. Ids written in the report are cited too."""
    worker = lookup.worker(request.tenant, worker_id)
    known = ("task", "state", "session", "session_id", "report", "cites")
    body = fields.only(request.data, known, shape='{"state": "done", "report": "…", "cites": ["trg_…"]}')
    said = _said(body)
    workers.change(worker, said)
    if said.report is not None or said.task:
        linking.report(worker)
    return Response(workers.view(worker))


@needs("graph.read")
def worker_report(request: TenantRequest, worker_id: str) -> HttpResponse:
    """The whole report as markdown; `Range`, `?lines=` and `?grep=` for a piece."""
    _known(request, "lines", "grep")
    worker = lookup.worker(request.tenant, worker_id)
    raw = workers.report_of(worker)
    if raw is None or worker.report_sha256 is None:
        raise not_found(f"{worker_id}/report")
    disposition = f'attachment; filename="{worker.public_id}.md"'
    return download.piece_of(
        request, raw, bytes(worker.report_sha256).hex(), "text/markdown; charset=utf-8", disposition
    )


@extend_schema(
    operation_id="workers_inbox",
    summary="Triggers passed straight through to a worker, in order",
    parameters=shapes.PAGED,
    responses=shapes.page_of("InboxPage", shapes.InboxOut),
    tags=["graph"],
)
@api_view(["GET"])
@needs("graph.read")
def inbox(request: Any, worker_id: str) -> Response:
    worker = lookup.worker(request.tenant, worker_id)
    page = Page.asked(request.GET, scope=f"{request.tenant.pk}:inbox:{worker.public_id}")
    rows = workers.inbox(worker, after=page.after[0] if page.after else 0, most=page.limit + 1)
    return Response(page.of(rows, position=lambda entry: [entry.seq], show=workers.entry_view))


@extend_schema(
    operation_id="recall",
    summary="Walk from any id to its causes, or to what came after, in one answer within a budget of tokens",
    parameters=[
        OpenApiParameter("hops", int, description="0 to 8; 3 where left out"),
        OpenApiParameter("budget_tokens", int, description="100 to 100,000; 2,000 where left out"),
        OpenApiParameter("direction", str, enum=list(walk.DIRECTIONS)),
    ],
    responses={200: shapes.RecallOut, 404: OpenApiResponse(description="unknown id")},
    tags=["graph"],
)
@api_view(["GET"])
@needs("graph.read")
def recall(request: Any, public_id: str) -> HttpResponse:
    _known(request, "hops", "budget_tokens", "direction")
    direction = request.GET.get("direction", "cause")
    if direction not in walk.DIRECTIONS:
        raise Problem(400, "invalid_parameter", "direction is cause or after.")
    asked = walk.Asked(
        hops=budget.number(request.GET, "hops", 3, least=0, most=walk.MOST_HOPS),
        budget_tokens=budget.asked(request.GET, default=2_000),
        direction=direction,
        member_pk=request.actor.member_pk,
    )
    raw = walk.recall(request.tenant, public_id, asked) if ids.kind_of(public_id) else None
    if raw is None:
        raise lookup.absent(request.tenant, public_id)
    return HttpResponse(raw, content_type="application/json")


def _known(request: Any, *names: str) -> None:
    for name in request.GET:
        if name not in names:
            raise Problem(400, "unknown_parameter", f"Unknown parameter {name[:40]!r}. Known are {', '.join(names)}.")
