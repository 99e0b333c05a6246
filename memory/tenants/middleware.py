"""The tenant's transaction: whose request it is, and one bound transaction around it."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig
from django.db import DataError, connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils.translation import gettext

from memory import problems
from memory.tenants import audit, entry, limits, people, rls
from memory.tenants.access import Actor, Refused, member_actor
from memory.tenants.keys import digest, is_well_formed
from memory.tenants.models import Member, SignOn, Tenant

Response = HttpResponseBase
Next = Callable[[HttpRequest], Response]


class TenantTransaction:
    """A page's request: one transaction, bound to one tenant; any answer from 400 up rolls it back.

    ATOMIC_REQUESTS leaves out middleware and late rendering, and a plain `atomic()` would commit half a refused write.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Response:
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return self.get_response(request)
        if getattr(match.func, "is_public", False) or request.path_info.startswith("/static/"):
            with rls.seeing(rls.SERVER):
                return self.get_response(request)
        if request.path_info.startswith("/api/"):
            return self.by_session(request)
        return self.as_member(request, str(match.kwargs.get("slug", "")))

    def by_session(self, request: HttpRequest) -> Response:
        """An API address asked by a browser: its team is named in X-Team, or the only one that the user has."""
        if not request.user.is_authenticated:
            return problems.response(problems.unauthenticated())
        slugs = [team.tenant.slug for team in entry.teams(request)]
        asked = request.headers.get("X-Team", slugs[0] if len(slugs) == 1 else "")
        if asked not in slugs:
            detail = "Name one of your teams by its slug in the header X-Team."
            return problems.response(problems.Problem(400, "team_needed", detail))
        return self.as_member(request, asked)

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        """What a view raised, before Django makes a page of it."""
        if isinstance(exc, Refused):
            request.refused = str(exc)  # type: ignore[attr-defined]
        problem = problems.from_exception(exc)
        if problem is None:
            return None
        if problems.wants_json(request):
            return problems.response(problem)
        if isinstance(exc, problems.Problem | Refused | RequestDataTooBig | UnreadablePostError | DataError):
            return error_page(request, problem)
        return None

    def as_member(self, request: HttpRequest, slug: str) -> Response:
        if not request.user.is_authenticated:
            return ask_to_log_in(request)
        found = membership(str(request.user.pk), slug)
        if found is None:
            for team in people.suspended_teams_of(str(request.user.pk)):
                if team.tenant.slug == slug:
                    return suspended_page(request, team)
            # A team that exists and one that does not look the same to a stranger.
            return error_page(request, problems.Problem(404, "not_found", gettext("There is nothing at this address.")))
        tenant_pk, member_pk = found
        if not entry.opens(request, tenant_pk):
            return ask_to_log_in(request)
        with rls.seeing(rls.SERVER), rls.tenant_scope(tenant_pk):
            member = Member.objects.select_related("tenant__sign_on", "user").get(pk=member_pk)
        sign_on: SignOn | None = getattr(member.tenant, "sign_on", None)
        must = entry.is_confined(request) or (sign_on is not None and sign_on.needs(member))
        if must and not has_signed_on(request, sign_on):
            return ask_to_log_in(request, at=reverse("sso_team", args=[slug]))
        request.member = member  # type: ignore[attr-defined]
        actor = member_actor(member, ip=client_ip(request), request_id=request.request_id)  # type: ignore[attr-defined]
        return bound(request, actor, member.tenant, lambda: self.get_response(request))


def bound(request: HttpRequest, actor: Actor, tenant: Tenant, answer: Callable[[], Response]) -> Response:
    """The answer, made in a transaction bound to the tenant. A refusal is audited in a transaction of its own."""
    request.tenant = tenant  # type: ignore[attr-defined]
    request.actor = actor  # type: ignore[attr-defined]
    with rls.seeing(actor.sight):
        with rls.Work(actor.tenant_pk) as work:
            request.work = work  # type: ignore[attr-defined]
            response = answer()
            if response.status_code >= 400:
                transaction.set_rollback(True)
        if response.status_code == 403 and hasattr(request, "refused"):
            with rls.tenant_scope(actor.tenant_pk):
                audit.record(actor, request.refused, request.path_info, outcome="refused")
    return response


def client_ip(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))[:60]


def bearer(request: HttpRequest) -> bytes:
    """The SHA-256 of the presented key, let in. Raises Problem 401 where it has not the right form, and 429."""
    return entering_key(request.META)


def entering_key(environ: dict[str, Any]) -> bytes:
    """The same of a WSGI environment. A request counts once, by however many lanes and checks it passes."""
    key_hash = presented_key(environ.get("HTTP_AUTHORIZATION", ""))
    if "team_memory.admitted" not in environ:
        limits.admit(key_hash, limits.door_of(environ))
        environ["team_memory.admitted"] = True
    rls.look_for_key(key_hash)
    return key_hash


def presented_key(authorization: str) -> bytes:
    """The SHA-256 of the key in an Authorization header. Raises Problem 401 where there is none of the right form."""
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not is_well_formed(secret.strip()):
        raise problems.unauthenticated()
    return digest(secret.strip())


def key_actor(request: HttpRequest) -> Actor:
    """Whoever's key this is. Raises Problem 401."""
    presented = bearer(request)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id, key_pk, key_id, label, member_pk, role, scopes FROM key_login(%s)", [presented]
        )
        row = cursor.fetchone()
    if row is None:
        raise bad_key(presented)
    scopes = row[6] if isinstance(row[6], list) else []
    return Actor(
        "key",
        row[2],
        row[3],
        row[5],
        str(row[0]),
        str(row[4]),
        str(row[1]),
        frozenset(scopes),
        client_ip(request),
        request.request_id,  # type: ignore[attr-defined]
    )


def bad_key(presented: bytes) -> problems.Problem:
    """Why a key of the right form opens nothing: 403 where its team is suspended, else 401."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT key_is_suspended(%s)", [presented])
        is_suspended = bool(cursor.fetchone()[0])
    if is_suspended:
        return problems.suspended(settings.CONTACT)
    return problems.unauthenticated("This key is not valid: unknown, expired or revoked. Make one on the Connect page.")


def membership(user_pk: str, slug: str) -> tuple[str, str] | None:
    """Tenant and member keys of a user in the team called `slug`, or None."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, member_id FROM user_tenants(%s) WHERE slug = %s", [user_pk, slug])
        row = cursor.fetchone()
    return (str(row[0]), str(row[1])) if row else None


def has_signed_on(request: HttpRequest, sign_on: SignOn | None) -> bool:
    """Whether this browser came by the team's single sign-on since that leads where it does."""
    found = entry.signed_on(request, str(sign_on.tenant_id)) if sign_on else None
    return sign_on is not None and found is not None and found.at > sign_on.connected_at.timestamp()


def ask_to_log_in(request: HttpRequest, *, at: str = "") -> Response:
    """A redirect; for HTMX an order to leave the page, or the form would land inside a panel; for a program a 401."""
    at = at or reverse("login")
    if request.path_info.startswith("/api/"):
        detail = f"Log in first, by {settings.PUBLIC_URL}{at}"
        return problems.response(problems.Problem(401, "unauthenticated", detail))
    if request.headers.get("HX-Request") == "true":
        answer = HttpResponse(status=204)
        here = request.headers.get("HX-Current-URL", "/")
        answer["HX-Redirect"] = f"{at}?next={path_of(here)}"
        return answer
    return redirect_to_login(request.get_full_path(), login_url=at)


def path_of(url: str) -> str:
    """Only the path of an address: where to come back to must be ours."""
    try:
        path = urlsplit(url).path
    except ValueError:
        # A bracket that is not closed passes for half an address.
        return "/"
    return quote(path if path.startswith("/") and not path.startswith("//") else "/")


def error_page(request: HttpRequest, problem: problems.Problem) -> HttpResponse:
    """An error where the user looks: a piece for HTMX, a page else."""
    template = "_error.html" if request.headers.get("HX-Request") == "true" else "error.html"
    return render(request, template, {"problem": problem}, status=problem.status)


def suspended_page(request: HttpRequest, team: people.Suspended) -> HttpResponse:
    """What a member sees of a suspended team, on each of its pages."""
    if problems.wants_json(request):
        return problems.response(problems.suspended(settings.CONTACT))
    template = "_error.html" if request.headers.get("HX-Request") == "true" else "tenants/suspended.html"
    context = {"problem": problems.suspended(settings.CONTACT), "team": team, "contact": settings.CONTACT}
    return render(request, template, context, status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404: JSON for programs, a page for people."""
    problem = problems.from_exception(exception) or problems.not_found(request.path_info)
    if problems.wants_json(request):
        return problems.response(problem)
    return error_page(request, problem)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW: what happened, in our own words and on our own page."""
    if problems.wants_json(request):
        detail = "Send the page's CSRF token as X-CSRFToken, from the same site."
        return problems.response(problems.Problem(403, "csrf", detail))
    detail = gettext(
        "This form was open for too long or in another browser. Nothing was changed: load the page and try again."
    )
    return error_page(request, problems.Problem(403, "csrf", detail))
