"""The outer door: addresses, request ids, errors, and the short way of programs to their views."""

import logging
from contextlib import suppress

import psycopg
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.exception import response_for_exception
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.template.response import SimpleTemplateResponse
from django.urls import Resolver404, ResolverMatch, resolve
from psycopg.errors import DiskFull

from memory import ids, logs, problems
from memory.tenants import rls
from memory.tenants.access import Actor, Refused
from memory.tenants.middleware import Next, Response, bound, key_actor
from memory.tenants.models import Tenant
from memory.tenants.races import is_race

# What no cache may keep.
PRIVATE = ("/t/", "/api/", "/mcp", "/login", "/account", "/prove", "/password", "/sso", "/invite", "/operator")
# Asked by probes, which know a host by its address and not by its name.
PROBES = ("/healthz", "/readyz", "/metrics")
PROGRAMS = ("/api/", *PROBES, "/mcp")
# Agents write what these pages show: whatever slips past escaping finds no script that it may run.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


log = logging.getLogger(__name__)
ATTEMPTS = 4
DatabaseAway = (OperationalError, InterfaceError, psycopg.OperationalError)


class Again(Exception):
    """Two requests met at one row or lock, and this one has to come again."""


def is_full(exc: BaseException) -> bool:
    """Whether the database found no room on its disk."""
    return isinstance(exc, DiskFull) or isinstance(exc.__cause__, DiskFull)


def away(exc: Exception) -> HttpResponse:
    """503, or 507 where the disk is full: whoever sent this sends it again, and nothing is lost."""
    if is_full(exc):
        log.error("the database has no room: %s", exc)
        return problems.response(problems.disk_full())
    log.error("the database does not answer: %s", exc)
    detail = "The database does not answer. Send the same again in a moment."
    return problems.response(problems.Problem(503, "unavailable", detail, headers={"Retry-After": "2"}))


def is_by_session(request: HttpRequest) -> bool:
    """Whether a browser asks: it has no key, and a session."""
    return "HTTP_AUTHORIZATION" not in request.META and settings.SESSION_COOKIE_NAME in request.COOKIES


def head_of(response: Response) -> Response:
    """The answer without its body, which keeps saying how long that would be."""
    if isinstance(response, HttpResponse) and response.content:
        response.headers.setdefault("Content-Length", str(len(response.content)))
        response.content = b""
    return response


class Door:
    """Gives each request an id, takes both spellings of an address, and turns faults into the right kind of answer.

    Programs are answered from here. What pages need (sessions, CSRF, messages, static files) is never theirs, and
    ten middlewares cost a hook more than its own work.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Response:
        request_id = ids.new_key()
        request.request_id = request_id  # type: ignore[attr-defined]
        with logs.of_request(request_id):
            return self.entered(request)

    def entered(self, request: HttpRequest) -> Response:
        """The answer, with the headers that every answer has."""
        self.one_spelling(request)
        # Views answer GET; whoever asks by HEAD gets the head of that.
        is_head = request.method == "HEAD"
        request.method = "GET" if is_head else request.method
        with rls.seeing(None):
            if request.path_info.startswith("/api/") or request.path_info in ("/api", "/mcp", *PROBES):
                response = self.as_problem(self.program(request))
            else:
                response = self.get_response(request)
        if request.resolver_match is not None:
            # For whoever counts requests by route: the environment is all that the server sees of this.
            request.META["team_memory.route"] = request.resolver_match.route
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        if request.path_info.startswith(PRIVATE):
            response.headers.setdefault("Cache-Control", "no-store")
        return head_of(response) if is_head else response

    def program(self, request: HttpRequest) -> Response:
        """The answer of the API, errors and all."""
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return HttpResponse(status=404)
        request.resolver_match = match
        if getattr(match.func, "is_public", False):
            with rls.seeing(rls.SERVER):
                return self.answer(request, match)
        if getattr(match.func, "is_hot", False):
            return self.answer(request, match)
        if getattr(match.func, "takes_sessions", False) and is_by_session(request):
            return self.get_response(request)
        try:
            actor = key_actor(request)
            return self.persistently(request, match, actor)
        except problems.Problem as problem:
            return problems.response(problem)
        except UnreadablePostError:
            return problems.response(problems.incomplete())
        except DatabaseAway as exc:
            return away(exc)

    def persistently(self, request: HttpRequest, match: ResolverMatch, actor: Actor) -> Response:
        """The answer, made again where another request took the same row or lock a moment before.

        Nothing of the lost attempt is left: its transaction was rolled back. The second one finds the other's row.
        """
        if request.method in ("POST", "PUT", "PATCH", "DELETE"):
            with suppress(RequestDataTooBig):
                request.body  # noqa: B018 - kept, for whoever reads it a second time
        for _ in range(ATTEMPTS - 1):
            with suppress(Again):
                return bound(
                    request, actor, Tenant(pk=actor.tenant_pk), lambda: self.answer(request, match, is_last=False)
                )
        return bound(request, actor, Tenant(pk=actor.tenant_pk), lambda: self.answer(request, match))

    def answer(self, request: HttpRequest, match: ResolverMatch, *, is_last: bool = True) -> Response:
        """The view's answer, rendered: DRF renders late, and the transaction must not end before it. Raises Again."""
        try:
            response: Response = match.func(request, *match.args, **match.kwargs)
            return response.render() if isinstance(response, SimpleTemplateResponse) else response
        except Exception as exc:
            if not is_last and is_race(exc):
                raise Again from exc
            if isinstance(exc, Refused):
                request.refused = str(exc)  # type: ignore[attr-defined]
            problem = problems.from_exception(exc)
            if isinstance(exc, DatabaseAway):
                return away(exc)
            # What is no problem of the asker's is a fault of ours: Django logs it and makes the 500.
            return problems.response(problem) if problem else response_for_exception(request, exc)

    def one_spelling(self, request: HttpRequest) -> None:
        """A redirect from /x to /x/ would turn a POST into a GET, so both spellings mean the same here."""
        path = request.path_info
        if path.startswith(PROGRAMS):
            path = path.rstrip("/")
        elif not path.endswith("/") and not path.startswith("/static/") and "." not in path.rsplit("/", 1)[-1]:
            path += "/"
        # No address holds a NUL, and the database takes none.
        request.path_info = path.replace("\0", "\ufffd")

    def as_problem(self, response: Response) -> Response:
        """Django's own HTML error for a program's address becomes a problem with the same status."""
        status = response.status_code
        if status < 400 or response.headers.get("Content-Type", "").startswith("application/"):
            return response
        detail = {
            404: "There is no such address. See /api/v1/docs.",
            405: "This address does not take that method. See /api/v1/docs.",
            413: "The body is over the limit of 32 MB.",
        }.get(status, "The request could not be read.")
        code = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}.get(status, "bad_request")
        answer = problems.response(problems.server_fault() if status == 500 else problems.Problem(status, code, detail))
        if "Allow" in response.headers:
            answer["Allow"] = response.headers["Allow"]
        return answer
