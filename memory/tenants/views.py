"""Getting in, and letting an agent in."""

from typing import Any

from django.conf import settings
from django.contrib.auth import logout as close_session
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.tenants import connect as connecting
from memory.tenants import entry, keys, people, sign_on
from memory.tenants.access import DEFAULT_SCOPES, TenantRequest, needs, public
from memory.tenants.forms import LoginForm, PasswordForm
from memory.tenants.leads import let_in, safe_next, team_of
from memory.tenants.people import user_by_key
from memory.tenants.proof import is_fresh, log_out_everywhere, note, own_only, recently, remember_browser


@public
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    form = LoginForm(request.POST or None, request=request)
    if request.method == "POST" and form.is_valid():
        return redirect(let_in(request, form.user, next_page=safe_next(request)))
    next_page = safe_next(request, default="/")
    context = {"form": form, "next": "" if next_page == "/" else next_page, "door": sign_on.door(team_of(next_page))}
    status = 429 if form.is_locked else 422 if request.method == "POST" else 200
    answer = render(request, "tenants/login.html", context, status=status)
    if form.is_locked:
        answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer


@public
@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    close_session(request)
    return redirect("login")


@public
@require_http_methods(["GET", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """Opening the page leaves the link unused: mail scanners open every link they see."""
    found = keys.claim_link(token) if request.method == "POST" else keys.peek_link(token)
    if found is None:
        return render(request, "tenants/link.html", {"is_valid": False}, status=410)
    user = user_by_key(found.user_pk)
    if request.method == "POST":
        inbox = reverse("inbox", args=[found.tenant_slug])
        next_page = inbox if user.has_usable_password() else f"{reverse('password')}?next={inbox}"
        return redirect(let_in(request, user, next_page=next_page, by_link=True))
    context = {"is_valid": True, "link_name": user.name or user.email, "link_tenant": found.tenant_slug, "token": token}
    return render(request, "tenants/link.html", context)


@public
@login_required
@require_http_methods(["GET", "POST"])
@own_only
def password(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    # Who lost their password comes by a link, a moment ago.
    by_link = is_fresh(request) and bool(request.session.get("came_by_link"))
    if not user.has_usable_password() and not is_fresh(request):
        return redirect(f"{reverse('prove')}?next={reverse('password')}")
    form = PasswordForm(
        user, request.POST or None, asks_old=user.has_usable_password() and not by_link, request=request
    )
    if request.method == "POST" and form.is_valid():
        update_session_auth_hash(request, form.save())
        request.session.pop("came_by_link", None)
        # Django ends the other sessions at their next request; their list ends now.
        log_out_everywhere(user, but=request.session.session_key)
        remember_browser(request)
        note(request, user, "password.change")
        return redirect(safe_next(request))
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/password.html", {"form": form, "next": safe_next(request)}, status=status)


@public
@login_required
@require_GET
def choose(request: HttpRequest) -> HttpResponse:
    """The teams of this person; with one, straight into it."""
    teams = entry.teams(request)
    if len(teams) == 1:
        return redirect("inbox", teams[0].tenant.slug)
    suspended = people.suspended_teams_of(str(request.user.pk))
    return render(request, "tenants/choose.html", {"memberships": teams, "suspended": suspended})


@require_http_methods(["GET", "POST"])
@needs("note.read")
@recently
def connect(request: TenantRequest, slug: str) -> HttpResponse:
    """One command for each harness. A POST makes a key and shows it, once."""
    harness = the_harness(request)
    secret = ""
    if request.method == "POST":
        name = keys.free_name(request.member, harness.name)  # type: ignore[arg-type]
        made, secret = keys.make_key(request.member, name=name, by=request.actor)  # type: ignore[arg-type]
        request.session["connecting"] = {"key": made.public_id, "harness": harness.slug}
    context = {
        "first_event": first_event(request, harness),
        "harness": harness,
        "is_waiting": "connecting" in request.session,
    }
    if request.htmx:
        return render(request, "tenants/_first_event.html", context)
    context["scopes"] = [one for one in keys.openable_scopes(request.actor.role) if one in DEFAULT_SCOPES]
    context["next_name"] = keys.free_name(request.member, harness.name)  # type: ignore[arg-type]
    context |= {"key": secret, "harnesses": connecting.HARNESSES, "install_again": connecting.install_again(harness)}
    context["agent_keys"] = keys.usable_keys(request.member)  # type: ignore[arg-type]
    address, shown = settings.PUBLIC_URL, secret or "YOUR_KEY"
    context |= {
        "address": address,
        "install": connecting.install(harness, address, secret),
        "install_powershell": connecting.install_powershell(harness, address, secret),
        "mcp": harness.mcp(address, shown),
        "without_client": connecting.without_client(address, shown) if harness.slug == "claude-code" else "",
    }
    return render(request, "tenants/connect.html", context)


def the_harness(request: TenantRequest) -> connecting.Harness:
    """The one that is asked for, else the one being connected, else the first."""
    asked = request.POST.get("client") or request.GET.get("client") or ""
    if asked and asked not in connecting.BY_SLUG:
        raise Http404
    before = request.session.get("connecting")
    known = before.get("harness", "") if isinstance(before, dict) else ""
    return connecting.BY_SLUG.get(asked) or connecting.BY_SLUG.get(known) or connecting.HARNESSES[0]


def first_event(request: TenantRequest, harness: connecting.Harness) -> Any:
    """The first event of this harness that the key made on this page sent."""
    before = request.session.get("connecting")
    public_id = before.get("key", "") if isinstance(before, dict) else ""
    made = request.tenant.keys.filter(public_id=public_id).first()
    if made is None:
        return None
    # By the sessions since then: events are not indexed by key, and this is asked every few seconds. Of this member
    # alone: a history brought in meanwhile, or a busy team, would fill the fifty.
    mine = request.tenant.sessions.filter(member=made.member_id, last_received_at__gte=made.created_at)
    since = mine.order_by("-last_received_at", "-id")
    client = harness.slug.replace("-", "_")
    sent = request.tenant.events.filter(client=client, agent_key=made, session__in=since.values("pk")[:50])
    return sent.select_related("session").order_by("received_at", "id").first()
