"""Try a call: its arguments as the key holds them, the key, and what a lookup would say. Writes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from cache_admin import policies, projects
from cache_admin.keys import Call, tool_key
from cache_admin.lookup import holds_secret
from cache_admin.models import Entry, Flight
from cache_admin.normalize import NotKeyable, normal
from cache_admin.policy import InvalidPolicy, Policy, place_ref, scope_ref
from cache_admin.seen import pretty
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

WHY: Final = {
    "unknown_tool": gettext_noop("There is no policy for this tool, and what is unknown is never cached."),
    "side_effects": gettext_noop("The tool has side effects: the second call must act too."),
    "off": gettext_noop("The policy is off."),
    "no_content_hash": gettext_noop("The policy wants a content hash, and this call carries none."),
    "secret": gettext_noop("An argument holds a secret. Such calls are neither looked up nor kept."),
    "no_member": gettext_noop("The call does not say which member asks."),
    "no_thread": gettext_noop("Results are shared within a thread, and this call names none."),
    "no_project": gettext_noop("Results are shared within a project, and this call names none."),
    "nul": gettext_noop("An argument holds a NUL, which the database keeps in no text."),
    "not_canonical": gettext_noop("The arguments have no one spelling in JSON."),
    "not_json": gettext_noop("The arguments hold what JSON can't."),
    "not_a_number": gettext_noop("The arguments hold a number that JSON can't."),
    "observe": gettext_noop(
        "The policy only watches: the tool runs, and what it says is compared with what is stored."
    ),
    "expired": gettext_noop("An answer is there, but its time is over. It goes with the next lookup."),
    "content_changed": gettext_noop("The same call was stored for another content. The tool runs again."),
    "no_entry": gettext_noop("Nobody has stored this call. The first one who asks runs the tool."),
    "in_flight": gettext_noop("Somebody runs this very call at the moment. Whoever asks now is told to wait."),
    "hit": gettext_noop("The stored answer would be given."),
}


@dataclass(frozen=True)
class Verdict:
    """What a lookup of the call would say, and why."""

    status: str
    reason: str
    arguments: str = ""
    changed: bool = False
    key: str = ""
    document: str = ""
    entry: Entry | None = None

    @property
    def words(self) -> str:
        """The reason as a sentence."""
        return gettext(WHY[self.reason]) if self.reason in WHY else self.reason


def attempt(tenant: Tenant, policy: Policy, call: Call, *, project: str, thread: str, by: Actor) -> Verdict:
    """What a lookup by this member would say now. Raises Problem 404 for a project id that is unknown to them."""
    why = policy.bypass(content_hash=call.content_hash)
    if not why and holds_secret(call.arguments, call.environment):
        return Verdict("bypass", "secret")
    try:
        said = pretty(normal(call.arguments, rules=policy.rules, root=call.root))
    except NotKeyable as refusal:
        return Verdict("bypass", str(refusal))
    changed = said != pretty(dict(call.arguments))
    if why:
        return Verdict("bypass", why, said, changed)
    found = projects.pk_of(tenant, project, by=by)
    place = found or (f"name:{project}" if project else "")
    try:
        is_limited = found is not None and tenant.projects.filter(pk=found, is_limited=True).exists()
        kind = "project" if policy.scope == "team" and is_limited else policy.scope
        scope = scope_ref(kind, member=by.member_pk or "", thread=thread, project=place)
        beside = place_ref(kind, project=place, content_hash=call.content_hash, is_limited=is_limited)
        salt = f"{policies.settings_of(tenant).salt}.{policy.salt}"
        key = tool_key(call, tenant=str(tenant.pk), scope=scope, salt=salt, rules=policy.rules, place=beside)
    except (NotKeyable, InvalidPolicy) as refusal:
        return Verdict("bypass", str(refusal), said, changed)
    status, reason, entry = _looked_up(tenant, policy, key.digest, key.identity)
    return Verdict(status, reason, said, changed, key.hex, key.document, entry)


def _looked_up(tenant: Tenant, policy: Policy, digest: bytes, identity: bytes) -> tuple[str, str, Entry | None]:
    """What is under a key: as the lookup's SQL decides it, without its leases and its counting."""
    now = timezone.now()
    entry = tenant.cache_entries.select_related("result").filter(key=digest).first()
    if policy.mode == "observe":
        return "bypass", "observe", entry
    if entry is not None:
        is_over = entry.expires_at is not None and (
            entry.expires_at <= now or entry.created_at > now + timedelta(minutes=1)
        )
        return ("miss", "expired", entry) if is_over else ("hit", "hit", entry)
    if Flight.objects.filter(tenant=tenant, key=digest, until__gt=now).exists():
        return "wait", "in_flight", None
    was = tenant.cache_entries.filter(identity=identity).exists()
    return "miss", "content_changed" if was else "no_entry", None


def with_values(tenant: Tenant, tool: str, given: Mapping[str, Any]) -> Policy:
    """The policy as it would be with these values; nothing is saved. Raises InvalidPolicy."""
    row = tenant.tool_policies.filter(tool=tool).first()
    now = policies.as_row(row) if row else {"tool": tool, "salt": 0, **_defaults(tenant, tool)}
    try:
        return policies.of_row({**now, **given}, tool)
    except (ValueError, TypeError) as wrong:
        raise InvalidPolicy(str(wrong)) from None


def _defaults(tenant: Tenant, tool: str) -> dict[str, Any]:
    return editable(policies.of_tool(tenant, tool))


def editable(policy: Policy) -> dict[str, Any]:
    """A policy's fields as its row would hold them."""
    rules = policy.rules
    kinds = ("paths", "urls", "numbers", "queries", "commands", "http_hosts")
    plain = {name: getattr(policy, name) for name in policies.FIELDS if name not in ("rules", "schema")}
    said = {kind: sorted(getattr(rules, kind)) for kind in kinds if getattr(rules, kind)}
    return {**plain, "rules": {**said, **({"defaults": dict(rules.defaults)} if rules.defaults else {})}, "schema": {}}
