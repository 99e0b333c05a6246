"""Secrets of endpoints: shown once, kept so that a copy of the database alone does not give them away.

An HMAC needs the secret itself to check with, so that one is kept encrypted: AES-256-GCM under a key that HKDF derives
from the app's SECRET_KEY, bound to the endpoint's row, so that a ciphertext can't be moved to another. What is only
compared (a token, a bearer) is kept as its SHA-256: it is random and long.
"""

import base64
import hashlib
import os
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_VERSION: Final = b"\x01"
_NONCE: Final = 12


class Unreadable(Exception):
    """The secret was encrypted under another SECRET_KEY: rotate the endpoint's secret."""


def new_secret(*, standard: bool = False) -> str:
    """A fresh secret of 256 bits; `standard` in the spelling of Standard Webhooks."""
    raw = secrets.token_bytes(32)
    if standard:
        return f"whsec_{base64.b64encode(raw).decode()}"
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def encrypted(secret: str, *, row: str) -> bytes:
    """The secret as it is kept for an HMAC. `row` is the endpoint's internal key."""
    nonce = os.urandom(_NONCE)
    return _VERSION + nonce + AESGCM(_key(settings.SECRET_KEY)).encrypt(nonce, secret.encode(), row.encode())


def decrypted(kept: bytes, *, row: str) -> str:
    """The secret again, also when it was encrypted under one of SECRET_KEY_FALLBACKS. Raises Unreadable."""
    nonce, sealed = kept[1 : 1 + _NONCE], kept[1 + _NONCE :]
    for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            return AESGCM(_key(str(key))).decrypt(nonce, sealed, row.encode()).decode()
        except (InvalidTag, ValueError):
            continue
    raise Unreadable(row)


def digest(secret: str) -> bytes:
    """What is kept of a secret that is only compared."""
    return hashlib.sha256(secret.encode()).digest()


def _key(master: str) -> bytes:
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"team-memory webhook secrets v1")
    return derived.derive(master.encode())
