"""The one shape of an error: application/problem+json (RFC 9457)."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from psycopg.errors import InsufficientPrivilege
from rest_framework import exceptions
from rest_framework.response import Response

BASE = "https://team-memory.dev/problems/"
TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    410: "Gone",
    411: "Length required",
    412: "Precondition failed",
    413: "Too large",
    415: "Unsupported media type",
    422: "Unprocessable",
    428: "Precondition required",
    429: "Too many requests",
    500: "Server error",
    503: "Unavailable",
    507: "No room",
}


class Problem(Exception):
    """An answer that is an error: status, code, and a detail that says what to do."""

    def __init__(self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any):
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more


def body(problem: Problem) -> dict[str, Any]:
    """The JSON object of a problem."""
    return {
        "type": BASE + problem.code,
        "title": TITLES.get(problem.status, "Error"),
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        **problem.more,
    }


def response(problem: Problem) -> HttpResponse:
    """The problem as an HTTP answer."""
    answer = HttpResponse(_written(body(problem)), status=problem.status, content_type="application/problem+json")
    for name, value in problem.headers.items():
        answer[name] = value
    return answer


def answered(start_response: Any, problem: Problem, *more: tuple[str, str]) -> list[bytes]:
    """The same for a WSGI application that answers before Django does."""
    answer = response(problem)
    length = ("Content-Length", str(len(answer.content)))
    start_response(f"{answer.status_code} {answer.reason_phrase}", [*answer.items(), *more, length])
    return [answer.content]


def _written(value: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # What was asked for stands in it, and may hold half a character, of which no UTF-8 can be made.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def not_found(public_id: str) -> Problem:
    """One body for an unknown id and for another team's id."""
    return Problem(
        404,
        "not_found",
        "Unknown id. Ids are case-sensitive and start with their kind: ses_, evt_, nte_, prp_, drm_, trg_, thr_, wkr_.",
        id=public_id[:200],
    )


def unauthenticated(detail: str = "Send a valid agent key: Authorization: Bearer tm_live_…") -> Problem:
    return Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="team-memory"'})


def forbidden(action: str) -> Problem:
    return Problem(403, "forbidden", f"Your role or key may not do this: {action}.", action=action)


def suspended(contact: str = "") -> Problem:
    """403 for a key or a member of a suspended team. `contact`: whom to ask, as the operator says it; may be empty."""
    whom = f"whoever runs this server ({contact})" if contact else "an owner of your team, or whoever runs this server"
    detail = f"Your team is suspended, so nothing was stored or shown, and nothing is lost. Ask {whom}. Keep what you"
    return Problem(403, "tenant_suspended", f"{detail} have and send it again once the team is resumed.")


def disk_full() -> Problem:
    """507: nothing of it was stored, and all that is there stays readable."""
    return Problem(
        507,
        "disk_full",
        "The server's disk is full, so nothing was stored. Keep this and send it again; what is there can be read."
        " The operator frees room or shortens retention: manage.py doctor names the figures.",
        headers={"Retry-After": "30"},
    )


def too_busy() -> Problem:
    """503: more large bodies are on their way than there is room for."""
    detail = "Too many large bodies arrive at once, so nothing of this one was taken. Send it again in a moment."
    return Problem(503, "unavailable", detail, headers={"Retry-After": "2"})


def project_closed() -> Problem:
    """403 for a write into a project that is hidden from the writer. It does not say which."""
    detail = "This belongs to a project that you or your key may not see, so nothing was written. Ask an admin."
    return Problem(403, "project_closed", detail)


def is_project_limit(exc: BaseException) -> bool:
    """Whether the database refused a row of a project that is hidden from the writer (see tenants/rls.py)."""
    fault = exc if isinstance(exc, InsufficientPrivilege) else exc.__cause__
    return isinstance(fault, InsufficientPrivilege) and '"project_limit"' in str(fault)


def server_fault() -> Problem:
    """500: a fault of ours, which the log explains under the request's id."""
    return Problem(500, "server_error", "A fault on the server. The request id is in X-Request-Id.")


def incomplete() -> Problem:
    """400: the connection ended before the body did, and nothing of it was taken."""
    return Problem(400, "incomplete_body", "The connection ended before the body did. Send it again.")


def from_exception(exc: BaseException) -> Problem | None:
    """The problem an exception stands for; None means: a fault of ours, let it rise."""
    if is_project_limit(exc):
        return project_closed()
    match exc:
        case Problem():
            return exc
        case Http404():
            return Problem(404, "not_found", "There is nothing at this address.")
        case RequestDataTooBig():
            return Problem(413, "too_large", "The body is over the limit of 32 MB.", limit_bytes=32 * 1024 * 1024)
        case UnreadablePostError():
            return incomplete()
        case DataError() if "NUL (0x00)" in str(exc):
            # psycopg's own word, before the database is asked: what no field of ours can be typed into.
            return Problem(400, "not_storable", "A text holds a NUL character, which can't be kept. Leave it out.")
        case RawPostDataException():
            # A browser's session is checked by reading the form first, and then the bytes are gone.
            return Problem(
                415, "unsupported_media_type", "Send the body as JSON, or as this address says; not in parts."
            )
        case PermissionDenied():
            return forbidden(str(exc) or "this action")
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return unauthenticated()
        case exceptions.ValidationError():
            return Problem(400, "invalid", "Some fields are not valid.", errors=exc.detail)
        case exceptions.APIException():
            code = exc.get_codes()
            return Problem(exc.status_code, code if isinstance(code, str) else "invalid", str(exc.detail))
    return None


def drf_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's EXCEPTION_HANDLER."""
    problem = from_exception(exc)
    if problem is None:
        return None
    if isinstance(exc, PermissionDenied):
        # The middleware audits a refusal once the request's own transaction is rolled back.
        context["request"]._request.refused = str(exc)
    headers = dict(problem.headers)
    if isinstance(exc, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return Response(body(problem), status=problem.status, headers=headers, content_type="application/problem+json")


def wants_json(request: HttpRequest) -> bool:
    """True where an error page would be read by a program."""
    return request.path_info.startswith(("/api/", "/mcp")) or "json" in request.headers.get("Accept", "")
