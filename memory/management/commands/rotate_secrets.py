"""`manage.py rotate_secrets`: a new signing key, and everything that was sealed under the old one sealed anew."""

import os
import secrets as random
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from memory.graph import endpoints
from memory.management.commands.stop import running
from memory.management.home import Home
from memory.tenants import factors, outbox, sign_on, vault
from memory.tenants.models import Setting


class Command(BaseCommand):
    help = (
        "Make a new key for sessions, cursors and sealed secrets, and seal what is stored under it. Logins, cursors and"
        " leases made under the old one stay good until --forget."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--forget", action="store_true", help="drop the former keys at once")

    def handle(self, *args: Any, **options: Any) -> None:
        home = Home(settings.DATA_HOME)
        if running(home) is not None:
            raise CommandError("Team Memory runs with the old key: manage.py stop, then this, then manage.py start.")
        if settings.SECRET_KEY_IS_GIVEN:
            self.stdout.write(
                "The key comes from TEAM_MEMORY_SECRET_KEY, so it is sealed anew under that: put the new key there and"
                " the former one into TEAM_MEMORY_SECRET_KEY_FALLBACKS first, on every host."
            )
        else:
            _new_key(home.path / "secret_key")
        sealed = reseal()
        if options["forget"] and not settings.SECRET_KEY_IS_GIVEN:
            _only_first(home.path / "secret_key")
        kept = "The former keys are gone." if options["forget"] else "The former key still opens what it signed."
        self.stdout.write(f"{sealed} secrets are sealed under the new key. {kept} Back up {home.path / 'secret_key'}.")


def reseal() -> int:
    """Seal every stored secret under the current key; gives how many. All or none."""
    with transaction.atomic():
        count = endpoints.reseal() + outbox.reseal() + factors.reseal() + sign_on.reseal()
        for row in Setting.objects.filter(secret__isnull=False).select_for_update():
            row.secret = vault.resealed(bytes(row.secret or b""))
            row.save(update_fields=["secret"])
            count += 1
    return count


def _new_key(path: Path) -> None:
    """The new key stands first, those before it behind; in one rename, so that no start ever reads half of it."""
    fresh = random.token_urlsafe(48)
    former = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    _write(path, [fresh, *former])
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = fresh, former


def _only_first(path: Path) -> None:
    _write(path, [settings.SECRET_KEY])


def _write(path: Path, keys: list[str]) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.touch(0o600)
    fresh.write_text("\n".join(keys) + "\n")
    fresh.replace(path)
