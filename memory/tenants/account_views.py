"""What a person sees of their own: an invitation, the sessions they are logged in with, the step-up."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login as open_session
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.tenants import invitations, people, proof
from memory.tenants.access import public
from memory.tenants.forms import PasswordForm, ProofForm
from memory.tenants.leads import BACKEND, safe_next
from memory.tenants.middleware import client_ip


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
    if user.is_authenticated:
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
    """Step-up: the password once more, then back to where the person was."""
    user: Any = request.user
    form = ProofForm(user, request.POST or None, request=request)
    if request.method == "POST" and user.has_usable_password() and form.is_valid():
        proof.remember(request)
        messages.success(request, "Thank you. Now do it again: nothing was changed yet.")
        return redirect(safe_next(request))
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/prove.html", {"form": form, "next": safe_next(request)}, status=status)


@public
@login_required
@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Where this person is logged in, their teams, their password."""
    user: Any = request.user
    context = {
        "browsers": proof.browsers_of(user),
        "this_session": request.session.session_key,
        "memberships": people.teams_of(str(user.pk)),
    }
    return render(request, "tenants/account.html", context)


@public
@login_required
@require_POST
def logout_everywhere(request: HttpRequest) -> HttpResponse:
    """End all other sessions of this person."""
    user: Any = request.user
    ended = proof.log_out_everywhere(user, but=request.session.session_key)
    request_id: str = request.request_id  # type: ignore[attr-defined]
    people.record_in_teams(user, "session.end_all", ip=client_ip(request), request_id=request_id)
    messages.success(request, f"Logged out in {ended} other place{'' if ended == 1 else 's'}.")
    return redirect(reverse("account"))
