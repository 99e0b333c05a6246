"""All that a team has, as one zip: a file of JSON lines for each table, streamed as it is read."""

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import orjson
from django.db import connection, transaction

from memory.graph import bodies
from memory.ops.teams import Team
from memory.tenants import rls
from memory.tenants.models import User

# What opens a door, or is sealed under the server's key: of no use elsewhere, and of much to who finds the file.
# A column of bytes that stands neither here nor in KEPT is left out too.
WITHHELD: Final = {
    "tenants_agentkey.hash",
    "tenants_invitation.hash",
    "tenants_loginlink.hash",
    "tenants_setting.secret",
    "tenants_signon.secret",
    "tenants_arrival.asked",
    "tenants_arrival.assertion",
    "tenants_arrival.claims",
    "tenants_message.sealed",
    "graph_endpoint.secret",
    "graph_endpoint.previous_secret",
}
# Bytes that are the team's own: payloads, and the digests by which rows name them.
KEPT: Final = {
    "tenants_audithead.hash",
    "tenants_auditentry.previous_hash",
    "tenants_auditentry.hash",
    "graph_trigger.fingerprint",
    "graph_worker.report_sha256",
    "graph_part.sha256",
    "graph_part.content",
    "graph_answer.asked",
    "graph_body.sha256",
    "graph_body.content",
    "events_event.sha256",
    "notes_revision.sha256",
    "notes_proposal.sha256",
    "recall_vector.sha256",
    "cache_admin_content.sha256",
    "cache_admin_content.content",
    "cache_admin_result.sha256",
    "cache_admin_entry.key",
    "cache_admin_entry.identity",
    "cache_admin_flight.key",
    "cache_admin_question.space",
}
# Those of them that are somebody's words. The rest are digests.
_CONTENTS: Final = {"graph_part.content", "graph_body.content", "cache_admin_content.content"}
_ROWS: Final = 500
README: Final = """{name} ({slug}), exported from Team Memory on {day}.

tables/NAME.ndjson holds the rows of the table NAME, one JSON object a line, from one moment. people.ndjson names the
people in it. Digests are in hex. Other bytes are text where they are UTF-8, else {{"base64": "..."}}; compressed ones
are unpacked. Times are UTC.

Left out, because they open doors: {withheld}; and passwords and second factors, which belong to people and not to the
team.
"""


@dataclass(frozen=True)
class Table:
    """A table of teams' rows: the column that names the team, and the type of each column."""

    name: str
    owner: str
    columns: dict[str, str]

    def leaves(self, column: str) -> bool:
        """Whether the column may leave the server."""
        name = f"{self.name}.{column}"
        return name in KEPT or (name not in WITHHELD and self.columns[column] not in ("bytea", "tsvector"))


def tables() -> list[Table]:
    """Every table whose rows are a team's, as the database knows them: not each of them has a model."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),
                      array_agg(format_type(a.atttypid, NULL) ORDER BY a.attnum)
               FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               WHERE p.polname = 'tenant_isolation' GROUP BY c.relname ORDER BY c.relname"""
        )
        rows = cursor.fetchall()
    return [
        Table(name, "tenant_id" if "tenant_id" in columns else "id", dict(zip(columns, types, strict=True)))
        for name, columns, types in rows
    ]


class _Drain(io.RawIOBase):
    """A file that can only be written, and gives away what was."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def taken(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts.clear()
        return whole


def streamed(team: Team) -> Iterator[bytes]:
    """The zip, piece by piece, in a transaction of its own that sees one moment and this team alone."""
    drain = _Drain()
    with rls.seeing(rls.SERVER), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rls.bind(team.pk)
        with zipfile.ZipFile(drain, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as packed:
            said = README.format(
                name=team.name, slug=team.slug, day=date.today().isoformat(), withheld=", ".join(sorted(WITHHELD))
            )
            packed.writestr("README.txt", said)
            yield from _written(packed, drain, "people.ndjson", _people(team.pk))
            for table in tables():
                yield from _written(packed, drain, f"tables/{table.name}.ndjson", _rows(table, team.pk))
    yield drain.taken()


def _written(packed: zipfile.ZipFile, drain: _Drain, name: str, lines: Iterator[bytes]) -> Iterator[bytes]:
    with packed.open(name, "w", force_zip64=True) as file:
        for line in lines:
            file.write(line + b"\n")
            if part := drain.taken():
                yield part
    yield drain.taken()


def _people(tenant_pk: str) -> Iterator[bytes]:
    people = User.objects.filter(memberships__tenant_id=tenant_pk).order_by("email")
    for pk, email, name in people.values_list("pk", "email", "name"):
        yield orjson.dumps({"id": str(pk), "email": email, "name": name})


def _rows(table: Table, tenant_pk: str) -> Iterator[bytes]:
    columns = [column for column in table.columns if table.leaves(column)]
    quote = connection.ops.quote_name
    wanted = ", ".join(map(quote, columns))
    # Bound, row level security shows no other team's; by the condition an index may serve.
    with connection.chunked_cursor() as cursor:
        cursor.execute(f"SELECT {wanted} FROM {quote(table.name)} WHERE {table.owner} = %s", [tenant_pk])  # noqa: S608
        while rows := cursor.fetchmany(_ROWS):
            for row in rows:
                said = dict(zip(columns, row, strict=True))
                if said.get("codec"):
                    said |= {"content": _unpacked(tenant_pk, said), "codec": ""}
                yield orjson.dumps({name: _value(table, name, value) for name, value in said.items()}, default=str)


def _unpacked(tenant_pk: str, said: Mapping[str, Any]) -> bytes | None:
    """What a body or a cached text was, wherever it lies; None where its storage has lost it."""
    if said["codec"] == "s3":
        return bodies.fetch(tenant_pk, bytes(said["sha256"]))
    return zlib.decompress(bytes(said["content"]))


def _value(table: Table, column: str, value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        return _text(raw) if f"{table.name}.{column}" in _CONTENTS else raw.hex()
    if table.columns[column] in ("json", "jsonb") and isinstance(value, str):
        return orjson.loads(value)
    return value


def _text(raw: bytes) -> Any:
    """Text where it is text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
