"""What every page knows: the team, the member, and what this member may do."""

from typing import Any

from django.http import HttpRequest

from memory.tenants.access import MAY
from memory.tenants.names import Names


def tenant(request: HttpRequest) -> dict[str, Any]:
    """Context processor; empty outside a team."""
    member = getattr(request, "member", None)
    if member is None:
        return {"may": frozenset()}
    actor = request.actor  # type: ignore[attr-defined]
    return {
        "tenant": request.tenant,  # type: ignore[attr-defined]
        "member": member,
        "names": Names(request.tenant),  # type: ignore[attr-defined]
        "may": frozenset(action for action in MAY if actor.may(action)),
    }
