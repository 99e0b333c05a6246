"""Stored things, made without the doors."""

from typing import Any

from cache_admin import results
from cache_admin.models import Result
from memory.tenants import rls
from memory.tenants.access import member_actor


def result(tenant: Any, member: Any, text: str = "acme-only words\n", **more: Any) -> Result:
    """A stored result that the team may read."""
    with rls.tenant_scope(str(tenant.pk)):
        draft = results.Draft(text, False, "tests")
        options = {"is_private": False, "project_pk": None, **more}
        return results.keep(tenant, draft, by=member_actor(member), **options)
