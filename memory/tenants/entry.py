"""How a browser got in, and what that opens.

Single sign-on speaks for one team alone: whoever decides where it leads could come in as any of the team's members. So
a browser that came by nothing else is confined to that team, and can't change how its person logs in.
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.utils import timezone

from memory.tenants.people import Membership, teams_of

_SIGNED_ON: Final = "signed_on"
_CONFINED: Final = "confined"
_BEFORE_LOGIN: Final = 900


@dataclass(frozen=True)
class SignedOn:
    """A login by a team's single sign-on: when it was, and when the provider last asked who is there (0: it does not
    say). In seconds since 1970.
    """

    at: float = 0.0
    proved_at: float = 0.0


def briefly(request: HttpRequest) -> None:
    """What a browser keeps that has not got in yet is kept for a quarter of an hour, not for a login's fortnight."""
    if not request.user.is_authenticated:
        request.session.set_expiry(_BEFORE_LOGIN)


def by_own(request: HttpRequest) -> None:
    """The person came by a password, a passkey or a link: all their teams are open."""
    request.session.pop(_CONFINED, None)


def by_sign_on(request: HttpRequest, tenant_pk: str, *, proved_at: float, is_confined: bool) -> None:
    """The person came by a team's single sign-on."""
    kept = dict(request.session.get(_SIGNED_ON, {}))
    kept[tenant_pk] = asdict(SignedOn(timezone.now().timestamp(), proved_at))
    request.session[_SIGNED_ON] = kept
    if is_confined:
        request.session[_CONFINED] = True


def is_confined(request: HttpRequest) -> bool:
    """Whether this browser came by single sign-on alone."""
    return bool(request.session.get(_CONFINED))


def signed_on(request: HttpRequest, tenant_pk: str) -> SignedOn | None:
    """The login by this team's single sign-on, or None."""
    kept: dict[str, Any] | None = request.session.get(_SIGNED_ON, {}).get(str(tenant_pk))
    return SignedOn(**kept) if kept else None


def opens(request: HttpRequest, tenant_pk: str) -> bool:
    """Whether a member's browser may see this team."""
    return not is_confined(request) or signed_on(request, tenant_pk) is not None


def teams(request: HttpRequest) -> list[Membership]:
    """The teams of this person that the browser may see, in order of their slug."""
    return [team for team in teams_of(str(request.user.pk)) if opens(request, str(team.tenant.pk))]
