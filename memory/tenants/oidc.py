"""OpenID Connect, as the side that asks: discovery, where to send the person, and what the provider says of them.

django-allauth's own flow checks neither a nonce nor, when it fetched the token itself, the signature; we check both.
All calls go by memory/tenants/outgoing.py, and none is made inside a transaction.
"""

import base64
import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from memory.sentences import sentence
from memory.tenants import outgoing

# Algorithms with a public key. A shared secret would let whoever knows it sign, "none" anybody.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_SCOPES: Final = "openid email profile"
_KEPT_FOR: Final = 600.0
_MOST_KEPT: Final = 200
# A provider that does not answer is not asked again for so long.
_AWAY_FOR: Final = 10.0
# How many may wait for providers at once, and for one of them: each holds one of the 24 that work (memory/wsgi.py), and
# who has a team can have it lead to a host that answers slowly.
_MOST_CALLS: Final = 12
_MOST_OF_ONE: Final = 4
LEEWAY: Final = 60


class Failed(Exception):
    """The provider said no, or something that does not hold; `str()` says what, for people."""


class Busy(Failed):
    """Too many wait for the provider; it was not asked."""


class Unproven(Failed):
    """The provider answered, and what it says of the person does not hold."""


@dataclass(frozen=True)
class Client:
    """Who we are at a provider. The secret stands in no `repr`."""

    issuer: str
    client_id: str
    secret: str
    redirect_uri: str

    def __repr__(self) -> str:
        return f"Client({self.issuer}, {self.client_id})"


@dataclass(frozen=True)
class Asked:
    """What one trip to the provider is held to; kept in the session. `at` in seconds since 1970."""

    state: str
    nonce: str
    verifier: str
    at: float
    next: str = ""
    # Step-up: the provider is to ask who is there, however recently it did.
    is_proof: bool = False


@dataclass(frozen=True)
class Claims:
    """What a provider says of a person. `auth_time` in seconds since 1970; None: it does not say."""

    subject: str
    email: str
    is_verified: bool
    name: str
    auth_time: float | None


def new_trip(*, next_page: str, is_proof: bool = False) -> Asked:
    """A trip with fresh secrets of its own."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return Asked(state, nonce, verifier, at=time.time(), next=next_page, is_proof=is_proof)


def where_to(client: Client, asked: Asked) -> str:
    """The provider's address for this trip. Raises Failed."""
    endpoint = _url(_configuration(client.issuer), "authorization_endpoint")
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "scope": _SCOPES,
        "state": asked.state,
        "nonce": asked.nonce,
        "code_challenge": challenge_of(asked.verifier),
        "code_challenge_method": "S256",
    }
    if asked.is_proof:
        query |= {"prompt": "login", "max_age": "0"}
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"


def challenge_of(verifier: str) -> str:
    """PKCE's S256 of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def who(client: Client, asked: Asked, *, code: str, issuer: str = "") -> Claims:
    """Redeem the code and check what the provider says of the person; `issuer` is the `iss` that came with the code.
    Raises Failed.
    """
    configuration = _configuration(client.issuer)
    named = configuration["issuer"]
    if issuer != named and (issuer or configuration.get("authorization_response_iss_parameter_supported") is True):
        # RFC 9207: another provider's code, mixed in.
        raise Failed(sentence("The answer came from another provider than the one that was asked."))
    token = _redeem(client, configuration, asked, code)
    claims = _verified(client, configuration, token.get("id_token"))
    if not secrets.compare_digest(str(claims.get("nonce", "")).encode("utf-8", "replace"), asked.nonce.encode()):
        raise Unproven(sentence("The provider's answer belongs to another login (nonce)."))
    if "email" not in claims:
        claims = _with_userinfo(configuration, claims, token)
    return _claims(configuration, claims, asked)


def _claims(configuration: dict[str, Any], claims: dict[str, Any], asked: Asked) -> Claims:
    told = claims.get("auth_time")
    auth_time = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
    if asked.is_proof:
        # Who is asked by max_age must say when it asked; some never do, and the trip itself has to do then.
        says = auth_time is not None or "auth_time" in _names(configuration.get("claims_supported"))
        if says and (auth_time is None or auth_time < asked.at - LEEWAY):
            raise Unproven(sentence("The provider did not ask who is there. Nothing was changed."))
    return Claims(
        subject=str(claims["sub"]),
        email=address(str(claims.get("email") or "").strip().lower()),
        is_verified=claims.get("email_verified") in (True, "true"),
        name="".join(filter(str.isprintable, str(claims.get("name") or "")))[:120],
        auth_time=auth_time,
    )


def address(said: str) -> str:
    """An e-mail address as a provider tells it; "" where it is none."""
    try:
        validate_email(said)
    except ValidationError:
        return ""
    return said if said.isprintable() else ""


def _redeem(client: Client, configuration: dict[str, Any], asked: Asked, code: str) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_uri,
        "code_verifier": asked.verifier,
    }
    methods = _names(configuration.get("token_endpoint_auth_methods_supported")) or ["client_secret_basic"]
    authorization = ""
    if "client_secret_basic" in methods:
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": client.client_id, "client_secret": client.secret}
    return _fetch(_url(configuration, "token_endpoint"), form=form, authorization=authorization)


def _verified(client: Client, configuration: dict[str, Any], token: Any) -> dict[str, Any]:
    """The claims of an id token whose signature, issuer, audience and time hold."""
    import jwt  # with its algorithms it takes 50 ms: only who comes by single sign-on needs it

    if not isinstance(token, str):
        raise Unproven(sentence("The provider gave no id token."))
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in _ALGORITHMS:
            raise Unproven(sentence("The provider signs by %(algorithm)s, which is not taken.", algorithm=algorithm))
        key = jwt.PyJWK(_key(configuration, header.get("kid"), algorithm), algorithm=algorithm)
        claims: dict[str, Any] = jwt.decode(
            token,
            key=key,
            algorithms=[algorithm],
            audience=client.client_id,
            issuer=configuration["issuer"],
            leeway=LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError as why:
        raise Unproven(sentence("The provider's id token does not hold: %(why)s.", why=why)) from None
    if not 0 < len(str(claims["sub"])) <= 255 or not str(claims["sub"]).isprintable():
        raise Unproven(sentence("The provider gave no usable name (sub)."))
    audience = claims["aud"]
    names_party = "azp" in claims or (isinstance(audience, list) and len(audience) > 1)
    if names_party and claims.get("azp") != client.client_id:
        raise Unproven(sentence("The provider's id token is for somebody else (azp)."))
    return claims


def _key(configuration: dict[str, Any], kid: Any, algorithm: str) -> dict[str, Any]:
    """The provider's public key of this name, asked for anew where it is not known: keys are changed."""
    url = _url(configuration, "jwks_uri")
    for is_fresh in (False, True):
        known = _kept(url, is_fresh=is_fresh).get("keys")
        keys = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
        fit = [one for one in keys if one.get("use", "sig") == "sig" and one.get("alg", algorithm) == algorithm]
        named = [one for one in fit if one.get("kid") == kid] if kid is not None else fit
        if len(named) == 1:
            return named[0]
    raise Unproven(sentence("The provider's id token is signed by a key that it does not publish."))


def _with_userinfo(configuration: dict[str, Any], claims: dict[str, Any], token: dict[str, Any]) -> dict[str, Any]:
    """Some say the address only there. Of another person it says nothing here."""
    if "userinfo_endpoint" not in configuration or not isinstance(token.get("access_token"), str):
        return claims
    told = _fetch(_url(configuration, "userinfo_endpoint"), authorization=f"Bearer {token['access_token']}")
    if told.get("sub") != claims["sub"]:
        raise Unproven(sentence("The provider told of another person (userinfo)."))
    return {**claims, **{name: told[name] for name in ("email", "email_verified", "name") if name in told}}


def _configuration(issuer: str) -> dict[str, Any]:
    """The provider's own description, which must name the very issuer that was typed."""
    found = _kept(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    named = found.get("issuer")
    if not isinstance(named, str) or named.rstrip("/") != issuer.rstrip("/"):
        raise Failed(
            sentence(
                "What answers at %(where)s calls itself %(named)s: type that issuer.",
                where=outgoing.place(issuer),
                named=f"{str(named)[:200]!r}",
            )
        )
    return found


def _url(configuration: dict[str, Any], name: str) -> str:
    url = configuration.get(name)
    if not isinstance(url, str):
        raise Failed(sentence("The provider names no %(name)s.", name=name))
    try:
        outgoing.check_url(url)
    except outgoing.InvalidAddress as why:
        raise Failed(sentence("The provider's %(name)s can't be used. %(why)s", name=name, why=why)) from None
    return url


def _names(told: Any) -> list[str]:
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []


def _fetch(url: str, *, form: dict[str, str] | None = None, authorization: str = "") -> dict[str, Any]:
    try:
        with _one_of_few(outgoing.place(url)):
            return outgoing.fetch_json(url, form=form, authorization=authorization)
    except outgoing.NotSent as why:
        raise Failed(sentence("The provider could not be asked. %(why)s", why=why)) from None


_calls: Counter[str] = Counter()


@contextmanager
def _one_of_few(where: str) -> Iterator[None]:
    """One of those that may wait for this host. Raises Busy."""
    with _lock:
        if _calls.total() >= _MOST_CALLS or _calls[where] >= _MOST_OF_ONE:
            raise Busy(sentence("Many logins wait for %(where)s just now. Try again in a moment.", where=where))
        _calls[where] += 1
    try:
        yield
    finally:
        with _lock:
            _calls[where] -= 1
            if not _calls[where]:
                del _calls[where]


_documents: dict[str, tuple[float, dict[str, Any]]] = {}
_away: dict[str, tuple[float, str]] = {}
_lock = threading.Lock()


def _kept(url: str, *, is_fresh: bool = False) -> dict[str, Any]:
    """A document of a provider, fetched at most every ten minutes: whoever opens the login must not make us call out
    at each click.
    """
    with _lock:
        at, document = _documents.get(url, (0.0, {}))
        failed_at, why = _away.get(url, (-_AWAY_FOR, ""))
    # Asked for anew at most every ten seconds, however many unknown keys are named.
    if time.monotonic() - at < (10.0 if is_fresh else _KEPT_FOR) and document:
        return document
    if time.monotonic() - failed_at < _AWAY_FOR:
        raise Failed(why)
    try:
        document = _fetch(url)
    except Busy:
        raise
    except Failed as failed:
        _keep(_away, url, str(failed))
        raise
    _keep(_documents, url, document)
    return document


def _keep(into: dict[str, tuple[float, Any]], url: str, found: Any) -> None:
    with _lock:
        if len(into) >= _MOST_KEPT:
            into.clear()
        into[url] = (time.monotonic(), found)


def forget() -> None:
    """Ask providers anew: their settings were just changed."""
    with _lock:
        _documents.clear()
        _away.clear()
