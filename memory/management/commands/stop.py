"""`manage.py stop`: ends the Team Memory of a data folder, as Ctrl-C would."""

import os
import signal
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management.home import Home, data_home


class Command(BaseCommand):
    help = "Stop the Team Memory that runs on the data folder, and wait until it has ended."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--wait", type=int, default=60, metavar="SECONDS", help="how long it may take (60)")

    def handle(self, *args: Any, **options: Any) -> None:
        home = Home(data_home(os.environ, None)[0])
        began = time.monotonic()
        pid = running(home)
        if pid is None:
            self.stdout.write(f"Nothing runs on {home.path}.")
            return
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it ended by itself
        except PermissionError:
            raise CommandError(f"Process {pid} is another user's: stop it as that user.") from None
        while running(home) is not None:
            if time.monotonic() - began > options["wait"]:
                raise CommandError(f"Process {pid} still runs after {options['wait']} s; its last words: {home.path}.")
            time.sleep(0.1)
        self.stdout.write(f"Stopped after {time.monotonic() - began:.1f} s.")


def running(home: Home) -> int | None:
    """The process id of the start that holds the folder, or None.

    That it holds the folder is told by the lock, never by the id: that may be another program's by now.
    """
    if not (home.path / "run").is_dir():
        return None
    free = home.hold("start")
    if free is not None:
        os.close(free)
        return None
    try:
        return int(Path(home.path, "run", "running").read_text())
    except (OSError, ValueError):
        return None
