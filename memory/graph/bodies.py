"""Payload bodies by the SHA-256 of their bytes: in PostgreSQL, or in the S3-compatible storage of the settings."""

import hashlib
import zlib
from typing import Final, NamedTuple

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection

from memory.graph.models import Body

# A larger body leaves its row: a page of rows must not drag megabytes along.
SPILL_BYTES: Final = 16 * 1024
EDGE_BYTES: Final = 2 * 1024
STORAGE: Final = "payloads"


class Packed(NamedTuple):
    """Bytes ready for their row: `content` goes into the row, or stays empty where the storage has them."""

    sha256: bytes
    size: int
    is_spilled: bool
    codec: str
    content: bytes


def pack(raw: bytes, *, tenant_pk: str | None) -> Packed:
    """The bytes as they are stored. Where a storage is set, a large one is uploaded here, into the team's folder: call
    it before any transaction. Without `tenant_pk` they stay in PostgreSQL.
    """
    digest = hashlib.sha256(raw)
    if len(raw) <= SPILL_BYTES:
        return Packed(digest.digest(), len(raw), False, "", raw)
    if not settings.PAYLOADS_IN_STORAGE or tenant_pk is None:
        return Packed(digest.digest(), len(raw), True, "zlib", zlib.compress(raw, 3))
    _upload(name_of(tenant_pk, digest.digest()), raw)
    return Packed(digest.digest(), len(raw), True, "s3", b"")


def keep(tenant_pk: str, packed: Packed) -> None:
    """Put a spilled body into the store, inside the bound transaction. The same bytes are kept once a month."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO graph_body (tenant_id, sha256, stored_on, size, codec, content)"
            " VALUES (%s, %s, date_trunc('month', now())::date, %s, %s, %s) ON CONFLICT DO NOTHING",
            [tenant_pk, packed.sha256, packed.size, packed.codec, packed.content],
        )


def fetch(tenant_pk: str, sha256: bytes) -> bytes | None:
    """The bytes as they came in; None where retention has dropped them. The tenant must be bound."""
    body = Body.objects.filter(tenant_id=tenant_pk, sha256=sha256).order_by("stored_on").first()
    if body is None:
        return None
    if body.codec == "s3":
        with storages[STORAGE].open(name_of(tenant_pk, sha256)) as stored:
            return zlib.decompress(stored.read())
    content = bytes(body.content)
    return zlib.decompress(content) if body.codec == "zlib" else content


def edges(raw: bytes) -> tuple[str, str]:
    """The beginning and the end of a text that leaves its row."""
    return raw[:EDGE_BYTES].decode(errors="ignore"), raw[-EDGE_BYTES:].decode(errors="ignore")


def _upload(name: str, raw: bytes) -> None:
    """Content-addressed, so what is there already is the same: the storage is asked before it is sent 32 MB again."""
    storage = storages[STORAGE]
    if not storage.exists(name):
        storage.save(name, ContentFile(zlib.compress(raw, 3)))


def name_of(tenant_pk: str, sha256: bytes) -> str:
    """What a body is called in the storage."""
    digest = sha256.hex()
    return f"{tenant_pk}/{digest[:2]}/{digest}"
