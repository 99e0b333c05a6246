"""What a person sees of their own: an invitation, the sessions they are logged in with, the step-up."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import login as open_session
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.tenants import entry, factors, invitations, names, people, proof, sign_on
from memory.tenants import language as languages
from memory.tenants.access import public
from memory.tenants.forms import CodeForm, NameForm, PasswordForm, ProofForm
from memory.tenants.leads import BACKEND, safe_next, team_of
from memory.tenants.middleware import client_ip
from memory.tenants.models import User
from memory.tenants.outgoing import has_mail


@public
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Accept an invitation. Who has an account logs in as it first; who has none gives it a password here."""
    offer = invitations.peek(token)
    if offer is None:
        return render(request, "tenants/invitation.html", {"is_valid": False}, status=410)
    user: Any = request.user
    context: dict[str, Any] = {"is_valid": True, "offer": offer, "here": request.path}
    if user.is_authenticated and user.email != offer.email:
        return render(request, "tenants/invitation.html", {**context, "is_other": True}, status=409)
    if user.is_authenticated and not entry.is_confined(request):
        return _join(request, offer, user) if request.method == "POST" else _offer(request, context)
    if invitations.has_account(offer.email):
        return _offer(request, {**context, "must_log_in": True})
    return _new_account(request, offer, context)


def _offer(request: HttpRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return render(request, "tenants/invitation.html", context, status=status)


def _new_account(request: HttpRequest, offer: invitations.Offer, context: dict[str, Any]) -> HttpResponse:
    fresh = people.new_user(offer.email)
    form = PasswordForm(fresh, request.POST or None, asks_old=False, request=request)
    if request.method == "GET" or not form.is_valid():
        return _offer(request, {**context, "form": form}, status=422 if request.method == "POST" else 200)
    user = people.keep_user(fresh, form.cleaned_data["password1"])
    if user is None:
        return redirect(request.path)
    open_session(request, user, backend=BACKEND)
    return _join(request, offer, user)


def _join(request: HttpRequest, offer: invitations.Offer, user: Any) -> HttpResponse:
    request_id: str = request.request_id  # type: ignore[attr-defined]
    if invitations.accept(offer, user, ip=client_ip(request), request_id=request_id) is None:
        return render(request, "tenants/invitation.html", {"is_valid": False}, status=410)
    return redirect("inbox", offer.slug)


@public
@login_required
@require_http_methods(["GET", "POST"])
def prove(request: HttpRequest) -> HttpResponse:
    """Step-up: a password, a code or a passkey once more, then back to where the person was."""
    user: Any = request.user
    password = ProofForm(user, request.POST if "password" in request.POST else None, request=request)
    code = CodeForm(user, request.POST if "code" in request.POST else None, request=request)
    if request.method == "POST":
        if _is_proved(request, user, password, code):
            proof.remember(request)
            proof.say_again(request)
            return redirect(safe_next(request))
        if not (password.is_locked or code.is_locked):
            proof.note(request, user, "proof", outcome="refused")
    context = {
        "password": password if user.has_usable_password() else None,
        "code": code if factors.asks_for_code(user) else None,
        "has_passkey": factors.has_passkey(user),
        "door": _sign_on_of(request),
        "has_mail": has_mail(),
        "next": safe_next(request),
    }
    status = 429 if password.is_locked or code.is_locked else 422 if request.method == "POST" else 200
    return render(request, "tenants/prove.html", context, status=status)


def _is_proved(request: HttpRequest, user: Any, password: ProofForm, code: CodeForm) -> bool:
    if "credential" in request.POST:
        try:
            return bool(factors.whose_passkey(request, request.POST["credential"]) == user)
        except factors.NotAccepted as why:
            messages.error(request, str(why))
            return False
    if "code" in request.POST:
        return code.is_valid()
    return bool(user.has_usable_password()) and password.is_valid()


def _sign_on_of(request: HttpRequest) -> sign_on.Door | None:
    """The single sign-on of the team whose page asks, for who may see that team."""
    slug = team_of(safe_next(request))
    return sign_on.door(slug) if slug in [team.tenant.slug for team in entry.teams(request)] else None


@public
@login_required
@require_POST
def prove_passkey_begin(request: HttpRequest) -> HttpResponse:
    """What the browser asks its passkeys: one of this person's."""
    user: Any = request.user
    return JsonResponse(factors.ask_for_passkey(request, user))


@public
@login_required
@require_POST
def prove_link(request: HttpRequest) -> HttpResponse:
    """Mail the person a login link, which is a proof too: for who has no password, code or passkey."""
    user: Any = request.user
    request_id: str = request.request_id  # type: ignore[attr-defined]
    slug = team_of(safe_next(request)) or None
    if people.mail_own_link(user, slug=slug, ip=client_ip(request), request_id=request_id):
        messages.success(
            request, gettext("A link is on its way to %(email)s. Open it in this browser.") % {"email": user.email}
        )
    else:
        messages.error(request, gettext("No link was sent: one went a moment ago, or this server sends no mail."))
    return redirect(f"{reverse('prove')}?{urlencode({'next': safe_next(request)})}")


@public
@login_required
@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Where this person is logged in, their teams, and how they log in."""
    user: Any = request.user
    return _account(request, NameForm(initial={"name": user.name}))


def _account(request: HttpRequest, form: NameForm, *, status: int = 200) -> HttpResponse:
    user: Any = request.user
    context = {
        "form": form,
        "may_rename": _may_rename(request),
        "browsers": proof.browsers_of(user),
        "this_session": request.session.session_key,
        "memberships": entry.teams(request),
        "is_confined": entry.is_confined(request),
        "asks_for_code": factors.asks_for_code(user),
        "recovery_codes_left": factors.recovery_codes_left(user),
        "passkeys": factors.passkeys_of(user),
    }
    return render(request, "tenants/account.html", context, status=status)


def _may_rename(request: HttpRequest) -> bool:
    """A name shows in all of a person's teams: who came by one team's single sign-on changes it in no other."""
    return not entry.is_confined(request) or len(entry.teams(request)) == len(people.teams_of(str(request.user.pk)))


@public
@login_required
@require_POST
def name(request: HttpRequest) -> HttpResponse:
    """What this person is called on pages, from now on."""
    user: Any = request.user
    if not _may_rename(request):
        return render(request, "tenants/confined.html", status=403)
    form = NameForm(request.POST)
    if not form.is_valid():
        return _account(request, form, status=422)
    wanted = form.cleaned_data["name"]
    if wanted != user.name:
        before = names.rename(user, wanted)
        proof.note(request, user, "name.change", before=before, after=wanted)
    messages.success(
        request,
        gettext("Pages call you %(name)s now.") % {"name": wanted}
        if wanted
        else gettext("Pages call you by your handle now."),
    )
    return redirect("account")


@public
@login_required
@require_POST
def logout_everywhere(request: HttpRequest) -> HttpResponse:
    """End all other sessions of this person."""
    user: Any = request.user
    ended = proof.log_out_everywhere(user, but=request.session.session_key)
    proof.note(request, user, "session.end_all")
    said = ngettext("Logged out in %(ended)s other place.", "Logged out in %(ended)s other places.", ended)
    messages.success(request, said % {"ended": ended})
    return redirect(reverse("account"))


@public
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """What pages speak: to this person wherever they log in, and in this browser before that."""
    code, user = request.POST.get("language", ""), request.user
    answer = redirect(safe_next(request))
    # Nobody is offered one that is not on the list: then the page stays as it is.
    if code and not languages.is_known(code):
        return answer
    if isinstance(user, User) and user.language != code:
        languages.choose(user, code)
        proof.note(request, user, "language.change", after=code or "by browser")
    languages.remember(answer, code)
    return answer
