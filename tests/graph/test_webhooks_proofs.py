"""How senders prove themselves: the vectors of their own documentation, and what must not pass."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.graph.webhooks import proofs, secrets
from memory.graph.webhooks.proofs import Proof, Unproven, check
from tests.graph.webhook_calls import DATA

VECTORS = json.loads((DATA / "vectors" / "webhook-signatures.json").read_text())
SCHEMES = {"github": proofs.GITHUB, "slack": proofs.SLACK, "standard-webhooks": proofs.STANDARD}


def headers_of(vector: dict[str, Any]) -> dict[str, str]:
    found = {vector["header"]: vector["expected"]}
    if vector["scheme"] == "slack":
        found["X-Slack-Request-Timestamp"] = vector["timestamp"]
    if vector["scheme"] == "standard-webhooks":
        found |= {"webhook-id": vector["id"], "webhook-timestamp": vector["timestamp"]}
    return found


def code_of(*given: Any, now: float = 0) -> str:
    try:
        check(*given, now=now)
    except Unproven as why:
        return why.code
    return "proven"


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["scheme"])
def test_the_published_vectors_hold(vector: dict[str, Any]) -> None:
    proof, raw, now = SCHEMES[vector["scheme"]], vector["payload"].encode(), float(vector.get("timestamp", 0))
    right = headers_of(vector)
    assert code_of(proof, [vector["secret"]], right, raw, now=now) == "proven"
    assert code_of(proof, ["another secret!!", vector["secret"]], right, raw, now=now) == "proven"
    assert code_of(proof, ["another secret!!"], right, raw, now=now) == "wrong_signature"
    assert code_of(proof, [vector["secret"]], right, raw + b"x", now=now) == "wrong_signature"
    assert code_of(proof, [vector["secret"]], {}, raw, now=now) == "no_signature"
    if now:
        for late in (301, -301):
            assert code_of(proof, [vector["secret"]], right, raw, now=now + late) == "stale"
        assert code_of(proof, [vector["secret"]], right, raw, now=now + 299) == "proven"


def test_only_sha1_is_refused_by_name() -> None:
    assert code_of(proofs.GITHUB, ["s"], {"X-Hub-Signature": "sha1=1"}, b"") == "weak_signature"


@pytest.mark.parametrize("stamp", ["", "x", "-1", "1e9", "9" * 30, "१२३", " "])
def test_a_time_that_is_none_is_stale_or_missing(stamp: str) -> None:
    sent = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=" + "0" * 64}
    assert code_of(proofs.SLACK, ["s"], sent, b"", now=1e9) in ("stale", "no_signature")


def test_a_token_is_compared_by_its_digest() -> None:
    kept = [secrets.digest("the-token-of-gitlab")]
    assert code_of(proofs.GITLAB, kept, {"X-Gitlab-Token": "the-token-of-gitlab"}, b"") == "proven"
    assert code_of(proofs.GITLAB, kept, {"X-Gitlab-Token": "the-token-of-gitlaB"}, b"") == "wrong_signature"
    assert code_of(proofs.GITLAB, kept, {}, b"") == "no_token"
    assert code_of(proofs.BEARER, kept, {"Authorization": "bearer the-token-of-gitlab"}, b"") == "proven"
    assert code_of(proofs.BEARER, kept, {"Authorization": "Basic the-token-of-gitlab"}, b"") == "wrong_token"


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
def test_a_header_of_ones_own(algorithm: str, encoding: str) -> None:
    import base64

    raw = hmac.new(b"shared-secret-16", b"body", getattr(hashlib, algorithm)).digest()
    shown = raw.hex() if encoding == "hex" else base64.b64encode(raw).decode()
    proof = Proof("hmac", header="X-Sig", prefix="v1:", encoding=encoding, algorithm=algorithm)
    assert code_of(proof, ["shared-secret-16"], {"X-Sig": f"v1:{shown}"}, b"body") == "proven"
    assert code_of(proof, ["shared-secret-16"], {"X-Sig": shown}, b"body") == "wrong_signature"
    assert Proof(**proof.stored()) == proof


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "none"}, {"method": "hmac"}, {"method": "hmac", "header": "X Sig"},
        {"method": "token", "header": "X:\r\n"},
        {"method": "hmac", "header": "X-S", "encoding": "utf"}, {"method": "hmac", "header": "X-S", "algorithm": "md5"},
        {"method": "hmac", "header": "X-S", "prefix": "p" * 21},
    ],
)  # fmt: skip
def test_a_proof_that_proves_nothing_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is|has"):
        Proof(**wrong)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*SCHEMES.values(), proofs.GITLAB, proofs.BEARER]), st.binary(max_size=60), st.text(max_size=90))
def test_no_guess_passes_and_none_crashes(proof: Proof, raw: bytes, guess: str) -> None:
    names = (
        "X-Hub-Signature-256",
        "X-Slack-Signature",
        "webhook-signature",
        "X-Gitlab-Token",
        "Authorization",
        "webhook-id",
    )
    kept = [b"\0" * 32] if proof.method == "token" else ["a secret of the endpoint"]
    for prefix in ("", proof.prefix, "v0=", "v1,"):
        sent = {**dict.fromkeys(names, prefix + guess), "X-Slack-Request-Timestamp": "0", "webhook-timestamp": "0"}
        assert code_of(proof, kept, sent, raw) != "proven"


def test_an_encrypted_secret_is_bound_to_its_row_and_key(settings: Any) -> None:
    kept = secrets.encrypted("the secret", row="row-1")
    assert b"the secret" not in kept and kept != secrets.encrypted("the secret", row="row-1")
    assert secrets.decrypted(kept, row="row-1") == "the secret"
    for row, changed in (("row-2", kept), ("row-1", kept[:-1] + bytes([kept[-1] ^ 1])), ("row-1", kept[:5])):
        with pytest.raises(secrets.Unreadable):
            secrets.decrypted(changed, row=row)
    before = settings.SECRET_KEY
    settings.SECRET_KEY = "another key of the app, long enough to be one"
    with pytest.raises(secrets.Unreadable):
        secrets.decrypted(kept, row="row-1")
    settings.SECRET_KEY_FALLBACKS = [before]
    assert secrets.decrypted(kept, row="row-1") == "the secret"
