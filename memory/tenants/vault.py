"""Secrets that must be read again (a model's key): encrypted under a key made of SECRET_KEY, older ones still open."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from memory.sentences import sentence


class Unreadable(Exception):
    """The secret was sealed under a key that is gone: enter it again on the settings page."""


def sealed(secret: str) -> bytes:
    """The secret as it is stored."""
    return _keys().encrypt(secret.encode())


def opened(kept: bytes) -> str:
    """The secret again. Raises Unreadable."""
    try:
        return _keys().decrypt(kept).decode()
    except InvalidToken:
        raise Unreadable(
            sentence("Enter the secret again on the settings page: the key it was sealed with is gone.")
        ) from None


def resealed(kept: bytes) -> bytes:
    """The same secret under the current key. Raises Unreadable."""
    return sealed(opened(kept))


def _keys() -> MultiFernet:
    masters = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([Fernet(_key(str(master))) for master in masters])


def _key(master: str) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(f"team-memory vault v1:{master}".encode()).digest())
