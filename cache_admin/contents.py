"""Full texts, kept once for each content and team."""

import hashlib
import zlib

from django.db import connection

from cache_admin.models import Content
from memory import ids

# Below this, packing costs more than it saves.
PACK_FROM = 1024


def keep(tenant_pk: str, text: bytes) -> bytes:
    """Store a text unless the team has it; gives its SHA-256."""
    digest = hashlib.sha256(text).digest()
    packed = zlib.compress(text, 3) if len(text) >= PACK_FROM else text
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cache_admin_content (id, tenant_id, sha256, size, codec, content, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, now()) ON CONFLICT (sha256, tenant_id) DO UPDATE SET created_at = now()",
            [ids.new_key(), tenant_pk, digest, len(text), "zlib" if len(text) >= PACK_FROM else "", packed],
        )
    return digest


def text_of(tenant_pk: str, digest: bytes) -> bytes | None:
    """The stored text, or None where it was evicted."""
    row = Content.objects.filter(tenant_id=tenant_pk, sha256=digest).first()
    if row is None:
        return None
    return zlib.decompress(bytes(row.content)) if row.codec == "zlib" else bytes(row.content)
