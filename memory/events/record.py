"""Events into the database: a batch in one round trip, each with its `seq` under the session's lock."""

import hashlib
import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from memory import ids
from memory.tenants import trip
from memory.tenants.access import MAY, SCOPES
from memory.tenants.races import persistently

# A larger body leaves the row: a page of events must not drag megabytes along.
SPILL_BYTES: Final = 16 * 1024
EDGE_BYTES: Final = 2 * 1024
# Array literals: adapting two lists costs more than all the other parameters.
_ROLES: Final = f"{{{','.join(sorted(MAY['event.record'] - {'agent', 'dream'}))}}}"
_SCOPES: Final = f"{{{','.join(sorted(scope for scope, actions in SCOPES.items() if 'event.record' in actions))}}}"


class UnknownKey(Exception):
    """The agent key is unknown, expired or revoked."""


class MayNotRecord(Exception):
    """The key has no scope for it, or its owner no role."""


class Home(NamedTuple):
    """The session an event belongs to, and where it works."""

    client: str
    key: str
    git_remote: str = ""
    workspace_root: str = ""
    is_internal: bool = False


class Arrival(NamedTuple):
    """One event fit to be stored: without secrets, without text that PostgreSQL refuses."""

    home: Home
    name: str
    kind: str
    key: str
    body: bytes
    key_is_given: bool = False
    occurred_at: datetime | None = None
    agent_id: str = ""
    tool: str = ""
    tool_use_id: str = ""
    summary: str = ""
    prompt: str = ""
    source: str = ""
    model: str = ""
    cwd: str = ""
    transcript_path: str = ""
    resumed_from: str = ""
    renews: bool = False
    # The hook client brought it, and not the harness itself.
    by_client: bool = False
    redactions: int = 0
    sanitized: int = 0


class Recorded(NamedTuple):
    """What became of an arrival: `new`, `repeat`, `conflict` (its given key holds another body), `deleted` (its
    session was: nothing is kept), or `closed` (it belongs to a project that the key may not work in: nothing is kept).
    """

    outcome: str
    event_id: str
    session_id: str
    seq: int
    event_pk: str
    session_pk: str
    tenant_pk: str
    member_pk: str | None


def record(key_hash: bytes, arrivals: Sequence[Arrival]) -> list[Recorded]:
    """Store what an agent key's holder sent, in a transaction of its own; the answers in the order of the arrivals.

    Raises UnknownKey, MayNotRecord.
    """
    batch = _Batch(arrivals)
    # Two that give one key to two sessions, or open the same sessions crosswise, meet here.
    rows = persistently(
        lambda: trip.rows(
            # Keys as text: making UUIDs of them and text of those takes as long as all the rest of the answer.
            "SELECT i, outcome, event_id, session_id, seq,"
            " event_pk::text, session_pk::text, tenant_pk::text, member_pk::text"
            " FROM record_events(%b, %t::text[], %t::text[], %t::jsonb, %t::jsonb, %b)",
            (key_hash, _ROLES, _SCOPES, batch.sessions, batch.events, batch.bodies),
        )
    )
    if not rows:
        raise UnknownKey
    if rows[0][0] < 0:
        raise MayNotRecord
    return [Recorded._make(row[1:]) for row in sorted(rows, key=_ordinal)]


def store(tenant_pk: str, member_pk: str | None, arrivals: Sequence[Arrival]) -> list[Recorded]:
    """Store a batch in the running transaction, which is bound to the tenant: what imports call."""
    batch = _Batch(arrivals)
    rows = trip.rows(
        "SELECT i, outcome, event_id, session_id, seq, event_pk::text, session_pk::text, %t, %t"
        " FROM store_events(%t::uuid, %t::uuid, NULL, %t::jsonb, %t::jsonb, %b)",
        (tenant_pk, member_pk, tenant_pk, member_pk, batch.sessions, batch.events, batch.bodies),
    )
    return [Recorded._make(row[1:]) for row in sorted(rows, key=_ordinal)]


def is_closed(tenant_pk: str, key_pk: str | None, home: Home) -> bool:
    """Whether a session is, or would be, in a project that is closed to who looks in the bound transaction."""
    [session] = orjson.loads(_Batch.alone(home))
    asked = (tenant_pk, key_pk, _json(session))
    return bool(trip.rows("SELECT place_is_closed(%t::uuid, %t::uuid, %t::jsonb)", asked)[0][0])


def opened(tenant_pk: str, member_pk: str | None, home: Home) -> str:
    """The key of the session's row, made where it is missing, and locked. For a transaction bound to the tenant."""
    [(_, pk)] = trip.rows(
        "SELECT s, session_pk FROM open_sessions(%t::uuid, %t::uuid, %t::jsonb)",
        (tenant_pk, member_pk, _Batch.alone(home)),
    )
    return str(pk)


def _ordinal(row: tuple[Any, ...]) -> int:
    return int(row[0])


class _Batch:
    """Arrivals as the SQL function takes them: sessions once, events, and large bodies beside them."""

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self.bodies: list[bytes] = []
        self._homes: dict[tuple[str, str], int] = {}
        self._sessions: list[dict[str, Any]] = []
        self.events = _json([self._event(place, arrival) for place, arrival in enumerate(arrivals)])
        self.sessions = _json(self._sessions)

    @classmethod
    def alone(cls, home: Home) -> str:
        """A session without events."""
        batch = cls([])
        batch._session(home)
        return _json(batch._sessions)

    def _session(self, home: Home) -> int:
        place = self._homes.setdefault((home.client, home.key), len(self._sessions))
        if place == len(self._sessions):
            self._sessions.append(
                {
                    "s": place,
                    "pk": ids.new_key(),
                    "id": ids.mint("session"),
                    "client": home.client,
                    "key": home.key,
                    "remote": home.git_remote,
                    "root": home.workspace_root,
                    "internal": home.is_internal,
                }
            )
        elif home.git_remote and not self._sessions[place]["remote"]:
            self._sessions[place]["remote"] = home.git_remote
        return place

    def _event(self, place: int, arrival: Arrival) -> dict[str, Any]:
        body = arrival.body
        event: dict[str, Any] = {
            "i": place,
            "s": self._session(arrival.home),
            "pk": ids.new_key(),
            "id": ids.mint("event"),
            "client": arrival.home.client,
            "name": arrival.name,
            "kind": arrival.kind,
            "key": arrival.key,
            "sha": hashlib.sha256(body).hexdigest(),
            "size": len(body),
        }
        # What is empty stays out: half of the fields, and half of what it takes the database to read them.
        for name, value in (
            ("is_given", arrival.key_is_given),
            ("at", arrival.occurred_at),
            ("agent", arrival.agent_id),
            ("tool", arrival.tool),
            ("use", arrival.tool_use_id),
            ("summary", arrival.summary),
            ("redactions", arrival.redactions),
            ("sanitized", arrival.sanitized),
            ("prompt", _first_line(arrival.prompt) if arrival.prompt else ""),
            ("source", arrival.source),
            ("model", arrival.model),
            ("cwd", arrival.cwd),
            ("path", arrival.transcript_path),
            ("resumed", arrival.resumed_from),
            ("renews", arrival.renews),
        ):
            if value:
                event[name] = value
        if len(body) <= SPILL_BYTES:
            event["body"] = body.decode()
        else:
            event["spill"] = len(self.bodies)
            event["head"] = body[:EDGE_BYTES].decode(errors="ignore")
            event["tail"] = body[-EDGE_BYTES:].decode(errors="ignore")
            self.bodies.append(zlib.compress(body, 3))
        return event


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _first_line(prompt: str) -> str:
    return prompt.lstrip()[:1000].partition("\n")[0].strip()[:200]
