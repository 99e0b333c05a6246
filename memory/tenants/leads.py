"""Where a person is led while they get in: to their code where they have one, then to where they wanted."""

import time
from typing import Any, Final

from django.contrib.auth import login as open_session
from django.http import HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from memory.tenants import entry, factors
from memory.tenants.models import User

BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
# Who has shown a password or a link, and not yet their code.
_WAITING: Final = "awaits_code"
WAITS_FOR: Final = 600


def safe_next(request: HttpRequest, default: str = "") -> str:
    """Where to go after login: only an address of ours."""
    asked = request.POST.get("next") or request.GET.get("next") or ""
    # Beginning at the root: another word would be looked for among the names of our addresses.
    if asked.startswith("/") and url_has_allowed_host_and_scheme(
        asked, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return asked
    return default or reverse("choose")


def team_of(address: str) -> str:
    """The slug of the team whose page an address of ours is; empty where it is none."""
    try:
        match = resolve(address.split("?", 1)[0].split("#", 1)[0])
    except Resolver404:
        return ""
    return str(match.kwargs.get("slug", "")) if match.route.startswith("t/") else ""


def let_in(request: HttpRequest, user: User, *, next_page: str, by_link: bool = False) -> str:
    """Log a person in who showed a password or a link, or have their code asked first; gives where to go."""
    if not factors.asks_for_code(user):
        return enter(request, user, next_page=next_page, by_link=by_link)
    entry.briefly(request)
    request.session[_WAITING] = {"user": str(user.pk), "next": next_page, "by_link": by_link, "at": time.time()}
    return reverse("login_code")


def waiting(request: HttpRequest) -> User | None:
    """Who has yet to show their code in this browser; for ten minutes."""
    kept = request.session.get(_WAITING)
    if not kept or time.time() - kept["at"] > WAITS_FOR:
        return None
    return User.objects.filter(pk=kept["user"], is_active=True).first()


def let_in_by_code(request: HttpRequest, user: User) -> str:
    """Log in who has shown their code now; gives where to go."""
    kept: dict[str, Any] = request.session.pop(_WAITING)
    return enter(request, user, next_page=kept["next"], by_link=kept["by_link"])


def enter(request: HttpRequest, user: User, *, next_page: str, by_link: bool = False) -> str:
    """Log a person in; gives where to go."""
    request.session.pop(_WAITING, None)
    open_session(request, user, backend=BACKEND)
    if by_link:
        request.session["came_by_link"] = True
    return next_page
