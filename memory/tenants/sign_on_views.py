"""Single sign-on: a team's way in by its own provider, and the page on which that is set."""

import time
from dataclasses import asdict
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.sentences import retold, sentence
from memory.tenants import entry, oidc, saml, sign_on
from memory.tenants.access import TenantRequest, needs, public
from memory.tenants.forms import SignOnForm
from memory.tenants.leads import safe_next
from memory.tenants.middleware import client_ip
from memory.tenants.models import SignOn
from memory.tenants.proof import enter_by_sign_on, recently, say_again

_TRIPS: Final = "sign_on_trips"
_MOST_TRIPS: Final = 5
_LIFE: Final = 600
BEGUN_ELSEWHERE: Final = sentence(
    "This login was begun in another browser, under another address of this server, or over ten minutes ago."
)


@public
@require_GET
def sso(request: HttpRequest) -> HttpResponse:
    """Which team? Then to its way in."""
    slug = request.GET.get("team", "").strip().lower()
    if not slug:
        return render(request, "tenants/sso.html", {})
    if sign_on.door(slug) is None:
        problem = sentence("There is no such team, or it has no single sign-on.")
        return render(request, "tenants/sso.html", {"problem": retold(problem), "typed": slug[:60]}, status=404)
    return redirect("sso_team", slug)


@public
@require_GET
def sso_team(request: HttpRequest, slug: str) -> HttpResponse:
    """A team's own login page. One that has no single sign-on looks like one that is not there."""
    inbox = reverse("inbox", args=[slug])
    door = sign_on.door(slug)
    if door is None:
        return redirect(f"{reverse('login')}?next={inbox}")
    return render(request, "tenants/sso_team.html", {"door": door, "next": safe_next(request, default=inbox)})


@public
@require_GET
def sso_start(request: HttpRequest, slug: str) -> HttpResponse:
    """To the provider. By GET: our policy lets no form lead to another site, and a start harms nobody."""
    door = sign_on.door(slug)
    inbox = reverse("inbox", args=[slug])
    if door is None:
        return redirect(f"{reverse('login')}?next={inbox}")
    if isinstance(door.leads_to, saml.Provider):
        return redirect(f"{reverse('saml_start', args=[slug])}?{request.GET.urlencode()}")
    is_proof = "prove" in request.GET and request.user.is_authenticated
    trip = oidc.new_trip(next_page=safe_next(request, default=inbox), is_proof=is_proof)
    try:
        url = oidc.where_to(door.leads_to, trip)
    except oidc.Failed as why:
        return failed(request, door, str(why), status=502)
    entry.briefly(request)
    trips = dict(list(request.session.get(_TRIPS, {}).items())[-_MOST_TRIPS + 1 :])
    request.session[_TRIPS] = {**trips, trip.state: {"slug": slug, **asdict(trip)}}
    return redirect(url)


@public
@require_GET
def sso_callback(request: HttpRequest, slug: str) -> HttpResponse:
    """Back from the provider."""
    door = sign_on.door(slug)
    trip = _trip(request, slug)
    if door is None or trip is None or not isinstance(door.leads_to, oidc.Client):
        return failed(request, door, BEGUN_ELSEWHERE, status=400)
    if "code" not in request.GET:
        said = request.GET.get("error", "nothing")[:100]
        return failed(
            request, door, sentence("Your provider did not let you in: it says %(said)s.", said=said), status=403
        )
    try:
        claims = oidc.who(door.leads_to, trip, code=request.GET["code"], issuer=request.GET.get("iss", ""))
    except oidc.Unproven as why:
        return unproven(request, door, str(why))
    except oidc.Failed as why:
        return failed(request, door, str(why), status=502)
    return let_in(request, door, claims, next_page=trip.next, is_proof=trip.is_proof)


def let_in(
    request: HttpRequest, door: sign_on.Door, claims: oidc.Claims, *, next_page: str, is_proof: bool
) -> HttpResponse:
    """Log in whom the provider vouches for, as the team's rules say."""
    try:
        member = sign_on.arrive(door, claims, **_where(request))
    except sign_on.NotLetIn as why:
        return failed(request, door, str(why), status=403)
    if is_proof and request.user != member.user:
        return failed(
            request, door, sentence("The provider knows you as somebody else. Nothing was changed."), status=403
        )
    proved_at = claims.auth_time if claims.auth_time is not None else time.time() if is_proof else 0.0
    enter_by_sign_on(request, member.user, door.tenant_pk, proved_at=min(proved_at, time.time()))
    if is_proof:
        say_again(request)
    return redirect(next_page)


def unproven(request: HttpRequest, door: sign_on.Door, why: str) -> HttpResponse:
    """What the provider says does not hold: a line in the team's audit, and the page that says so."""
    sign_on.refused(door, why, **_where(request))
    return failed(request, door, why, status=403)


def _where(request: HttpRequest) -> dict[str, str]:
    return {"ip": client_ip(request), "request_id": str(request.request_id)}  # type: ignore[attr-defined]


def _trip(request: HttpRequest, slug: str) -> oidc.Asked | None:
    """The trip that this browser began with this state, which is used up."""
    trips = dict(request.session.get(_TRIPS, {}))
    kept: dict[str, Any] | None = trips.pop(request.GET.get("state", ""), None)
    if kept is None:
        return None
    request.session[_TRIPS] = trips
    if kept.pop("slug") != slug or time.time() - kept["at"] > _LIFE:
        return None
    return oidc.Asked(**kept)


def failed(request: HttpRequest, door: sign_on.Door | None, why: str, *, status: int) -> HttpResponse:
    """The page that says why somebody is not in."""
    return render(request, "tenants/sso_failed.html", {"door": door, "why": retold(why)}, status=status)


@require_http_methods(["GET", "POST"])
@needs("settings.manage")
@recently
def sign_on_page(request: TenantRequest, slug: str) -> HttpResponse:
    """Where single sign-on leads, and who comes in by it."""
    row = sign_on.of(request.tenant)
    typed = request.POST if request.method == "POST" else None
    is_oidc = row is not None and row.protocol == SignOn.Protocol.OIDC
    form = SignOnForm(typed, initial=shown(row) if is_oidc else {}, has_secret=is_oidc)
    came = entry.signed_on(request, str(request.tenant.pk))
    if request.method == "POST" and form.is_valid():
        wanted = sign_on.Wanted(**form.cleaned_data)
        try:
            sign_on.save(request.tenant, wanted, signed_on_at=came.at if came else 0.0, by=request.actor)
        except sign_on.Invalid as why:
            form.add_error(why.field, retold(why))
        else:
            messages.success(request, gettext("Saved. Try it, before you tell others."))
            return redirect("sign_on", slug)
    context = {
        "form": form,
        "row": row if is_oidc else None,
        "by_other": row.get_protocol_display() if row is not None and not is_oidc else "",
        "callback": sign_on.callback(slug),
        "linked": sign_on.identities(request.tenant).count(),
        "is_owner": request.actor.role == "owner",
    }
    return render(request, "tenants/sign_on.html", context, status=422 if request.method == "POST" else 200)


def shown(row: SignOn | None) -> dict[str, Any]:
    """What is set, as a form shows it."""
    if row is None:
        return {}
    names = ("issuer", "client_id", "sso_url", "role", "is_required")
    pieces = {"domains": row.domains.replace(" ", ", "), "certificates": "".join(row.certificates)}
    return {**{name: getattr(row, name) for name in names}, **pieces}


@require_POST
@needs("settings.manage")
@recently
def sign_on_remove(request: TenantRequest, slug: str) -> HttpResponse:
    sign_on.remove(request.tenant, by=request.actor)
    messages.success(request, gettext("Nobody comes in by single sign-on any more."))
    return redirect("sign_on", slug)


@require_POST
@needs("member.manage")
@recently
def member_unlink(request: TenantRequest, slug: str, member_id: str) -> HttpResponse:
    """Forget who a member is at the provider."""
    member = get_object_or_404(request.tenant.members.current(), public_id=member_id)
    if sign_on.unlink(member, by=request.actor):
        messages.success(
            request,
            gettext("%(handle)s is linked anew, by their address, when they next come.") % {"handle": member.handle},
        )
    return redirect("members", slug)
