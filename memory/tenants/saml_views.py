"""Single sign-on by SAML 2.0: a team's way in, and the page on which it is set."""

import time
from dataclasses import asdict
from typing import Any, Final

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.sentences import retold, sentence
from memory.tenants import arrivals, entry, oidc, saml, sign_on
from memory.tenants.access import TenantRequest, needs, public
from memory.tenants.forms import SamlForm
from memory.tenants.leads import safe_next
from memory.tenants.models import SignOn
from memory.tenants.proof import recently
from memory.tenants.sign_on_views import BEGUN_ELSEWHERE, failed, let_in, shown, unproven

_TRIPS: Final = "saml_trips"
_MOST_TRIPS: Final = 5
_LIFE: Final = 600
# The answer in base64, percent signs of the form and all.
_MOST_POSTED: Final = 2 * saml.MOST_BYTES
_TOO_OFTEN: Final = sentence("Too many answers from where you are did not hold. Try again in 15 minutes.")
_NOT_INSTALLED: Final = sentence(
    "SAML is not installed on this server: whoever runs it does that by %(install)s.", install=saml.INSTALL
)


def _provider(door: sign_on.Door | None) -> saml.Provider | None:
    return door.leads_to if door is not None and isinstance(door.leads_to, saml.Provider) else None


@public
@require_GET
def saml_start(request: HttpRequest, slug: str) -> HttpResponse:
    """To the provider. By GET, as OpenID Connect's."""
    door = sign_on.door(slug)
    inbox = reverse("inbox", args=[slug])
    provider = _provider(door)
    if door is None or provider is None:
        return redirect(f"{reverse('login')}?next={inbox}")
    if not saml.is_installed():
        return failed(request, door, _NOT_INSTALLED, status=502)
    is_proof = "prove" in request.GET and request.user.is_authenticated
    trip = saml.new_trip(next_page=safe_next(request, default=inbox), is_proof=is_proof)
    entry.briefly(request)
    trips = dict(list(request.session.get(_TRIPS, {}).items())[-_MOST_TRIPS + 1 :])
    request.session[_TRIPS] = {**trips, trip.id: {"slug": slug, **asdict(trip)}}
    return redirect(saml.where_to(provider, door.service, trip))


@public
@require_GET
def saml_metadata(request: HttpRequest, slug: str) -> HttpResponse:
    """Who a team is to its provider. Made of the address alone: it does not tell whether there is such a team."""
    if not saml.is_installed():
        return failed(request, None, _NOT_INSTALLED, status=404)
    made = saml.description(sign_on.service(slug))
    return HttpResponse(made, content_type="application/samlmetadata+xml")


@csrf_exempt
@public
@require_POST
def saml_acs(request: HttpRequest, slug: str) -> HttpResponse:
    """What the provider's page posts: checked, put down, and taken by the browser at the next address.

    From another site no cookie comes along, so neither a session nor a CSRF token could be asked for here: what is
    posted proves itself by its signature, and is of use only to the browser that asked.
    """
    if int(request.META.get("CONTENT_LENGTH") or 0) > _MOST_POSTED:
        return failed(request, None, sentence("That is more than a provider sends."), status=413)
    door = sign_on.door(slug)
    provider = _provider(door)
    if door is None or provider is None:
        return failed(request, None, BEGUN_ELSEWHERE, status=400)
    if not saml.is_installed():
        return failed(request, door, _NOT_INSTALLED, status=502)
    # As passwords are: by team and address, so that nobody keeps the team out elsewhere.
    guessed = {"username": f"saml {slug}"}
    if AxesProxyHandler.is_locked(request, guessed):
        answer = failed(request, door, _TOO_OFTEN, status=429)
        answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
        return answer
    try:
        said = saml.checked(provider, door.service, request.POST.get("SAMLResponse", ""))
        arrivals.put_down(door.tenant_pk, provider, said, request.POST.get("RelayState", ""))
    except oidc.Unproven as why:
        AxesProxyHandler.user_login_failed(__name__, guessed, request)
        return unproven(request, door, str(why))
    except oidc.Failed as why:
        return failed(request, door, str(why), status=403)
    return HttpResponse(status=303, headers={"Location": reverse("saml_finish", args=[slug])})


@public
@require_GET
def saml_finish(request: HttpRequest, slug: str) -> HttpResponse:
    """Back from the provider, with the session again."""
    door = sign_on.door(slug)
    provider = _provider(door)
    trips = _trips(request, slug)
    taken = arrivals.take(door.tenant_pk, provider, trips) if door and provider and trips else None
    if door is None or taken is None:
        return failed(request, door, BEGUN_ELSEWHERE, status=400)
    trip, claims = taken
    request.session[_TRIPS] = {name: one for name, one in request.session[_TRIPS].items() if name != trip.id}
    if trip.is_proof and (claims.auth_time or 0.0) < trip.at - oidc.LEEWAY:
        return unproven(request, door, sentence("The provider did not ask who is there. Nothing was changed."))
    return let_in(request, door, claims, next_page=trip.next, is_proof=trip.is_proof)


def _trips(request: HttpRequest, slug: str) -> list[saml.Asked]:
    """The trips to this team's provider that this browser began within ten minutes."""
    kept: list[dict[str, Any]] = list(request.session.get(_TRIPS, {}).values())
    mine = [one for one in kept if one["slug"] == slug and time.time() - one["at"] <= _LIFE]
    return [saml.Asked(**{name: value for name, value in one.items() if name != "slug"}) for one in mine]


@require_http_methods(["GET", "POST"])
@needs("settings.manage")
@recently
def saml_page(request: TenantRequest, slug: str) -> HttpResponse:
    """Where single sign-on by SAML leads."""
    row = sign_on.of(request.tenant)
    is_saml = row is not None and row.protocol == SignOn.Protocol.SAML
    if not saml.is_installed():
        return render(request, "tenants/sign_on_saml.html", {"install": saml.INSTALL, "left": is_saml})
    form = SamlForm(request.POST if request.method == "POST" else None, initial=shown(row) if is_saml else {})
    if request.method == "POST" and form.is_valid() and _saved(request, form):
        AxesProxyHandler.reset_attempts(username=f"saml {slug}")
        messages.success(request, gettext("Saved. Try it, before you tell others."))
        return redirect("sign_on_saml", slug)
    context = {
        "form": form,
        "row": row if is_saml else None,
        "by_other": row.get_protocol_display() if row is not None and not is_saml else "",
        "certificates": [saml.shown(one) for one in row.certificates] if row is not None else [],
        "service": sign_on.service(slug),
        "linked": sign_on.identities(request.tenant).count(),
        "is_owner": request.actor.role == "owner",
    }
    return render(request, "tenants/sign_on_saml.html", context, status=422 if request.method == "POST" else 200)


def _saved(request: TenantRequest, form: SamlForm) -> bool:
    """Whether what was typed could be saved; else the form says what can't."""
    typed = form.cleaned_data
    came = entry.signed_on(request, str(request.tenant.pk))
    try:
        if typed["metadata"].strip():
            provider = saml.described(typed["metadata"])
        else:
            provider = saml.checked_provider(typed["issuer"], typed["sso_url"], typed["certificates"])
        wanted = sign_on.Wanted("", "", "", typed["domains"], typed["role"], typed["is_required"], provider)
        sign_on.save(request.tenant, wanted, signed_on_at=came.at if came else 0.0, by=request.actor)
    except (saml.Unreadable, sign_on.Invalid) as why:
        form.add_error(why.field, retold(why))
        return False
    return True
