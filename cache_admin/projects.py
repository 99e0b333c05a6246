"""Which project a caller means, and whether they may see it."""

from django.db import connection

from cache_admin.models import Entry, Flight, ProjectLimit
from memory.events.models import Project
from memory.events.places import normal_remote
from memory.problems import not_found
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Member, Tenant


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


def limit(project: Project, members: list[Member], *, by: Actor) -> None:
    """Open a project to these members alone; to all, where the list is empty. Raises Refused."""
    require(by, "cache.manage")
    ProjectLimit.objects.filter(project=project).delete()
    ProjectLimit.objects.bulk_create(
        [ProjectLimit(tenant_id=project.tenant_id, project=project, member=member) for member in members]
    )
    # What the whole team was served of it until now.
    wide = Entry.objects.filter(tenant_id=project.tenant_id, project=project).exclude(scope__startswith="project:")
    if members:
        Flight.objects.filter(tenant_id=project.tenant_id, inputs__project=str(project.pk)).delete()
        wide.delete()
    handles = ", ".join(sorted(member.handle for member in members))
    audit.record(by, "cache.limit", project.public_id, after=handles[:200] or "all")
