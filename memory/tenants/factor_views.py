"""Codes and passkeys: getting in by them, and what a person keeps of them in their account."""

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from memory.tenants import entry, factors
from memory.tenants.access import public
from memory.tenants.forms import CodeForm, FirstCodeForm
from memory.tenants.leads import enter, let_in_by_code, safe_next, waiting
from memory.tenants.proof import always_recently, note, own_only, recently

_SECRET: Final = "new_app_secret"  # noqa: S105 - its name in the session


def own_change(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of what a person changes of their own ways in: a POST, behind step-up."""
    return public(login_required(require_POST(own_only(recently(view)))))


@public
@require_http_methods(["GET", "POST"])
def login_code(request: HttpRequest) -> HttpResponse:
    """The second step of a login by password or link."""
    user = waiting(request)
    if user is None:
        return redirect("login")
    before = factors.recovery_codes_left(user)
    form = CodeForm(user, request.POST or None, request=request)
    if request.method == "POST" and form.is_valid():
        left = factors.recovery_codes_left(user)
        if left < before:
            note(request, user, "factor.use_recovery_code", f"{left} left")
            words = ngettext(
                "%(left)s recovery code is left. Make new ones under your account.",
                "%(left)s recovery codes are left. Make new ones under your account.",
                left,
            )
            messages.warning(request, words % {"left": left})
        return redirect(let_in_by_code(request, user))
    if request.method == "POST" and not form.is_locked:
        note(request, user, "login.code", outcome="refused")
    status = 429 if form.is_locked else 422 if request.method == "POST" else 200
    context = {"form": form, "has_passkey": factors.has_passkey(user)}
    answer = render(request, "tenants/code.html", context, status=status)
    if form.is_locked:
        answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer


@public
@require_POST
def login_passkey_begin(request: HttpRequest) -> HttpResponse:
    """What the browser asks its passkeys; any of this site will do."""
    entry.briefly(request)
    return JsonResponse(factors.ask_for_passkey(request))


@public
@require_POST
def login_passkey(request: HttpRequest) -> HttpResponse:
    """A login by a passkey, which is two factors by itself: the device, and who unlocked it."""
    try:
        user = factors.whose_passkey(request, request.POST.get("credential", ""))
    except factors.NotAccepted as why:
        messages.error(request, str(why))
        return redirect("login")
    return redirect(enter(request, user, next_page=safe_next(request)))


@public
@login_required
@require_http_methods(["GET", "POST"])
@own_only
@always_recently
def codes(request: HttpRequest) -> HttpResponse:
    """Turn codes on: the secret to scan or type, and a first code. Then the recovery codes, once."""
    user: Any = request.user
    if factors.asks_for_code(user):
        return redirect("account")
    form = FirstCodeForm(request.POST or None)
    secret = request.session.get(_SECRET) or factors.new_secret()
    request.session[_SECRET] = secret
    if request.method == "POST" and form.is_valid():
        made = factors.turn_on(user, secret, form.cleaned_data["code"])
        if made is not None:
            del request.session[_SECRET]
            note(request, user, "factor.codes_on")
            return render(request, "tenants/recovery_codes.html", {"codes": made, "is_first": True})
        form.add_error("code", gettext("This is not the code of this secret. Is the clock of the device right?"))
    # Made here from a secret of ours: nothing in it comes from a person.
    qr_code = mark_safe(factors.qr_code(user, secret))  # noqa: S308
    context = {"form": form, "qr_code": qr_code, "secret": secret}
    return render(request, "tenants/codes.html", context, status=422 if request.method == "POST" else 200)


@own_change
def codes_off(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if factors.turn_off(user):
        note(request, user, "factor.codes_off")
        messages.success(request, gettext("Logging in asks for no code any more."))
    return redirect("account")


@own_change
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """New recovery codes, shown once; the former ones end."""
    user: Any = request.user
    if not factors.asks_for_code(user):
        return redirect("account")
    made = factors.new_recovery_codes(user)
    note(request, user, "factor.new_recovery_codes")
    return render(request, "tenants/recovery_codes.html", {"codes": made})


@own_change
def passkey_begin(request: HttpRequest) -> HttpResponse:
    """What the browser is asked to make."""
    user: Any = request.user
    return JsonResponse(factors.ask_for_new_passkey(request, user))


@own_change
def passkey_add(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    try:
        made = factors.add_passkey(request, user, request.POST.get("credential", ""), name=request.POST.get("name", ""))
    except factors.NotAccepted as why:
        note(request, user, "factor.add_passkey", outcome="refused")
        messages.error(request, str(why))
    else:
        note(request, user, "factor.add_passkey", made.name)
        messages.success(request, gettext("The passkey is kept: log in with it from now on."))
    return redirect("account")


@own_change
def passkey_rename(request: HttpRequest, passkey_id: int) -> HttpResponse:
    user: Any = request.user
    name = request.POST.get("name", "").replace("\0", "")
    before = factors.rename_passkey(user, passkey_id, name)
    if before is None:
        messages.error(request, gettext("This passkey is not there any more."))
    else:
        note(request, user, "factor.rename_passkey", f"{before} is now {name.strip()[:60]}")
    return redirect("account")


@own_change
def passkey_remove(request: HttpRequest, passkey_id: int) -> HttpResponse:
    user: Any = request.user
    name = factors.remove_passkey(user, passkey_id)
    if name is None:
        messages.error(request, gettext("This passkey is not there any more."))
    else:
        note(request, user, "factor.remove_passkey", name)
        messages.success(request, gettext("This passkey opens nothing any more."))
    return redirect("account")
