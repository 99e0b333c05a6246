"""Step-up: what can't be undone, or lets others in, asks again who is there unless that was proved a moment ago."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from memory.tenants.middleware import client_ip, path_of
from memory.tenants.models import Browser, User

FRESH_FOR: Final = timedelta(minutes=10)
_PROVED: Final = "proved_at"
View = TypeVar("View", bound=Callable[..., Any])


def remember(request: HttpRequest) -> None:
    """This browser has just proved who sits at it."""
    request.session[_PROVED] = timezone.now().timestamp()


def is_fresh(request: HttpRequest) -> bool:
    """Whether that was proved within ten minutes."""
    return timezone.now().timestamp() - float(request.session.get(_PROVED, 0)) < FRESH_FOR.total_seconds()


def recently(view: View) -> View:
    """Decorator of a page: a POST needs a recent proof; without one the person is asked, and comes back."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method != "POST" or is_fresh(request):
            return view(request, *args, **kwargs)
        here = request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "/"
        ask = f"{reverse('prove')}?{urlencode({'next': path_of(here)})}"
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(status=204, headers={"HX-Redirect": ask})
        return redirect(ask)

    guarded.needs_proof = True  # type: ignore[attr-defined]
    return guarded  # type: ignore[return-value]


def _entered(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:
    # Django's own signal: every way in sends it, those of other packages too.
    remember(request)
    remember_browser(request, user)


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


def browsers_of(user: User) -> list[Browser]:
    """Where this person is logged in, the latest first; sessions that ended are forgotten."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    user.browsers.exclude(session_key__in=alive).delete()
    return list(user.browsers.order_by("-at", "-id"))


def log_out_everywhere(user: User, *, but: str | None = None) -> int:
    """End this person's sessions, but for the one named; gives how many."""
    doomed = user.browsers.exclude(session_key=but or "")
    ended, _ = Session.objects.filter(session_key__in=doomed.values("session_key")).delete()
    doomed.delete()
    return ended
