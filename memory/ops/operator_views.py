"""Pages of whoever runs the server: its teams, outside of any team. To everybody else there is nothing here."""

from collections.abc import Callable
from datetime import date
from functools import wraps
from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.ops import export, teams
from memory.tenants import entry
from memory.tenants.access import public
from memory.tenants.middleware import ask_to_log_in, client_ip
from memory.tenants.people import InvalidTeam
from memory.tenants.proof import recently

View = TypeVar("View", bound=Callable[..., Any])
LINES = 100


def for_operators(view: View) -> View:
    """Decorator: an operator who came in by their own. A team's single sign-on is the team's word, not the server's."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user: Any = request.user
        if not user.is_authenticated:
            return ask_to_log_in(request)
        if not user.is_operator or entry.is_confined(request):
            raise Http404
        return view(request, *args, **kwargs)

    return public(guarded)  # type: ignore[return-value]


class TeamForm(forms.Form):
    """A new team."""

    name = forms.CharField(
        max_length=120, label=gettext_lazy("Name"), help_text=gettext_lazy("As its people call it, e.g. Acme payments.")
    )
    slug = forms.CharField(
        max_length=60, label=gettext_lazy("Short name"), help_text=gettext_lazy("Stands in addresses: a-z, 0-9 and -.")
    )
    owner = forms.EmailField(
        max_length=254, label=gettext_lazy("E-mail of its owner"), help_text=gettext_lazy("They invite the others.")
    )


def _by(request: HttpRequest) -> teams.Operator:
    user: Any = request.user
    request_id: str = request.request_id  # type: ignore[attr-defined]
    return teams.Operator("operator", user.email, str(user.pk), client_ip(request), request_id)


def _team(request: HttpRequest, slug: str) -> teams.Team:
    found = teams.one(str(request.user.pk), slug)
    if found is None:
        raise Http404
    return found


def _text(request: HttpRequest, name: str) -> str:
    return request.GET.get(name, "").replace("\0", "").strip()[:200]


@for_operators
@require_GET
def team_list(request: HttpRequest) -> HttpResponse:
    words, after = _text(request, "q"), _text(request, "after")
    found = teams.listed(str(request.user.pk), words=words, after=after, most=teams.PAGE + 1)
    shown = found[: teams.PAGE]
    context = {
        "teams": shown,
        "q": words,
        "after": after,
        "next": shown[-1].slug if len(found) > teams.PAGE else "",
        "operators": teams.operators(),
    }
    return render(request, "operator/teams.html", context)


@for_operators
@require_http_methods(["GET", "POST"])
@recently
def team_new(request: HttpRequest) -> HttpResponse:
    """A POST makes the team and shows the owner's login link, once."""
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        asked = form.cleaned_data
        try:
            made = teams.make(asked["slug"], name=asked["name"], owner=asked["owner"], by=_by(request))
        except InvalidTeam as why:
            form.add_error("slug" if "slug" in str(why) else "owner", str(why))
        except teams.Refused as why:
            form.add_error("slug", str(why))
        else:
            return render(request, "operator/made.html", {"made": made})
    return render(request, "operator/new.html", {"form": form}, status=422 if request.method == "POST" else 200)


@for_operators
@require_GET
def team_page(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, _team(request, slug))


def _page(request: HttpRequest, team: teams.Team, *, problem: str = "", status: int = 200) -> HttpResponse:
    context = {
        "team": team,
        "owners": teams.owners_of(team.pk),
        "grace": settings.DELETE_GRACE_DAYS,
        "contact": settings.CONTACT,
        "problem": problem,
    }
    return render(request, "operator/team.html", context, status=status)


@for_operators
@require_POST
@recently
def team_suspend(request: HttpRequest, slug: str) -> HttpResponse:
    reason = request.POST.get("reason", "").replace("\0", "").strip()[:200]
    return _done(
        request,
        slug,
        lambda team: teams.suspend(team, by=_by(request), reason=reason),
        gettext("Suspended. Nothing was deleted."),
    )


@for_operators
@require_POST
@recently
def team_resume(request: HttpRequest, slug: str) -> HttpResponse:
    return _done(
        request, slug, lambda team: teams.resume(team, by=_by(request)), gettext("Resumed. What clients kept comes in.")
    )


@for_operators
@require_POST
@recently
def team_keep(request: HttpRequest, slug: str) -> HttpResponse:
    said = gettext("The deletion is taken back. The team stays suspended until you resume it.")
    return _done(request, slug, lambda team: teams.keep(team, by=_by(request)), said)


@for_operators
@require_POST
@recently
def team_delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Marks it: it is suspended now and goes after the days in which that can be taken back."""
    team = _team(request, slug)
    if request.POST.get("slug", "").strip() != team.slug:
        return _page(
            request,
            team,
            problem=gettext("Type %(slug)s to delete it. Nothing was changed.") % {"slug": team.slug},
            status=422,
        )
    return _done(
        request, slug, lambda one: teams.mark(one, by=_by(request)), gettext("Marked. Until it goes you can keep it.")
    )


def _done(request: HttpRequest, slug: str, change: Callable[[teams.Team], Any], said: str) -> HttpResponse:
    team = _team(request, slug)
    try:
        change(team)
    except teams.Refused as why:
        return _page(request, team, problem=str(why), status=409)
    messages.success(request, said)
    return redirect("operator_team", slug)


@for_operators
@require_POST
@recently
def team_export(request: HttpRequest, slug: str) -> HttpResponseBase:
    """All of the team as a zip, streamed."""
    team = _team(request, slug)
    teams.exported(team, by=_by(request))
    response = StreamingHttpResponse(export.streamed(team), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{team.slug}-{date.today().isoformat()}.zip"'
    return response


@for_operators
@require_GET
def log(request: HttpRequest) -> HttpResponse:
    """What operators did, the latest first."""
    before = forms.UUIDField(required=False)
    try:
        asked = before.clean(_text(request, "before"))
    except forms.ValidationError:
        raise Http404 from None
    lines = teams.logged(str(request.user.pk), before=asked and str(asked), most=LINES + 1)
    shown = lines[:LINES]
    context = {"lines": shown, "next": shown[-1].pk if len(lines) > LINES else ""}
    return render(request, "operator/log.html", context)
