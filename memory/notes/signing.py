"""The signature under an export: Ed25519, by a key that this installation's secret gives."""

import base64
import hashlib
from functools import lru_cache
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings


@lru_cache(maxsize=4)
def _key(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"export:{secret}".encode()).digest())


def public_key() -> str:
    """This installation's key, as text: who knows it can check an export anywhere."""
    raw = _key(settings.SECRET_KEY).public_key()
    encoded = raw.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.b64encode(encoded).decode()


def signed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with key and signature; signed is its canonical JSON (RFC 8785) without the signature."""
    whole = {**manifest, "public_key": public_key()}
    signature = _key(settings.SECRET_KEY).sign(rfc8785.dumps(whole))
    return {**whole, "signature": base64.b64encode(signature).decode()}


def checked(manifest: Any) -> str:
    """`valid` by this installation's key, `other` by the key it names, `none` without a signature, else `wrong`."""
    if not isinstance(manifest, dict) or "signature" not in manifest:
        return "none"
    whole = {name: value for name, value in manifest.items() if name != "signature"}
    try:
        key = base64.b64decode(str(whole.get("public_key", "")), validate=True)
        signature = base64.b64decode(str(manifest["signature"]), validate=True)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, rfc8785.dumps(whole))
    except (InvalidSignature, ValueError, rfc8785.CanonicalizationError):
        return "wrong"
    return "valid" if whole["public_key"] == public_key() else "other"
