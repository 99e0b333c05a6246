"""Stored things, made without the doors."""

import hashlib
from typing import Any

from cache_admin import results
from cache_admin.models import Analysis, Entry, Incident, Pair, Result
from memory.tenants import rls
from memory.tenants.access import member_actor


def result(tenant: Any, member: Any, text: str = "acme-only words\n", **more: Any) -> Result:
    """A stored result that the team may read."""
    with rls.tenant_scope(str(tenant.pk)):
        draft = results.Draft(text, False, "tests")
        options = {"is_private": False, "project_pk": None, **more}
        return results.keep(tenant, draft, by=member_actor(member), **options)


def shown(tenant: Any, member: Any, *, name: str = "acme-only") -> dict[str, str]:
    """One of each thing that has a page: by what its address names it."""
    kept = result(tenant, member)
    with rls.tenant_scope(str(tenant.pk)):
        key = hashlib.sha256(name.encode()).digest()
        Entry.objects.create(
            tenant=tenant, key=key, identity=key, document="{}", tool="acme-only", scope="team", result=kept
        )
        analysis = Analysis.objects.create(
            tenant=tenant, content_hash=f"sha256:{name}", analysis_type="t", version="1", content={}
        )
        incident = Incident.objects.create(tenant=tenant, kind="report", tool="acme-only")
        pair = Pair.objects.create(tenant=tenant, tool="acme-only", asked="acme-only", matched="b", score=0.9)
    return {
        "cache_key": key.hex(),
        "analysis": analysis.public_id,
        "incident": incident.public_id,
        "pair": str(pair.pk),
    }
