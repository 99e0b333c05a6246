"""Step-up: what can't be undone, or lets others in, asks again who is there unless that was proved a moment ago."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login as open_session
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from memory import problems
from memory.tenants import entry, keys, people
from memory.tenants.leads import BACKEND
from memory.tenants.middleware import client_ip, path_of
from memory.tenants.models import Browser, User

FRESH_FOR: Final = timedelta(minutes=10)
_PROVED: Final = "proved_at"
View = TypeVar("View", bound=Callable[..., Any])


def remember(request: HttpRequest) -> None:
    """This browser has just proved who sits at it."""
    request.session[_PROVED] = timezone.now().timestamp()


def is_fresh(request: HttpRequest) -> bool:
    """Whether that was proved within ten minutes: by something of the person's own, or for this page's team by its
    single sign-on.
    """
    proved_at = float(request.session.get(_PROVED, 0))
    tenant = getattr(request, "tenant", None)
    signed_on = entry.signed_on(request, str(tenant.pk)) if tenant else None
    latest = max(proved_at, signed_on.proved_at if signed_on else 0.0)
    return timezone.now().timestamp() - latest < FRESH_FOR.total_seconds()


def say_again(request: HttpRequest) -> None:
    """Thank for the proof. By the tag `again` app.js gives the form back what was typed into it before."""
    messages.success(request, gettext("Thank you. Now do it again: nothing was changed yet."), extra_tags="again")


def recently(view: View) -> View:
    """Decorator of a page: a POST needs a recent proof; without one the person is asked, and comes back."""
    return _guarded(view, ("POST",))


def always_recently(view: View) -> View:
    """The same of a page that gives much away when it is only read."""
    return _guarded(view, ("GET", "POST"))


def _guarded(view: View, methods: tuple[str, ...]) -> View:
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return view(request, *args, **kwargs) if request.method not in methods or is_fresh(request) else ask(request)

    guarded.needs_proof = True  # type: ignore[attr-defined]
    return guarded  # type: ignore[return-value]


def require_fresh(request: Any) -> None:
    """The same of a program's address that a browser's session opens too; a key proves itself. Raises Problem 403."""
    if request.actor.kind == "member" and not is_fresh(request):
        detail = f"Prove who you are first: open {settings.PUBLIC_URL}{reverse('prove')} in this browser."
        raise problems.Problem(403, "proof_needed", detail)


def own_only(view: View) -> View:
    """Decorator of a page of the account: not for a browser that came by a team's single sign-on alone."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if entry.is_confined(request):
            return render(request, "tenants/confined.html", status=403)
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]


def ask(request: HttpRequest) -> HttpResponse:
    """To the page that asks who is there, and from there back."""
    here = request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "/"
    asking = f"{reverse('prove')}?{urlencode({'next': path_of(here)})}"
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": asking})
    if problems.wants_json(request):
        return JsonResponse({"ask": asking}, status=403)
    return redirect(asking)


def _entered(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:
    # Django's own signal: every way in sends it, those of other packages too.
    request.session.set_expiry(None)
    if not getattr(request, "is_sign_on", False):
        remember(request)
        entry.by_own(request)
    remember_browser(request, user)


def enter_by_sign_on(request: HttpRequest, user: User, tenant_pk: str, *, proved_at: float) -> None:
    """Log a person in whom their team's provider vouches for; who came by nothing else sees that team alone."""
    is_own = request.user.is_authenticated and request.user.pk == user.pk and not entry.is_confined(request)
    request.is_sign_on = True  # type: ignore[attr-defined]
    open_session(request, user, backend=BACKEND)
    entry.by_sign_on(request, tenant_pk, proved_at=proved_at, is_confined=not is_own)


def remember_browser(request: HttpRequest, user: Any = None) -> None:
    """Put this session on the person's list."""
    if request.session.session_key is None:
        request.session.save()
    Browser.objects.update_or_create(
        session_key=request.session.session_key,
        defaults={
            "user": user or request.user,
            "ip": client_ip(request),
            "agent": request.META.get("HTTP_USER_AGENT", "")[:300],
            "at": timezone.now(),
        },
    )


user_logged_in.connect(_entered, dispatch_uid="memory.tenants.proof")


def note(
    request: HttpRequest, user: User, action: str, after: str = "", *, before: str = "", outcome: str = "done"
) -> None:
    """What a person did to their account, or was refused: one row in the audit of each of their teams."""
    request_id: str = request.request_id  # type: ignore[attr-defined]
    ip = client_ip(request)
    people.record_in_teams(user, action, before=before, after=after, outcome=outcome, ip=ip, request_id=request_id)


def browsers_of(user: User) -> list[Browser]:
    """Where this person is logged in, the latest first; sessions that ended are forgotten."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    user.browsers.exclude(session_key__in=alive).delete()
    return list(user.browsers.order_by("-at", "-id"))


def log_out_everywhere(user: User, *, but: str | None = None) -> int:
    """End this person's sessions, but for the one named, and the login links that could begin another; gives how many
    sessions.
    """
    keys.end_links(str(user.pk))
    doomed = user.browsers.exclude(session_key=but or "")
    ended, _ = Session.objects.filter(session_key__in=doomed.values("session_key")).delete()
    doomed.delete()
    return ended
