"""What a new team does first: five steps, each with the page it is done on, and ticked by what is there."""

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext

from memory.tenants.access import Actor
from memory.tenants.models import Tenant


@dataclass(frozen=True)
class Step:
    """One step of the way."""

    title: str
    what: str
    url: str
    is_done: bool


def steps(tenant: Tenant, by: Actor) -> list[Step]:
    """The way of an owner or admin; nothing for others, and nothing once all of it is done. The tenant is bound."""
    if by.role not in ("owner", "admin"):
        return []
    proposals = tenant.proposals.exclude(state="superseded")
    own = tenant.sessions.filter(is_internal=False)
    done = [
        own.exists(),
        own.filter(last_seq__gt=1).exists(),
        tenant.dreams.filter(state__in=("succeeded", "no_change")).exists(),
        proposals.filter(state__in=("approved", "rejected")).exists(),
        tenant.members.current().count() > 1,
    ]
    # The first of thousands need not be looked for where nobody is led to it any more.
    if all(done):
        return []
    session = own.order_by("first_received_at", "id").first()
    waiting = proposals.filter(state="open").order_by("created_at", "id").first()
    return [
        Step(gettext("Connect an agent"), gettext("or import history"), _to(tenant, "connect"), done[0]),
        Step(
            gettext("See the first session"),
            gettext("what it did, call by call"),
            _to(tenant, "session", session.public_id) if session else _to(tenant, "sessions"),
            done[1],
        ),
        Step(gettext("Run a dream"), gettext("it proposes notes from what happened"), _to(tenant, "dreams"), done[2]),
        Step(
            gettext("Decide the first proposal"),
            gettext("agents are told what you approve"),
            _to(tenant, "proposal", waiting.public_id) if waiting else _to(tenant, "inbox"),
            done[3],
        ),
        Step(gettext("Invite a colleague"), gettext("who reviews with you"), _people(tenant), done[4]),
    ]


def _to(tenant: Tenant, name: str, *args: str) -> str:
    return reverse(name, args=[tenant.slug, *args])


def _people(tenant: Tenant) -> str:
    """The page of members, else how the operator adds one."""
    try:
        return _to(tenant, "members")
    except NoReverseMatch:
        return _to(tenant, "docs", "operate")
