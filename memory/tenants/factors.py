"""Second factors: codes of an authenticator app with their recovery codes, and passkeys. Kept by django-allauth's mfa.

Its tables and its arithmetic are used, not its pages. Its memory of used codes is Django's cache, which here is each
process's own, so the last used time step is kept in the row instead, under the row's lock.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from allauth.core.context import request_context
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from cryptography.exceptions import InvalidSignature
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from memory.tenants import vault
from memory.tenants.models import User

MOST_PASSKEYS: Final = 20
MOST_CREDENTIAL: Final = 20_000
# Wrong codes in a row, from wherever they come, after which only a recovery code or a passkey lets in. The guard of
# passwords counts by address, and whoever has many addresses and the password must not try a million codes.
MOST_WRONG: Final = 100
# What a made-up answer of a browser can make the parsers raise.
_MALFORMED: Final = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError),
    *(AssertionError, NotImplementedError, InvalidSignature, ValidationError),
)
_USED: Final = "last_step"
_WRONG: Final = "wrong"
T = TypeVar("T")


class NotAccepted(Exception):
    """What a browser answered for a passkey does not hold; `str()` says what to do."""


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]
    """What allauth asks of us: secrets sealed as all of ours are, and names a person knows."""

    def encrypt(self, text: str) -> str:
        return vault.sealed(text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return vault.opened(encrypted_text.encode())

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        entity: dict[str, str] = super().get_public_key_credential_rp_entity()
        return {**entity, "name": "Team Memory"}


class CodeBackend(BaseBackend):
    """Checks a code like a password, by Django's `authenticate`, so that the same guard counts the wrong ones."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest | None, username: str | None = None, code: str | None = None
    ) -> User | None:
        user = User.objects.filter(email=username or "", is_active=True).first()
        if user is None or not code or not use_code(user, code):
            return None
        return user


def _rows(user: User, kind: str) -> "QuerySet[Authenticator]":
    rows: QuerySet[Authenticator] = Authenticator.objects.filter(user=user, type=kind)
    return rows


def asks_for_code(user: User) -> bool:
    """Whether a login of this person needs a code."""
    return _rows(user, Authenticator.Type.TOTP).exists()


def new_secret() -> str:
    """A secret for an authenticator app: 160 bits in base32."""
    return str(generate_totp_secret())


def qr_code(user: User, secret: str) -> str:
    """The secret as an SVG to scan."""
    adapter = get_adapter()
    svg = str(adapter.build_totp_svg(adapter.build_totp_url(user, secret)))
    # Inside a page it needs no declaration, and its size is the page's affair.
    return svg[svg.index("<svg") :]


def turn_on(user: User, secret: str, code: str) -> list[str] | None:
    """Ask this person for codes from now on; gives the recovery codes, or None where the code is wrong. The code is
    used up.
    """
    step = _step(secret, code, after=-1)
    if step is None:
        return None
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        turn_off(user)
        data = {"secret": get_adapter().encrypt(secret), _USED: step}
        Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data=data)
        return new_recovery_codes(user)


def turn_off(user: User) -> bool:
    """Ask for codes no more, and forget the recovery codes; False where none was asked for."""
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    return bool(Authenticator.objects.filter(user=user, type__in=kinds).delete()[0])


def new_recovery_codes(user: User) -> list[str]:
    """Ten codes that each work once; those before end."""
    with transaction.atomic():
        _rows(user, Authenticator.Type.RECOVERY_CODES).delete()
        return list(RecoveryCodes.activate(user).generate_codes())


def recovery_codes_left(user: User) -> int:
    """How many recovery codes still work."""
    row = _rows(user, Authenticator.Type.RECOVERY_CODES).first()
    return len(RecoveryCodes(row).get_unused_codes()) if row else 0


def use_code(user: User, code: str) -> bool:
    """Whether it is a code of the person's app or one of their recovery codes; it is used up then."""
    try:
        return _use_app_code(user, code) or _use_recovery_code(user, code)
    except vault.Unreadable:
        # The key it was sealed with is gone: an operator turns the codes off (manage.py login_link --without-codes).
        return False


def _use_app_code(user: User, code: str) -> bool:
    with transaction.atomic():
        row = _rows(user, Authenticator.Type.TOTP).select_for_update().first()
        if row is None:
            return False
        wrong = row.data.get(_WRONG, 0)
        step = _step(get_adapter().decrypt(row.data["secret"]), code, after=row.data.get(_USED, -1))
        if step is None or wrong >= MOST_WRONG:
            row.data[_WRONG] = wrong + 1
            row.save(update_fields=["data"])
            return False
        row.data |= {_USED: step, _WRONG: 0}
        row.last_used_at = timezone.now()
        row.save(update_fields=["data", "last_used_at"])
        return True


def _step(secret: str, code: str, *, after: int) -> int | None:
    """The time step whose code this is, of those that count now and were not used."""
    for step in yield_hotp_counters_from_time():
        if step > after and compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, step))):
            return int(step)
    return None


def _use_recovery_code(user: User, code: str) -> bool:
    with transaction.atomic():
        app = _rows(user, Authenticator.Type.TOTP).select_for_update().first()
        row = _rows(user, Authenticator.Type.RECOVERY_CODES).first()
        if app is None or row is None or not RecoveryCodes(row).validate_code(code):
            return False
        _rows(user, Authenticator.Type.RECOVERY_CODES).update(last_used_at=timezone.now())
        app.data[_WRONG] = 0
        app.save(update_fields=["data"])
        return True


@dataclass(frozen=True)
class Passkey:
    """A passkey as the account page shows it."""

    id: int
    name: str
    created_at: Any
    last_used_at: Any


def passkeys_of(user: User) -> list[Passkey]:
    """A person's passkeys, the oldest first."""
    rows = _rows(user, Authenticator.Type.WEBAUTHN).order_by("created_at", "pk")
    return [Passkey(row.pk, row.data.get("name", ""), row.created_at, row.last_used_at) for row in rows]


def has_passkey(user: User) -> bool:
    return _rows(user, Authenticator.Type.WEBAUTHN).exists()


def _webauthn() -> Any:
    # Imported when first asked for: it takes longer than all of a start's URLs, and most processes never need it.
    from allauth.mfa.webauthn.internal import auth

    return auth


def ask_for_new_passkey(request: HttpRequest, user: User) -> dict[str, Any]:
    """What `navigator.credentials.create` is asked; the challenge is kept in the session."""
    with request_context(request):
        options: dict[str, Any] = _webauthn().begin_registration(user, passwordless=True)
    return options


def add_passkey(request: HttpRequest, user: User, credential: str, *, name: str) -> Passkey:
    """Keep the passkey that the browser made. Raises NotAccepted."""
    if _rows(user, Authenticator.Type.WEBAUTHN).count() >= MOST_PASSKEYS:
        raise NotAccepted(
            gettext("You have %(most_passkeys)s passkeys: remove one first.") % {"most_passkeys": MOST_PASSKEYS}
        )
    auth = _webauthn()
    answer = _parsed(credential)

    def check() -> None:
        auth.complete_registration(answer)
        auth.parse_registration_response(answer)

    _answered(request, check)
    row = auth.WebAuthn.add(user, name.strip()[:60] or "Passkey", answer).instance
    return Passkey(row.pk, row.data["name"], row.created_at, row.last_used_at)


def ask_for_passkey(request: HttpRequest, user: User | None = None) -> dict[str, Any]:
    """What `navigator.credentials.get` is asked: any passkey of this site, or one of this person's."""
    with request_context(request):
        options: dict[str, Any] = _webauthn().begin_authentication(user)
    return options


def whose_passkey(request: HttpRequest, credential: str) -> User:
    """Whose passkey answered the challenge of this session, which is used up. Raises NotAccepted."""
    auth = _webauthn()
    answer = _parsed(credential)

    def check() -> User:
        user: User = auth.extract_user_from_response(answer)
        row = auth.complete_authentication(user, answer)
        if not user.is_active:
            raise ValueError
        row.record_usage()
        return user

    return _answered(request, check)


def _parsed(credential: str) -> dict[str, Any]:
    try:
        answer = json.loads(credential[:MOST_CREDENTIAL])
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise NotAccepted(gettext("The browser gave no passkey. Try again."))
    return answer


def _answered(request: HttpRequest, check: Callable[[], T]) -> T:
    auth = _webauthn()
    with request_context(request):
        try:
            return check()
        except _MALFORMED:
            raise NotAccepted(gettext("This passkey was not accepted. Try again, or take another way in.")) from None
        finally:
            auth.clear_state()


def rename_passkey(user: User, passkey_id: int, name: str) -> str | None:
    """Another name; gives the former one, or None where there is no such passkey of this person."""
    row = _rows(user, Authenticator.Type.WEBAUTHN).filter(pk=passkey_id).first()
    if row is None:
        return None
    before = str(row.data.get("name", ""))
    row.data["name"] = name.strip()[:60] or before
    row.save(update_fields=["data"])
    return before


def remove_passkey(user: User, passkey_id: int) -> str | None:
    """Take a passkey away; gives its name, or None where there is no such passkey of this person."""
    row = _rows(user, Authenticator.Type.WEBAUTHN).filter(pk=passkey_id).first()
    if row is None:
        return None
    row.delete()
    return str(row.data.get("name", ""))


def reseal() -> int:
    """Seal what is stored anew under the current key; gives how many."""
    count = 0
    for row in Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).select_for_update():
        name = "secret" if row.type == Authenticator.Type.TOTP else "seed"
        row.data[name] = vault.resealed(row.data[name].encode()).decode()
        row.save(update_fields=["data"])
        count += 1
    return count
