"""Which project a caller means."""

from django.db import connection

from memory.events.places import normal_remote
from memory.problems import not_found
from memory.tenants.access import Actor
from memory.tenants.models import Tenant


def pk_of(tenant: Tenant, asked: str, *, by: Actor) -> str | None:
    """The key of a project named by id, slug or git remote; None for a name that is no project (yet).

    Raises Problem 404 for an id that is unknown, or of a project that is not open to the caller: both look the same.
    """
    if not asked:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT project FROM cache_standing(%s::uuid, %s::uuid, '', %s, %s)",
            [str(tenant.pk), by.member_pk, asked, normal_remote(asked)],
        )
        found = cursor.fetchone()[0]
    if found is None and asked.startswith("prj_"):
        raise not_found(asked)
    return str(found) if found else None
