"""The other doors of the caches: analyses, questions, results, what is to go, what was stale, what it all did."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from cache_admin import again, analyses, incidents, metrics, projects, results, semantic, shapes, usage
from cache_admin import invalidate as invalidation
from cache_admin.keys import read_call
from cache_admin.lookup import MayNotUse, UnknownKey
from cache_admin.respond import ranged, refused, said
from memory.graph.answers import idempotent
from memory.problems import Problem
from memory.tenants.access import TenantRequest, brings_own_transaction, needs
from memory.tenants.middleware import bad_key, bearer, key_actor

KEYED = OpenApiParameter(
    "Idempotency-Key", str, "header", description="Sent again within 24 h, the answer of the first time comes back."
)

CHECKED = OpenApiParameter(
    "Idempotency-Key", str, "header", description="Another body under the same key is 409. Nothing is written, so a"
    " repeat is asked anew."
)  # fmt: skip


class AnalysisOut(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["hit", "miss"])
    content_hash = serializers.CharField()
    analysis_type = serializers.CharField()
    version = serializers.CharField()
    analysis_id = serializers.CharField(required=False)
    analysis = serializers.JSONField(required=False)
    made_by = serializers.JSONField(required=False)
    stored_at = serializers.DateTimeField(required=False)
    reason = serializers.CharField(required=False)


class AnalysesOut(serializers.Serializer[Any]):
    items = AnalysisOut(many=True)
    hits = serializers.IntegerField()


class WantedIn(serializers.Serializer[Any]):
    content_hash = serializers.CharField()
    analysis_type = serializers.CharField()
    version = serializers.CharField()
    parameters = serializers.JSONField(required=False)
    model = serializers.CharField(required=False)
    prompt = serializers.CharField(required=False, help_text="The prompt's version or digest")
    path = serializers.CharField(required=False)


class BatchIn(serializers.Serializer[Any]):
    items = WantedIn(many=True)
    context = serializers.JSONField(required=False)  # type: ignore[assignment] # DRF takes declared fields off


class MadeIn(serializers.Serializer[Any]):
    version = serializers.CharField()
    analysis = serializers.JSONField()
    parameters = serializers.JSONField(required=False)
    model = serializers.CharField(required=False)
    prompt = serializers.CharField(required=False)
    path = serializers.CharField(required=False)
    duration_ms = serializers.IntegerField(required=False)
    context = serializers.JSONField(required=False)  # type: ignore[assignment] # DRF takes declared fields off


class KeptOut(serializers.Serializer[Any]):
    stored = serializers.BooleanField()
    analysis_id = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    only_at_its_path = serializers.BooleanField(required=False)


class ResultIn(serializers.Serializer[Any]):
    content = serializers.JSONField(help_text="Text, or any JSON")
    tool = serializers.CharField(required=False)
    kind = serializers.CharField(required=False, help_text="code, logs, tests, json, list, diff, markdown, or a path")
    scope = serializers.ChoiceField(choices=["member", "team"], required=False)
    project = serializers.CharField(required=False)
    ttl_s = serializers.IntegerField(required=False)


class ResultOut(serializers.Serializer[Any]):
    result_id = serializers.CharField()
    summary = serializers.CharField()
    full_length_chars = serializers.IntegerField()
    note = serializers.CharField()
    summariser = serializers.CharField()
    tokens = serializers.IntegerField()
    summary_tokens = serializers.IntegerField()
    redactions = serializers.IntegerField()
    expires_at = serializers.DateTimeField()


class DoomedIn(serializers.Serializer[Any]):
    paths = serializers.JSONField(required=False, help_text='Paths, or {"path", "content_hash"} with the digest of now')
    root = serializers.CharField(required=False)  # type: ignore[assignment] # as above
    project = serializers.CharField(required=False)
    tool = serializers.CharField(required=False)
    content_hash = serializers.CharField(required=False)
    key = serializers.CharField(required=False)
    writer = serializers.CharField(required=False, help_text="mem_… or key_…; needs the scope admin")
    all = serializers.BooleanField(required=False, help_text="A new salt; needs the scope admin")


class GoneOut(serializers.Serializer[Any]):
    removed = serializers.IntegerField()


class IncidentIn(serializers.Serializer[Any]):
    result_id = serializers.CharField(required=False)
    key = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=list(incidents.KINDS), required=False)
    detail = serializers.CharField(required=False)


class IncidentOut(serializers.Serializer[Any]):
    incident_id = serializers.CharField()
    removed = serializers.IntegerField()


class CountOut(serializers.Serializer[Any]):
    recorded = serializers.IntegerField()
    repeated = serializers.IntegerField()


@extend_schema(
    operation_id="cache_analyses_lookup", parameters=[CHECKED], request=BatchIn, responses=AnalysesOut, tags=["caches"]
)
@api_view(["POST"])
@needs("cache.use")
def analyses_lookup(request: Request) -> Response:
    """Up to 1,000 analyses at once; the answers stand in the order of the questions."""
    wanted, project = shapes.batch(request.data)
    key = again.key_of(request)
    if key is not None:
        again.check(request, key)
    actor = request.actor  # type: ignore[attr-defined]
    tenant = request.tenant  # type: ignore[attr-defined]
    found, hits = analyses.look(tenant, wanted, by=actor, project_pk=projects.pk_of(tenant, project, by=actor))
    return Response({"items": found, "hits": hits})


@extend_schema(
    operation_id="cache_analyses_store", request=MadeIn, responses={201: KeptOut, 200: KeptOut}, tags=["caches"]
)
@api_view(["PUT"])
@needs("cache.use")
def analysis_store(request: Request, content_hash: str, analysis_type: str) -> Response:
    """Store an analysis of a file content; first write wins."""
    made, project = shapes.made(body(request), content_hash, analysis_type)
    actor = request.actor  # type: ignore[attr-defined]
    tenant = request.tenant  # type: ignore[attr-defined]
    kept = analyses.keep(tenant, made, by=actor, project_pk=projects.pk_of(tenant, project, by=actor))
    is_new = kept.outcome == "stored"
    said_of: dict[str, Any] = {"stored": is_new}
    if not is_new:
        said_of["reason"] = kept.outcome
    if kept.analysis_id:
        said_of |= {"analysis_id": kept.analysis_id, "only_at_its_path": kept.is_bound}
    return Response(said_of, status=201 if is_new else 200)


@csrf_exempt
@require_POST
@brings_own_transaction
def semantic_lookup(request: HttpRequest) -> HttpResponse:
    """A question: served from the same words, or from the nearest question past the guard."""
    key_hash = bearer(request)
    try:
        asked = shapes.question(read_call(request.body))
    except Problem:
        key_actor(request)
        raise

    def ask() -> again.Said:
        found = semantic.ask(key_hash, asked)
        answer = said(found.answer)
        if found.score is not None:
            answer |= {"score": round(found.score, 4), "matched_query": found.matched_query}
        if found.guard:
            answer["guard"] = found.guard
        return found.answer, answer

    if again.key_of(request) is not None:
        # The vector is made before the transaction of the key: nothing waits inside one.
        semantic.prepare(asked)
    try:
        return again.answered(request, ask)
    except UnknownKey:
        raise bad_key(bearer(request)) from None
    except MayNotUse:
        raise refused(request) from None


@extend_schema(
    operation_id="results_create", parameters=[KEYED], request=ResultIn, responses={201: ResultOut}, tags=["caches"]
)
@api_view(["POST"])
@needs("cache.use")
@idempotent
def result_list(request: Request) -> Response:
    """Keep a long result out of the context: a summary fit for its kind comes back, and the id of the whole."""
    actor = request.actor  # type: ignore[attr-defined]
    tenant = request.tenant  # type: ignore[attr-defined]
    draft, is_private, project = shapes.result(body(request))
    project_pk = projects.pk_of(tenant, project, by=actor)
    kept, summary = results.offload(tenant, draft, by=actor, is_private=is_private, project_pk=project_pk)
    where = f"/api/v1/results/{kept.public_id}"
    note = (
        f"A summary. The whole: GET {where} (?lines=120-180, ?grep=RE2, Range)."
        if kept.summary
        else f"This is the whole; it is kept at GET {where}."
    )
    return Response(
        {
            "result_id": kept.public_id,
            "summary": summary,
            "full_length_chars": kept.chars,
            "note": note,
            "summariser": kept.summariser,
            "tokens": kept.tokens,
            "summary_tokens": kept.summary_tokens,
            "redactions": kept.redactions,
            "expires_at": kept.expires_at,
        },
        status=201,
        headers={"Location": where},
    )


@require_GET
@needs("cache.read")
def result(request: TenantRequest, result_id: str) -> HttpResponse:
    """The full text; `?lines=`, `?grep=` or `Range` for a part of it."""
    known = {"lines", "grep", "context"}
    unknown = [name for name in request.GET if name not in known]
    if unknown:
        raise Problem(400, "unknown_parameter", f"Unknown parameter {unknown[0][:40]!r}; known: lines, grep, context.")
    found, text = results.readable(request.tenant, result_id, by=request.actor)
    results.expanded(found)
    etag = f'"{bytes(found.sha256).hex()}"'
    if "grep" in request.GET or "lines" in request.GET:
        text = results.shown_text(found, text)
    if "grep" in request.GET:
        around = request.GET.get("context", "0")
        if not around.isascii() or not around.isdigit() or int(around[:3]) > results.MAX_CONTEXT:
            raise Problem(400, "invalid_parameter", f"context is a whole number from 0 to {results.MAX_CONTEXT}.")
        return plain(results.grep(text, request.GET["grep"], context=int(around)))
    if "lines" in request.GET:
        return plain(results.lines_of(text, request.GET["lines"]))
    media_type = "application/json" if found.is_json else "text/plain; charset=utf-8"
    return ranged(request, text, etag=etag, media_type=media_type)


def plain(text: str) -> HttpResponse:
    """Lines of a text."""
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers={"X-Content-Type-Options": "nosniff"})


@extend_schema(
    operation_id="cache_invalidate", parameters=[KEYED], request=DoomedIn, responses=GoneOut, tags=["caches"]
)
@api_view(["POST"])
@needs("cache.use")
@idempotent
def invalidate(request: Request) -> Response:
    """Drop stored answers by path and digest, tool, project, content hash, key, writer, or all."""
    doomed, project = shapes.doomed(body(request))
    actor = request.actor  # type: ignore[attr-defined]
    tenant = request.tenant  # type: ignore[attr-defined]
    doomed = replace(doomed, project_pk=projects.pk_of(tenant, project, by=actor))
    return Response({"removed": invalidation.invalidate(tenant, doomed, by=actor)})


@extend_schema(
    operation_id="cache_incidents_report",
    parameters=[KEYED],
    request=IncidentIn,
    responses={201: IncidentOut},
    tags=["caches"],
)
@api_view(["POST"])
@needs("cache.use")
@idempotent
def incident_list(request: Request) -> Response:
    """Say that an answer from the cache was stale or wrong; it is dropped at once."""
    told_of = shapes.incident(body(request))
    incident, gone = incidents.report(request.tenant, told_of, by=request.actor)  # type: ignore[attr-defined]
    return Response({"incident_id": incident.public_id, "removed": gone}, status=201)


@extend_schema(
    operation_id="cache_metrics",
    parameters=[
        OpenApiParameter("by", OpenApiTypes.STR, enum=["tool", "day", "tool,day"]),
        OpenApiParameter("from", OpenApiTypes.DATE),
        OpenApiParameter("to", OpenApiTypes.DATE),
    ],
    responses=OpenApiResponse(OpenApiTypes.OBJECT, "Figures by tool or day; hit_rate is null where nothing was asked"),
    tags=["caches"],
)
@api_view(["GET"])
@needs("cache.read")
def metric_list(request: Request) -> Response:
    """Hit rate over cacheable lookups, tokens and time saved, misses by reason, staleness, overhead."""
    for name in request.query_params:
        if name not in ("by", "from", "to"):
            raise Problem(400, "unknown_parameter", f"Unknown parameter {name[:40]!r}; known: by, from, to.")
    by = request.query_params.get("by", "tool")
    if by not in ("tool", "day", "tool,day"):
        raise shapes.invalid("by", "tool, day or tool,day.")
    since, until = shapes.span(request.query_params)
    return Response(metrics.report(request.tenant, by=by, since=since, until=until))  # type: ignore[attr-defined]


@extend_schema(
    operation_id="usage_report",
    parameters=[KEYED],
    request=OpenApiTypes.OBJECT,
    responses={201: CountOut},
    tags=["caches"],
)
@api_view(["POST"])
@needs("cache.use")
@idempotent
def usage_list(request: Request) -> Response:
    """What model calls took, in the provider's own figures; each message counts once."""
    reported = shapes.reported(request.data)
    new = usage.record(request.tenant, reported)  # type: ignore[attr-defined]
    return Response({"recorded": new, "repeated": len(reported) - new}, status=201)


def body(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises Problem 400."""
    if not isinstance(request.data, dict):
        raise Problem(400, "invalid_json", "The body is a JSON object.")
    return request.data
