"""`manage.py status`: what runs on a data folder, in a few lines."""

import json
import os
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.management.commands.stop import running
from memory.management.home import Home, data_home


class Command(BaseCommand):
    help = "Say what runs on the data folder. Ends with 0 where it serves, with 3 where it does not."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        home = Home(data_home(os.environ, None)[0])
        told = _told(home)
        if options["json"]:
            self.stdout.write(json.dumps(told))
        else:
            for name, value in told.items():
                self.stdout.write(f"{name.replace('_', ' '):<12}{'no' if value is None else value}")
        if told["ready"] != "ok":
            raise CommandError("It does not serve. manage.py doctor says what is wrong.", returncode=3)


def _told(home: Home) -> dict[str, Any]:
    state = home.state()
    url = os.environ.get("TEAM_MEMORY_PUBLIC_URL") or state.get("public_url", "")
    pid = running(home)
    backup = state.get("backup")
    return {
        "folder": str(home.path),
        "process": pid,
        "since": _since(pid),
        "address": url or None,
        "ready": _asked(url + "/readyz") if pid and url else None,
        "backup": time.strftime("%Y-%m-%d %H:%M", time.localtime(backup["at"])) if backup else None,
    }


def _since(pid: int | None) -> str | None:
    if pid is None:
        return None
    try:
        # The lock's file is made anew by no one; the mark is written when the run begins.
        began = os.stat(f"/proc/{pid}").st_ctime
    except OSError:
        return None
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))


def _asked(url: str) -> str:
    said = ""
    # A busy machine's first answer after a start has taken ten seconds.
    for seconds in (5, 15):
        try:
            with urllib.request.urlopen(url, timeout=seconds) as answer:  # noqa: S310 - our own address
                return "ok" if answer.status == 200 else f"status {answer.status}"
        except urllib.error.HTTPError as refused:
            return f"status {refused.code}: {refused.read(300).decode(errors='replace')}"
        except TimeoutError as why:
            said = f"no answer: {why}"
        except (OSError, ValueError) as why:
            return f"no answer: {why}"
    return said
