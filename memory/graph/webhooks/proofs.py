"""How a sender proves itself, checked over the raw bytes and in constant time. Pure: the clock is given."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.utils.translation import gettext

from memory.graph.webhooks.secrets import digest
from memory.sentences import sentence

# A signed call may be this old: long enough for a slow way, too short to be worth stealing.
CLOCK_SECONDS: Final = 300
METHODS: Final = ("hmac", "token", "standard", "slack")
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
_HASHES: Final = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}

Headers = Mapping[str, str]


class Unproven(Exception):
    """The call does not prove who sent it; `code` and the words say what is missing, never what would be right."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True)
class Proof:
    """What a sender must show.

    `hmac`: a hash of the body under the secret, in a header. `token`: the secret itself, in a header. `standard`: the
    scheme of Standard Webhooks. `slack`: Slack's own.
    """

    method: str
    header: str = ""
    prefix: str = ""
    encoding: str = "hex"
    algorithm: str = "sha256"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(gettext("The method is one of %(methods)s.") % {"methods": ", ".join(METHODS)})
        if self.method in ("hmac", "token") and not _HEADER.fullmatch(self.header):
            raise ValueError(gettext("The header's name is letters, digits and dashes, e.g. X-Signature-256."))
        if self.encoding not in ("hex", "base64"):
            raise ValueError(gettext("The encoding is hex or base64."))
        if self.algorithm not in _HASHES:
            raise ValueError(gettext("The algorithm is sha256 or sha512."))
        if len(self.prefix) > 20:
            raise ValueError(gettext("The prefix has up to 20 characters, e.g. sha256=."))

    @property
    def keeps_secret(self) -> bool:
        """True where checking needs the secret itself, not its hash."""
        return self.method != "token"

    def stored(self) -> dict[str, Any]:
        return asdict(self)


GITHUB: Final = Proof("hmac", header="X-Hub-Signature-256", prefix="sha256=")
GITLAB: Final = Proof("token", header="X-Gitlab-Token")
SLACK: Final = Proof("slack")
BEARER: Final = Proof("token", header="Authorization", prefix="Bearer ")
STANDARD: Final = Proof("standard")
USUAL: Final = {"github": GITHUB, "gitlab": GITLAB, "slack": SLACK, "mail": BEARER, "generic": BEARER}


def check(proof: Proof, kept: Sequence[str | bytes], headers: Headers, raw: bytes, *, now: float) -> None:
    """Raises Unproven unless the call proves one of the kept secrets (the secret itself, or its digest for a token)."""
    match proof.method:
        case "hmac":
            _check_hmac(proof, kept, headers, raw)
        case "token":
            _check_token(proof, kept, headers)
        case "slack":
            _check_slack(kept, headers, raw, now)
        case _:
            _check_standard(kept, headers, raw, now)


def _check_hmac(proof: Proof, secrets: Sequence[str | bytes], headers: Headers, raw: bytes) -> None:
    shown = headers.get(proof.header, "").strip()
    if not shown:
        if proof.header == GITHUB.header and "X-Hub-Signature" in headers:
            raise Unproven(
                "weak_signature", sentence("Only X-Hub-Signature (SHA-1) was sent. Send X-Hub-Signature-256.")
            )
        raise Unproven(
            "no_signature",
            sentence("The header %(header)s is missing. Set the endpoint's secret at the sender.", header=proof.header),
        )
    if not shown.startswith(proof.prefix):
        raise Unproven(
            "wrong_signature",
            sentence("%(header)s must begin with %(prefix)s", header=proof.header, prefix=proof.prefix),
        )
    given = _bytes(shown.removeprefix(proof.prefix), proof.encoding)
    _one_of(given, [_hmac(_key(secret), raw, proof.algorithm) for secret in secrets], proof.header)


def _check_token(proof: Proof, digests: Sequence[str | bytes], headers: Headers) -> None:
    shown = headers.get(proof.header, "").strip()
    if not shown:
        raise Unproven(
            "no_token",
            sentence("The header %(header)s is missing. Set the endpoint's secret at the sender.", header=proof.header),
        )
    if not shown.lower().startswith(proof.prefix.lower()):
        raise Unproven(
            "wrong_token", sentence("%(header)s must begin with %(prefix)s", header=proof.header, prefix=proof.prefix)
        )
    given = digest(shown[len(proof.prefix) :].strip())
    _one_of(given, [_key(one) for one in digests], proof.header)


def _check_slack(secrets: Sequence[str | bytes], headers: Headers, raw: bytes, now: float) -> None:
    stamp, shown = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "").strip()
    if not stamp or not shown:
        raise Unproven("no_signature", sentence("X-Slack-Signature and X-Slack-Request-Timestamp are needed."))
    _fresh(stamp, now)
    signed = b"v0:" + stamp.strip().encode() + b":" + raw
    given = _bytes(shown.removeprefix("v0="), "hex") if shown.startswith("v0=") else b""
    _one_of(given, [_hmac(_key(secret), signed, "sha256") for secret in secrets], "X-Slack-Signature")


def _check_standard(secrets: Sequence[str | bytes], headers: Headers, raw: bytes, now: float) -> None:
    said = [headers.get(f"webhook-{name}", "").strip() for name in ("id", "timestamp", "signature")]
    if not all(said):
        raise Unproven("no_signature", sentence("webhook-id, webhook-timestamp and webhook-signature are needed."))
    _fresh(said[1], now)
    signed = f"{said[0]}.{said[1]}.".encode("utf-8", "replace") + raw
    right = [_hmac(_standard_key(secret), signed, "sha256") for secret in secrets]
    shown = [_bytes(one.removeprefix("v1,"), "base64") for one in said[2].split(" ")[:10] if one.startswith("v1,")]
    # Every pair is compared, so that the time does not tell which one was near.
    fits = [hmac.compare_digest(one, other) for one in shown for other in right]
    if not any(fits):
        raise Unproven(
            "wrong_signature", sentence("webhook-signature does not fit the body and the endpoint's secret.")
        )


def _one_of(given: bytes, right: Sequence[bytes], header: str) -> None:
    fits = [hmac.compare_digest(given, one) for one in right]
    if not any(fits):
        raise Unproven(
            "wrong_signature",
            sentence("%(header)s does not fit the body and the endpoint's secret.", header=header),
        )


def _fresh(stamp: str, now: float) -> None:
    text = stamp.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12) or abs(now - int(text)) > CLOCK_SECONDS:
        raise Unproven(
            "stale",
            sentence(
                "The call's time is more than %(clock_seconds)s minutes from the server's clock.",
                clock_seconds=CLOCK_SECONDS // 60,
            ),
        )


def _hmac(key: bytes, signed: bytes, algorithm: str) -> bytes:
    return hmac.new(key, signed, _HASHES[algorithm]).digest()


def _key(secret: str | bytes) -> bytes:
    return secret.encode() if isinstance(secret, str) else secret


def _standard_key(secret: str | bytes) -> bytes:
    text = secret if isinstance(secret, str) else secret.decode()
    if not text.startswith("whsec_"):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return text.encode()


def _bytes(text: str, encoding: str) -> bytes:
    """The signature's bytes; none where it is not in the encoding, which fits nothing."""
    try:
        if encoding == "hex":
            return bytes.fromhex(text) if text.isascii() and len(text) <= 128 else b""
        return base64.b64decode(text, validate=True) if len(text) <= 128 else b""
    except (ValueError, binascii.Error):
        return b""
