"""The policies a team has set, and how they are changed."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from django.db import transaction
from django.utils.translation import gettext

from cache_admin import pairs
from cache_admin.models import CacheSetting, Entry, Flight, ToolPolicy
from cache_admin.normalize import rules_of
from cache_admin.policy import SEEDS, InvalidPolicy, Policy, check, default_policy
from memory.tenants import audit
from memory.tenants.access import Actor, require
from memory.tenants.models import Tenant

FIELDS: Final = (
    "mode", "scope", "ttl_s", "by_content", "read_only", "has_effects", "rules", "schema", "summariser", "empty_ttl_s",
    "lease_s", "shadow_percent", "semantic", "threshold", "worst_outcome", "invalidates",
)  # fmt: skip


def of_row(row: Mapping[str, Any] | None, tool: str, *, hints: Mapping[str, Any] | None = None) -> Policy:
    """The policy in a row of the table, or the default where the team has none. An admin's row overrides all hints."""
    return _read(orjson.dumps(row, default=str)) if row else default_policy(tool, hints=hints)


@lru_cache(maxsize=2000)
def _read(row: bytes) -> Policy:
    found = orjson.loads(row)
    plain = {name: found[name] for name in FIELDS if name not in ("rules", "schema")}
    return Policy(
        found["tool"], **plain, rules=rules_of(found["rules"], found["schema"]), salt=found["salt"], source="row"
    )


def of_team(tenant: Tenant) -> list[Policy]:
    """Every tool's policy, as it holds for this team: its own rows and the usual tools, by name."""
    rows = {row.tool: row for row in tenant.tool_policies.all()}
    own = [of_row(as_row(row), row.tool) for row in rows.values()]
    return sorted([*own, *(default_policy(tool) for tool in SEEDS if tool not in rows)], key=lambda one: one.tool)


def of_tool(tenant: Tenant, tool: str) -> Policy:
    """The policy of one tool for this team."""
    row = tenant.tool_policies.filter(tool=tool).first()
    return of_row(as_row(row) if row else None, tool)


def as_row(row: ToolPolicy) -> dict[str, Any]:
    """The row as `of_row` takes it."""
    return {"tool": row.tool, "salt": row.salt, **{name: getattr(row, name) for name in FIELDS}}


def save(tenant: Tenant, tool: str, *, by: Actor, **given: Any) -> ToolPolicy:
    """Set a tool's policy; what was stored under the old one is gone. Raises Refused, InvalidPolicy."""
    require(by, "cache.manage")
    unknown = set(given) - set(FIELDS)
    if unknown or not tool.strip() or len(tool) > 200:
        raise InvalidPolicy(f"Unknown fields: {', '.join(sorted(unknown))}." if unknown else gettext("Name the tool."))
    with transaction.atomic():
        row = tenant.tool_policies.select_for_update().filter(tool=tool).first() or _from_default(tenant, tool)
        before = "" if row._state.adding else f"{row.mode} {row.scope} {row.ttl_s}"
        for name, value in given.items():
            setattr(row, name, value)
        try:
            policy = of_row(as_row(row), tool)
        except (ValueError, TypeError) as wrong:
            raise InvalidPolicy(str(wrong)) from None
        check(policy)
        why = pairs.refusal(pairs.judged(tenant, tool), policy.threshold) if policy.semantic else ""
        if why:
            raise InvalidPolicy(why)
        row.revision += not row._state.adding
        # A new salt: an answer that is on its way under the old policy finds no reader.
        row.salt += 1
        row.updated_by_id = by.member_pk
        row.save()
        forget_tool(tenant, tool)
        audit.record(by, "cache.policy", tool, before=before, after=f"{row.mode} {row.scope} {row.ttl_s}")
    return row


def _from_default(tenant: Tenant, tool: str) -> ToolPolicy:
    seed = default_policy(tool)
    known = {name: getattr(seed, name) for name in FIELDS if name not in ("rules", "schema")}
    rules = {kind: sorted(getattr(seed.rules, kind)) for kind in ("paths", "urls", "numbers", "queries", "commands")}
    return ToolPolicy(tenant=tenant, tool=tool, rules={**rules, "defaults": dict(seed.rules.defaults)}, **known)


def forget_tool(tenant: Tenant, tool: str) -> int:
    """Drop all entries of a tool, and the flights that would land new ones."""
    Flight.objects.filter(tenant=tenant, inputs__tool=tool).delete()
    return Entry.objects.filter(tenant=tenant, tool=tool).delete()[1].get("cache_admin.Entry", 0)


def settings_of(tenant: Tenant) -> CacheSetting:
    """What holds for all of the team's caches; the defaults where nothing was set."""
    return CacheSetting.objects.filter(tenant=tenant).first() or CacheSetting(tenant=tenant)


def save_room(tenant: Tenant, *, analysis_days: int, quota_bytes: int, by: Actor) -> None:
    """Set how long analyses are kept after their last use, and how much all texts may take. Raises Refused."""
    require(by, "cache.manage")
    old = settings_of(tenant)
    before, after = (old.analysis_days, old.quota_bytes), (analysis_days, quota_bytes)
    if before == after:
        return
    given = {"analysis_days": analysis_days, "quota_bytes": quota_bytes}
    CacheSetting.objects.update_or_create(tenant=tenant, defaults=given)
    told = ["analyses {} days, texts {} bytes".format(*one) for one in (before, after)]
    audit.record(by, "cache.room", "room", before=told[0], after=told[1])
