"""Who may do what: one table, read by pages, REST, tasks and commands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, TypeVar

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from memory.tenants.models import Member, Tenant
from memory.tenants.rls import SERVER, Sight, Work

EVERYONE: Final = frozenset({"owner", "admin", "reviewer", "member", "viewer"})
WRITERS: Final = frozenset({"owner", "admin", "reviewer", "member"})
REVIEWERS: Final = frozenset({"owner", "admin", "reviewer"})
ADMINS: Final = frozenset({"owner", "admin"})
AGENT: Final = frozenset({"agent"})
DREAM: Final = frozenset({"dream"})

# Action -> roles. `agent` and `dream` are roles too: they propose and never approve.
MAY: Final[dict[str, frozenset[str]]] = {
    "note.read": EVERYONE | AGENT | DREAM,
    "note.propose": WRITERS | AGENT | DREAM,
    "note.edit": REVIEWERS,
    "note.approve": REVIEWERS,
    "note.revert": REVIEWERS,
    "note.delete": REVIEWERS,
    "note.comment": WRITERS,
    "note.assign": REVIEWERS,
    "note.purge": ADMINS,
    # Other members' own spaces, and only while the team's rule is on.
    "note.read_private": ADMINS,
    "rule.manage": ADMINS,
    "session.read": EVERYONE | AGENT | DREAM,
    "session.delete": WRITERS | AGENT,
    "session.delete_any": ADMINS | AGENT,
    "event.record": WRITERS | AGENT,
    "graph.read": EVERYONE | AGENT | DREAM,
    "graph.record": WRITERS | AGENT,
    "graph.withdraw": WRITERS | AGENT,
    "graph.delete": ADMINS | AGENT,
    "project.read": EVERYONE | AGENT,
    "project.edit": ADMINS,
    "project.limit": ADMINS,
    "dream.read": EVERYONE | AGENT,
    "cache.read": EVERYONE | AGENT,
    "cache.use": WRITERS | AGENT,
    "cache.manage": ADMINS | AGENT,
    "dream.start": WRITERS | AGENT,
    "dream.undo": REVIEWERS | AGENT,
    "dream.budget": ADMINS,
    "key.create": WRITERS,
    "member.read": EVERYONE,
    "member.manage": ADMINS,
    "audit.read": ADMINS,
    "webhook.manage": ADMINS,
    "settings.manage": ADMINS,
    "settings.read": EVERYONE,
    "news.choose": EVERYONE,
    "filter.save": EVERYONE,
    "filter.share": REVIEWERS,
}
# What a key's scope opens. A key needs the scope, and its owner the role: the narrower of both decides.
SCOPES: Final[dict[str, frozenset[str]]] = {
    "ingest": frozenset({"event.record", "session.delete", "graph.record", "graph.withdraw"}),
    "read": frozenset({"note.read", "session.read", "project.read", "dream.read", "graph.read"}),
    "propose": frozenset({"note.propose"}),
    "cache": frozenset({"cache.read", "cache.use"}),
    "dream": frozenset({"dream.start", "dream.read", "dream.undo"}),
    "admin": frozenset(
        {"project.edit", "session.delete", "session.delete_any", "graph.withdraw", "graph.delete", "cache.manage"}
    ),
}
DEFAULT_SCOPES: Final = ("ingest", "read", "propose", "cache", "dream")


class Refused(PermissionDenied):
    """The actor may not do this action; `str()` names the action."""


@dataclass(frozen=True)
class Actor:
    """Whoever acts: a member in the browser, an agent key, a dream, or a command on the server."""

    kind: str
    id: str
    label: str
    role: str
    tenant_pk: str
    member_pk: str | None = None
    key_pk: str | None = None
    scopes: frozenset[str] = field(default_factory=frozenset)
    ip: str = ""
    request_id: str = ""

    @property
    def sight(self) -> Sight:
        """Who looks where this actor acts; a dream and a command see as the server does."""
        return Sight(self.member_pk, self.key_pk) if self.member_pk else SERVER

    def may(self, action: str) -> bool:
        """True where the table allows the action; an unknown action is a KeyError, never a yes."""
        roles = MAY[action]
        if self.kind == "key":
            opened = any(action in SCOPES.get(scope, frozenset()) for scope in self.scopes)
            return opened and "agent" in roles and self.role in roles
        return self.role in roles


def member_actor(member: Member, *, ip: str = "", request_id: str = "") -> Actor:
    return Actor(
        "member",
        member.public_id,
        member.handle,
        member.role,
        str(member.tenant_id),
        str(member.pk),
        ip=ip,
        request_id=request_id,
    )


def dream_actor(tenant: Tenant, run_id: str) -> Actor:
    return Actor("dream", run_id, "dream", "dream", str(tenant.pk))


def gardener_actor(tenant: Tenant, gardening_id: str) -> Actor:
    return Actor("gardener", gardening_id, "the gardener", "dream", str(tenant.pk))


def command_actor(tenant: Tenant, label: str) -> Actor:
    """A command run on the server by an operator: it stands for the owner, and the audit says so."""
    return Actor("command", label, label, "owner", str(tenant.pk))


def require(actor: Actor, action: str) -> None:
    """Raises Refused unless the actor may do the action."""
    if not actor.may(action):
        raise Refused(action)


class TenantRequest(HttpRequest):
    """A request that the middleware bound to a tenant."""

    tenant: Tenant
    member: Member | None
    actor: Actor
    work: Work
    htmx: Any


View = TypeVar("View", bound=Callable[..., Any])


def needs(action: str) -> Callable[[View], View]:
    """Decorator of a page or an API view: only who may do `action` gets in."""
    if action not in MAY:
        raise KeyError(action)

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
            require(request.actor, action)
            return view(request, *args, **kwargs)

        guarded.action = action  # type: ignore[attr-defined]
        return guarded  # type: ignore[return-value]

    return decorate


def public(view: View) -> View:
    """Mark a view that needs no login, no key and no tenant."""
    view.is_public = True  # type: ignore[attr-defined]
    return view


def also_by_session(view: View) -> View:
    """Mark an API view, on top of all decorators, that a browser's session opens too, with its CSRF token."""
    view.takes_sessions = True  # type: ignore[attr-defined]
    view.csrf_exempt = False  # type: ignore[attr-defined]
    return view


def brings_own_transaction(view: View) -> View:
    """Mark a hot door: it checks the key, binds and reads in one round trip of its own."""
    view.is_hot = True  # type: ignore[attr-defined]
    return view
