"""Ask the cache: policy, key, and one SQL round trip that checks the agent key, binds, reads, leases and counts."""

import hashlib
import hmac
import json
import secrets
import time
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from django.conf import settings
from django.db import connection, transaction
from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation

from cache_admin import policies
from cache_admin.keys import Call, Key, canonical, tool_key
from cache_admin.normalize import NotKeyable, carries_secret
from cache_admin.policy import SCOPES, InvalidPolicy, Policy, place_ref, scope_ref
from memory import ids, redact
from memory.problems import Problem, not_found
from memory.tenants import trip
from memory.tenants.access import MAY
from memory.tenants.access import SCOPES as KEY_SCOPES

_ROLES: Final = sorted(MAY["cache.use"] - {"agent", "dream"})
_OPENS: Final = sorted(scope for scope, actions in KEY_SCOPES.items() if "cache.use" in actions)
_KNOWN_AT_MOST: Final = 10_000
_ATTEMPTS: Final = 5


class UnknownKey(Exception):
    """The agent key is unknown, expired or revoked."""


class MayNotUse(Exception):
    """The key has no scope for the cache, or its owner no role."""


@dataclass(frozen=True)
class Asked:
    """A lookup as it came in."""

    call: Call
    project: str = ""
    remote: str = ""
    thread: str = ""
    scope: str = ""
    session: str = ""
    have: tuple[str, ...] = ()
    want: str = ""
    held: str = ""
    lease_s: int = 0
    hints: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "tool"
    question: str = ""
    embedder: str = ""
    bypass: str = ""


@dataclass(frozen=True)
class Standing:
    """What was true of a key's holder and a tool when last heard; the database says when it no longer is."""

    state: str
    tenant: str = ""
    member: str = ""
    project: str = ""
    salt: int = 0
    row: Mapping[str, Any] | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the project, or the key, may not share beyond the project."""
        return self.state.endswith(".limited")


@dataclass(frozen=True)
class Answer:
    """What the cache says: `status` is hit, miss, wait or bypass."""

    status: str
    reason: str
    key: Key | None = None
    lease: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    standing: Standing = Standing("")
    policy: Policy | None = None
    space: str = ""
    log: str = ""


@dataclass(frozen=True)
class Plan:
    """A call with its policy and key, or why it has none."""

    policy: Policy
    bypass: str = ""
    scope: str = ""
    key: Key | None = None
    space: str = ""


_known: dict[tuple[bytes, str, str], Standing] = {}


def look(key_hash: bytes, asked: Asked) -> Answer:
    """The cache's answer to a call. Raises UnknownKey, MayNotUse, Problem 404 for an unknown project id."""
    place = (key_hash, asked.call.tool, asked.project)
    for _ in range(_ATTEMPTS):
        standing = _known.get(place, Standing(""))
        began = time.perf_counter()
        plan = _plan(asked, standing) if standing.state else Plan(Policy(asked.call.tool))
        lease = new_lease(plan.key.hex, key_hash, held=asked.held) if plan.key else ""
        given = _request(asked, standing, plan, lease)
        given["log"] = ids.new_key()
        given["hash_us"] = int((time.perf_counter() - began) * 1e6)
        status, reason, about, content = _ask(key_hash, given)
        if status == "renew":
            _remember(place, about)
            continue
        if status == "unauthenticated":
            raise UnknownKey
        if status == "forbidden":
            raise MayNotUse
        is_leased = status == "miss" or reason == "observe" or bool(about.get("revalidate"))
        return Answer(
            status,
            reason,
            plan.key,
            lease if is_leased else "",
            about,
            _unpacked(content, about),
            standing,
            plan.policy,
            plan.space,
            given["log"],
        )
    raise Problem(503, "unavailable", "The policy of this tool changes faster than it can be read. Ask again.")


def _remember(place: tuple[bytes, str, str], about: Mapping[str, Any]) -> None:
    if len(_known) > _KNOWN_AT_MOST:
        _known.clear()
    _known[place] = Standing(
        about["state"],
        about["tenant"],
        about["member"],
        about["project"] or "",
        about["salt"],
        about["policy"],
    )


def _plan(asked: Asked, standing: Standing) -> Plan:
    """Pure: the policy, and the key of the call or the reason it has none."""
    policy = policies.of_row(standing.row, asked.call.tool, hints=asked.hints)
    if asked.project.startswith("prj_") and not standing.project:
        raise not_found(asked.project)
    why = asked.bypass or policy.bypass(content_hash=asked.call.content_hash)
    if not why and holds_secret(asked.call.arguments, asked.call.environment):
        why = "secret"
    if why:
        return Plan(policy, why)
    try:
        scope, place = _scope(policy, asked, standing)
        salt = f"{standing.salt}.{policy.salt}"
        rules = replace(policy.rules, queries=policy.rules.queries | {"query"}) if asked.question else policy.rules
        key = tool_key(asked.call, tenant=standing.tenant, scope=scope, salt=salt, rules=rules, place=place)
        space = _space(asked, key) if asked.question else ""
    except (NotKeyable, InvalidPolicy) as refusal:
        return Plan(policy, str(refusal)[:30])
    return Plan(policy, "", scope, key, space)


def _space(asked: Asked, key: Key) -> str:
    """All that a question's answer hangs on but its words. Only questions of one space are ever compared."""
    about = json.loads(key.document)
    about["arguments"].pop("query", None)
    return hashlib.sha256(canonical(about) + asked.embedder.encode()).hexdigest()


def holds_secret(*values: Any) -> bool:
    """Whether any value holds a password, a token or a key: such a call is neither cached nor kept."""
    return any(carries_secret(value) for value in values) or any(
        one.redactions for one in redact.clean_many([value for value in values if value])
    )


def _scope(policy: Policy, asked: Asked, standing: Standing) -> tuple[str, str]:
    """The narrower of what the policy allows and what the caller asks for, and the project where that has to count."""
    # What is found in a project that is open to some is not the whole team's.
    scope = "project" if policy.scope == "team" and standing.is_limited else policy.scope
    if asked.scope and SCOPES.index(asked.scope) < SCOPES.index(scope):
        scope = asked.scope
    # A name that is no project yet is still a place to share in; a project's own key can't be mistaken for it.
    project = standing.project or (f"name:{asked.project}" if asked.project else "")
    place = place_ref(scope, project=project, content_hash=asked.call.content_hash, is_limited=standing.is_limited)
    return scope_ref(scope, member=standing.member, thread=asked.thread, project=project), place


def _request(asked: Asked, standing: Standing, plan: Plan, lease: str) -> dict[str, Any]:
    key, policy = plan.key, plan.policy
    return {
        "tool": asked.call.tool,
        "kind": asked.kind,
        "project": asked.project,
        "remote": asked.remote,
        "state": standing.state,
        "bypass": plan.bypass,
        "mode": policy.mode,
        "key": key.hex if key else "",
        "identity": key.identity.hex() if key else "",
        "document": key.document if key else "",
        "session": asked.session,
        "have": list(asked.have),
        "want": asked.want,
        "held": asked.held,
        "lease": lease,
        "lease_s": asked.lease_s or policy.lease_s,
        "shadow": policy.shadow_percent,
        "inputs": _inputs(asked, standing, plan) if key else {},
    }


def _inputs(asked: Asked, standing: Standing, plan: Plan) -> dict[str, Any]:
    """What storing the answer will need: it is kept with the lease, so that the writer can't make it up."""
    return {
        "tool": asked.call.tool,
        "scope": plan.scope,
        "identity": plan.key.identity.hex() if plan.key else "",
        "paths": list(plan.key.paths) if plan.key else [],
        "content_hash": asked.call.content_hash,
        "project": standing.project,
        "summariser": plan.policy.summariser,
        "ttl_s": plan.policy.ttl_s,
        "empty_ttl_s": plan.policy.empty_ttl_s,
        "is_private": plan.scope.startswith("member:"),
        "mode": plan.policy.mode,
        **({"question": asked.question, "space": plan.space} if asked.question else {}),
    }


def new_lease(key_hex: str, key_hash: bytes, *, held: str = "") -> str:
    """A lease that only this agent key can use, for this cache key; nothing has to be stored to check it.

    It says when the run it is for may have begun: one that is made to last longer (`held`) keeps that time.
    """
    since = held[4:12] if is_lease(held, key_hex, key_hash) else f"{int(time.time()):08x}"
    nonce = since + secrets.token_hex(8)
    return f"lse_{nonce}{_mac(nonce, key_hex, key_hash)}"


def is_lease(lease: str, key_hex: str, key_hash: bytes) -> bool:
    """Whether we gave this lease to this agent key for this cache key."""
    nonce, mac = lease[4:28], lease[28:]
    return lease.startswith("lse_") and hmac.compare_digest(mac.encode(), _mac(nonce, key_hex, key_hash).encode())


def leased_at(lease: str) -> datetime:
    """When the tool may have begun to run, of a lease that we gave."""
    return datetime.fromtimestamp(int(lease[4:12], 16), UTC)


def _mac(nonce: str, key_hex: str, key_hash: bytes) -> str:
    secret = hashlib.sha256(f"lease:{settings.SECRET_KEY}".encode()).digest()
    return hmac.new(secret, f"{nonce}:{key_hex}:".encode() + key_hash, hashlib.sha256).hexdigest()[:32]


def _unpacked(content: bytes | None, about: Mapping[str, Any]) -> bytes | None:
    if content is None:
        return None
    return zlib.decompress(content) if about.get("codec") == "zlib" else bytes(content)


def _ask(key_hash: bytes, given: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any], bytes | None]:
    """One round trip. Two that lease one key crosswise with a purge may be told to come again."""
    for attempt in range(_ATTEMPTS):
        try:
            # Inside a transaction what failed takes back its own part alone, or nothing more could be asked.
            with transaction.atomic() if connection.in_atomic_block else nullcontext():
                return _row(key_hash, orjson.dumps(given).decode())
        except (UniqueViolation, DeadlockDetected, SerializationFailure):
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _row(key_hash: bytes, given: str) -> tuple[str, str, Mapping[str, Any], bytes | None]:
    sql = "SELECT status, reason, about::text, content FROM cache_lookup(%b, %t, %t, %t::jsonb)"
    [(status, reason, about, content)] = trip.rows(sql, (key_hash, _ROLES, _OPENS, given))
    return status, reason, orjson.loads(about) if about else {}, content
