"""The page of agent keys: made, watched, changed, given a new secret, ended."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from memory.sentences import thousands
from memory.tenants import keys
from memory.tenants.access import TenantRequest, needs, require
from memory.tenants.forms import KeyChangeForm, KeyForm, OverlapForm
from memory.tenants.proof import recently

SHOWN = 200


@require_http_methods(["GET", "POST"])
@needs("note.read")
@recently
def key_list(request: TenantRequest, slug: str) -> HttpResponse:
    """The keys this person may end, with what each did this week. A POST makes one and shows its secret, once."""
    if request.method == "GET":
        return _list(request, _form(request))
    require(request.actor, "key.create")
    form = _form(request, request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    said = form.cleaned_data
    made, secret = keys.make_key(
        request.member,  # type: ignore[arg-type]
        name=said["name"],
        scopes=said["scopes"],
        life=timedelta(days=int(said["days"])),
        rate_limit=said["rate_limit"],
        only_projects=_chosen(request, said.get("projects", [])),
        by=request.actor,
    )
    return _list(request, _form(request), made=made, secret=secret)


def _form(request: TenantRequest, said: Any = None) -> KeyForm:
    """The form of a new key, with the projects that whoever makes it sees."""
    shown = request.tenant.projects.current().order_by("name", "slug")
    return KeyForm(said, role=request.actor.role, projects=[(one.public_id, str(one.label)) for one in shown])


def _chosen(request: TenantRequest, public_ids: list[str]) -> list[UUID] | None:
    if not public_ids:
        return None
    return list(request.tenant.projects.filter(public_id__in=public_ids).values_list("pk", flat=True))


def _list(request: TenantRequest, form: KeyForm, *, status: int = 200, **shown: Any) -> HttpResponse:
    week = keys.week_of(request.tenant)
    found = keys.revocable_keys(request.tenant, by=request.actor).select_related("member")
    listed = list(found.order_by("-created_at", "-id")[:SHOWN])
    chosen = {pk for key in listed for pk in key.only_projects or ()}
    names = dict(request.tenant.projects.filter(pk__in=chosen).values_list("pk", "name"))
    rows = [
        {
            "key": key,
            "is_narrow": key.only_projects is not None,
            "projects": sorted(names[pk] for pk in key.only_projects or () if pk in names),
            "week": week.get(key.pk),
            "is_open": keys.is_open(key),
            "is_mine": str(key.member_id) == request.actor.member_pk,
        }
        for key in listed
    ]
    context = {
        "open_rows": [row for row in rows if row["is_open"]],
        "ended_rows": [row for row in rows if not row["is_open"]],
        "form": form,
        "overlaps": OverlapForm.CHOICES,
        **shown,
    }
    return render(request, "tenants/keys.html", context, status=status)


@require_POST
@needs("note.read")
@recently
def key_rotate(request: TenantRequest, slug: str, key_id: str) -> HttpResponse:
    """A new secret; the old one stays good for as long as asked."""
    key = get_object_or_404(keys.revocable_keys(request.tenant, by=request.actor), public_id=key_id)
    form = OverlapForm(request.POST)
    if not form.is_valid():
        messages.error(request, gettext("Nothing was changed: choose for how long the old key stays good."))
        return redirect("keys", slug)
    try:
        overlap = timedelta(hours=int(form.cleaned_data["overlap"]))
        made, secret = keys.rotate_key(key, overlap=overlap, by=request.actor)
    except keys.NotUsable:
        messages.error(request, gettext("This key has ended, or was replaced before: make a new one, or replace that."))
        return redirect("keys", slug)
    return _list(request, _form(request), made=made, secret=secret, replaced=key)


@require_POST
@needs("note.read")
@recently
def key_change(request: TenantRequest, slug: str, key_id: str) -> HttpResponse:
    """Another name and limit."""
    key = get_object_or_404(keys.revocable_keys(request.tenant, by=request.actor), public_id=key_id)
    form = KeyChangeForm(request.POST)
    if form.is_valid():
        said = form.cleaned_data
        keys.change_key(key, name=said["name"], rate_limit=said["rate_limit"], by=request.actor)
        messages.success(
            request,
            gettext("%(name)s may make %(rate_limit)s calls a minute.")
            % {"name": key.name, "rate_limit": thousands(key.rate_limit)},
        )
    else:
        messages.error(request, gettext("Nothing was changed: a key needs a name and a limit from 1 to 10,000,000."))
    return redirect("keys", slug)


@require_POST
@needs("note.read")
def key_revoke(request: TenantRequest, slug: str, key_id: str) -> HttpResponse:
    """End a key. Whoever sees a leak must not be asked for a password first."""
    key = get_object_or_404(keys.revocable_keys(request.tenant, by=request.actor), public_id=key_id)
    keys.revoke_key(key, by=request.actor)
    messages.success(request, gettext("%(name)s opens nothing any more.") % {"name": key.name})
    return redirect("keys" if request.POST.get("back") == "keys" else "connect", slug)
