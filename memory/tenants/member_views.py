"""Pages of members: who is in the team, who is invited, and what each role may do."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.tenants import invitations, people, sign_on
from memory.tenants.access import MAY, SCOPES, TenantRequest, needs, require
from memory.tenants.forms import InviteForm
from memory.tenants.models import Member, Role
from memory.tenants.proof import recently


@require_http_methods(["GET", "POST"])
@needs("member.read")
@recently
def member_list(request: TenantRequest, slug: str) -> HttpResponse:
    """Who is in the team. A POST invites somebody and shows the link, once."""
    if request.method == "GET":
        return _list(request, InviteForm())
    require(request.actor, "member.manage")
    form = InviteForm(request.POST)
    if form.is_valid():
        said = form.cleaned_data
        try:
            made, url = invitations.invite(request.tenant, said["email"], role=said["role"], by=request.actor)
        except people.InvalidMember as why:
            form.add_error("email", str(why))
        else:
            return _list(request, InviteForm(), shown_url=url, shown_for=made.email)
    return _list(request, form, status=422)


def _list(request: TenantRequest, form: InviteForm, *, status: int = 200, **shown: Any) -> HttpResponse:
    is_owner = request.actor.role == Role.OWNER
    members = request.tenant.members.current().select_related("user").order_by("handle")
    context = {
        "members": members,
        "roles": [role for role in Role.values if is_owner or role != Role.OWNER],
        "is_owner": is_owner,
        "linked": set(sign_on.identities(request.tenant).values_list("member_id", flat=True)),
        "invitations": invitations.open_invitations(request.tenant).select_related("invited_by"),
        "form": form,
        **shown,
    }
    return render(request, "tenants/members.html", context, status=status)


def _member(request: TenantRequest, member_id: str) -> Member:
    found = request.tenant.members.current().select_related("user")
    return get_object_or_404(found, public_id=member_id)


@require_POST
@needs("member.manage")
@recently
def member_role(request: TenantRequest, slug: str, member_id: str) -> HttpResponse:
    member = _member(request, member_id)
    try:
        people.change_role(member, request.POST.get("role", ""), by=request.actor)
    except people.InvalidMember as why:
        messages.error(request, str(why))
    else:
        messages.success(
            request,
            gettext("%(handle)s is %(role)s now.") % {"handle": member.handle, "role": gettext(request.POST["role"])},
        )
    return redirect("members", slug)


@require_POST
@needs("member.read")
@recently
def member_remove(request: TenantRequest, slug: str, member_id: str) -> HttpResponse:
    """Take somebody out, or leave."""
    member = _member(request, member_id)
    try:
        people.remove_member(member, by=request.actor)
    except people.InvalidMember as why:
        messages.error(request, str(why))
        return redirect("members", slug)
    messages.success(
        request, gettext("%(handle)s is out of the team, and so are their keys.") % {"handle": member.handle}
    )
    return redirect("choose") if str(member.pk) == request.actor.member_pk else redirect("members", slug)


@require_POST
@needs("member.manage")
@recently
def member_link(request: TenantRequest, slug: str, member_id: str) -> HttpResponse:
    """A login link for who lost their password, shown once to copy."""
    member = _member(request, member_id)
    try:
        url = people.login_link_for(member, by=request.actor)
    except people.InvalidMember as why:
        messages.error(request, str(why))
        return redirect("members", slug)
    return _list(request, InviteForm(), shown_url=url, shown_for=member.user.email, is_login=True)


@require_POST
@needs("member.manage")
@recently
def invitation_withdraw(request: TenantRequest, slug: str, invitation_id: str) -> HttpResponse:
    invitation = get_object_or_404(request.tenant.invitations.all(), public_id=invitation_id)
    invitations.withdraw(invitation, by=request.actor)
    messages.success(request, gettext("The link for %(email)s opens nothing any more.") % {"email": invitation.email})
    return redirect("members", slug)


@require_GET
@needs("member.read")
def roles(request: TenantRequest, slug: str) -> HttpResponse:
    """What each role and each scope of a key may do: the table that decides it, as it is."""
    columns = [*Role.values, "agent", "dream"]
    context = {
        "columns": columns,
        "actions": [(action, [(role, role in allowed) for role in columns]) for action, allowed in MAY.items()],
        "scopes": [(scope, sorted(actions)) for scope, actions in SCOPES.items()],
    }
    return render(request, "tenants/roles.html", context)
