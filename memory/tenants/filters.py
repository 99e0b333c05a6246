"""Filters that people keep: a list's own question under a name, opened by one click."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, urlencode

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from memory.tenants import audit
from memory.tenants.access import Actor, Refused, require
from memory.tenants.models import Member, SavedFilter, Tenant

# Each list that has a filter, by the name of its address, and what its form sends, in the form's order.
TAKES: Final[dict[str, tuple[str, ...]]] = {
    "inbox": ("risk", "for"),
    "notes": ("q",),
    "threads": ("q", "state", "source", "owned"),
    "sessions": ("q", "project", "client", "state"),
    "projects": ("q",),
    "endpoint": ("status",),
    "cache_entries": ("tool", "writer", "project"),
    "audit": ("who", "action", "target", "outcome"),
}
# Lists that are of one thing, whose id belongs to the filter.
OF_ONE: Final = frozenset({"endpoint"})
MOST: Final = 50
NAME_LENGTH: Final = 60
VALUE_LENGTH: Final = 200
# How long a removed one can be brought back.
RETURNS: Final = timedelta(minutes=10)


class BadFilter(ValueError):
    """It can't be kept so; the message says what to do."""


@dataclass(frozen=True)
class Place:
    """A list: the name of its address, and the id of what it is of, where it is of one thing."""

    page: str
    of: str = ""


@dataclass(frozen=True)
class Shown:
    """What stands above a list: the filters for it, and whether the present one could be kept."""

    place: Place
    query: str
    own: Sequence[SavedFilter]
    shared: Sequence[SavedFilter]
    removed: Sequence[SavedFilter]

    @property
    def is_new(self) -> bool:
        """There is a filter, and it is not one of those."""
        return bool(self.query) and all(one.query != self.query for one in (*self.own, *self.shared))


def place(page: str, of: str = "") -> Place:
    """The list of that name. Raises BadFilter."""
    if page not in TAKES or (page in OF_ONE) != bool(of):
        raise BadFilter(gettext("This page has no filter."))
    return Place(page, of[:100])


def canonical(page: str, query: str) -> str:
    """A query string as the page's own form sends it: what the page takes, each once, the rest left out."""
    said: dict[str, str] = {}
    try:
        pairs = parse_qsl(query.removeprefix("?"), max_num_fields=50)
    except ValueError:
        return ""
    for name, value in pairs:
        clean = value.replace("\0", "").strip()[:VALUE_LENGTH]
        if name in TAKES[page] and clean:
            said.setdefault(name, clean)
    return urlencode([(name, said[name]) for name in TAKES[page] if name in said])


def shown(tenant: Tenant, at: Place, query: str, *, by: Actor) -> Shown:
    """What stands above a list for this person: theirs, those for everybody, and what they removed just now."""
    since = timezone.now() - RETURNS
    mine = Q(member_id=by.member_pk)
    seen = Q(removed_at__isnull=True) & (mine | Q(is_shared=True)) | mine & Q(removed_at__gt=since)
    rows = list(
        tenant.filters.filter(seen, page=at.page, of=at.of)
        .select_related("member")
        .order_by("name", "created_at", "pk")
    )
    own = [row for row in rows if str(row.member_id) == by.member_pk and row.removed_at is None]
    shared = [row for row in rows if str(row.member_id) != by.member_pk]
    removed = [row for row in rows if row.removed_at is not None]
    return Shown(at, canonical(at.page, query), own, shared, removed)


def save(tenant: Tenant, at: Place, query: str, *, name: str, is_shared: bool, by: Actor) -> SavedFilter:
    """Keep a filter under a name. Raises Refused, BadFilter."""
    member_pk = _may(by, is_shared)
    kept = canonical(at.page, query)
    if not kept:
        raise BadFilter(gettext("Filter the list first, then save that."))
    if len(kept) > 1000:
        raise BadFilter(gettext("This filter is too long to be saved."))
    with transaction.atomic():
        _room(tenant, member_pk)
        made = SavedFilter(
            tenant=tenant,
            member_id=member_pk,
            page=at.page,
            of=at.of,
            name=_named(name),
            query=kept,
            is_shared=is_shared,
        )
        _write(made)
        if is_shared:
            audit.record(by, "filter.share", made.public_id, after=made.name)
    return made


def rename(kept: SavedFilter, *, name: str, is_shared: bool, by: Actor) -> None:
    """Give it another name, or show it to everybody or no more. Raises Refused, BadFilter."""
    _require_theirs(kept, by)
    if is_shared != kept.is_shared:
        require(by, "filter.share")
    was = kept.is_shared
    kept.name, kept.is_shared = _named(name), is_shared
    with transaction.atomic():
        _write(kept)
        if is_shared != was or (is_shared and by.member_pk != str(kept.member_id)):
            audit.record(by, "filter.share", kept.public_id, before=str(was), after=f"{is_shared} {kept.name}")


def remove(kept: SavedFilter, *, by: Actor) -> None:
    """Take it away; for a while it can be brought back by whoever it belongs to. Raises Refused."""
    _require_theirs(kept, by)
    now = timezone.now()
    with transaction.atomic():
        if SavedFilter.objects.standing().filter(pk=kept.pk).update(removed_at=now) and kept.is_shared:
            audit.record(by, "filter.share", kept.public_id, before=kept.name, after="removed")
        # What nobody brings back any more is deleted by the next removal.
        SavedFilter.objects.filter(tenant_id=kept.tenant_id, removed_at__lt=now - RETURNS).delete()


def restore(kept: SavedFilter, *, by: Actor) -> None:
    """Bring a removed one back. Raises Refused, BadFilter: its name was taken meanwhile, or its time is over."""
    _require_theirs(kept, by)
    if kept.removed_at is None:
        return
    if kept.removed_at < timezone.now() - RETURNS:
        raise BadFilter(gettext("It was removed too long ago to come back. Save the filter anew."))
    with transaction.atomic():
        _room(kept.tenant, str(kept.member_id))
        kept.removed_at = None
        # What is for everybody again is said again, by who may.
        kept.is_shared = kept.is_shared and by.may("filter.share")
        _write(kept)
        if kept.is_shared:
            audit.record(by, "filter.share", kept.public_id, after=kept.name)


def _may(by: Actor, is_shared: bool) -> str:
    """The member who saves."""
    require(by, "filter.save")
    if is_shared:
        require(by, "filter.share")
    if by.member_pk is None:
        raise Refused("filter.save")
    return by.member_pk


def _require_theirs(kept: SavedFilter, by: Actor) -> None:
    """One's own; of those for everybody also others', for who may share."""
    if str(kept.member_id) != by.member_pk:
        require(by, "filter.share")
    require(by, "filter.save")


def _named(name: str) -> str:
    clean = " ".join(name.replace("\0", "").split())
    if not clean:
        raise BadFilter(gettext("Give the filter a name."))
    if len(clean) > NAME_LENGTH:
        raise BadFilter(gettext("A name has at most %(name_length)s characters.") % {"name_length": NAME_LENGTH})
    return clean


def _room(tenant: Tenant, member_pk: str) -> None:
    """Raises BadFilter where the member has as many as they may have. Of two that are saved at once one waits."""
    list(Member.objects.select_for_update().filter(pk=member_pk).values_list("pk"))
    if tenant.filters.standing().filter(member_id=member_pk).count() >= MOST:
        raise BadFilter(
            gettext("You have %(most)s saved filters. Remove one that you no longer need.") % {"most": MOST}
        )


def _write(row: SavedFilter) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        if "one_filter_per_name_and_list" not in str(error):
            raise
        raise BadFilter(
            gettext("You have a filter “%(name)s” for this list already. Choose another name.") % {"name": row.name}
        ) from None
