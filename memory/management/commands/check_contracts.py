"""manage.py check_contracts: the contracts of the id graph, as black-box checks against any deployment."""

import os
import signal
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from memory.management.contracts import remember, report, run
from memory.management.contracts.client import Door, Unusable, root_of
from memory.management.contracts.report import Report
from memory.management.contracts.visit import Visit

UNUSABLE: Final = 2
INTERRUPTED: Final = 130


class Command(BaseCommand):
    help = "Check the contracts of ids, pages and recall at an address, over HTTP. Leaves only tombstones behind."
    # It knows an address and a key, no more: there may be no database here.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("base_url", metavar="BASE_URL", help="like http://127.0.0.1:8000")
        parser.add_argument("--key", help="agent key with the scopes ingest and read; TEAM_MEMORY_KEY does the same")
        parser.add_argument("--report", default="cli", metavar="KINDS", help="of cli, json, junit, with commas (cli)")
        parser.add_argument("--output", type=Path, default=Path("."), metavar="DIR", help="where report files go (.)")
        parser.add_argument("--only", metavar="NAMES", help=f"some contracts, with commas: {', '.join(run.CONTRACTS)}")
        parser.add_argument("--events", type=int, default=120, help="events written while pagers read (120)")
        parser.add_argument("--existing", type=int, default=50, help="threads of the team that are looked at (50)")
        parser.add_argument("--other-key", help="key of another team there, which must see nothing")
        parser.add_argument("--remember", type=Path, metavar="FILE", help="only read: keep ids and digests of records")
        parser.add_argument("--verify", type=Path, metavar="FILE", help="only read: same ids, same records as kept")
        parser.add_argument("--most", type=int, default=5_000, help="records that --remember keeps (5000)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            kinds = self._kinds(options)
            told, door = self._report(options)
        except Unusable as why:
            raise CommandError(str(why), returncode=UNUSABLE) from None
        if "cli" in kinds:
            for line in report.table(told):
                self.stdout.write(line)
        try:
            for path in report.write(told, kinds, options["output"]):
                self.stderr.write(f"Wrote {path}")
        except OSError as why:
            raise CommandError(f"The report can't be written: {why}.", returncode=UNUSABLE) from None
        door.close()
        if told.interrupted:
            raise CommandError("Stopped.", returncode=INTERRUPTED)
        if told.broken:
            hop = told.broken[0].broken[0]
            raise CommandError(f"{told.broken[0].name} is broken at {hop}")

    def _kinds(self, options: dict[str, Any]) -> list[str]:
        kinds = [kind.strip() for kind in options["report"].split(",") if kind.strip()]
        wrong = [kind for kind in kinds if kind not in report.KINDS]
        if wrong or not kinds:
            raise Unusable(f"--report takes {', '.join(report.KINDS)}, not {', '.join(wrong) or 'nothing'}.")
        if set(kinds) & set(report.FILES):
            folder = options["output"]
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as why:
                raise Unusable(f"{folder} can't be used: {why.strerror}.") from None
            if not os.access(folder, os.W_OK):
                raise Unusable(f"{folder} can't be written.")
        return kinds

    def _report(self, options: dict[str, Any]) -> tuple[Report, Door]:
        door = Door(root_of(options["base_url"]), _key(options["key"] or os.environ.get("TEAM_MEMORY_KEY")))
        told = Report(door.root)
        with _interruptible():
            try:
                if options["remember"] or options["verify"]:
                    self._compare(door, told, options)
                else:
                    self._check(door, told, options)
            except KeyboardInterrupt:
                told.interrupted = True
        return told, door

    def _check(self, door: Door, told: Report, options: dict[str, Any]) -> None:
        names = _names(options["only"])
        if not 1 <= options["events"] <= 100_000 or options["existing"] < 0:
            raise Unusable("--events is from 1 to 100000, --existing from 0.")
        run.knock(door, writes=True)
        other = None
        if options["other_key"]:
            other = Door(door.root, _key(options["other_key"]))
            run.knock(other, writes=False)
        visit = Visit(door, events=options["events"], existing=options["existing"], other=other, notes=told.notes)
        run.run(visit, names, told.outcomes)

    def _compare(self, door: Door, told: Report, options: dict[str, Any]) -> None:
        kept, written = options["verify"], options["remember"]
        memory = remember.read(kept) if kept else None
        if written and written.exists():
            raise Unusable(f"{written} is there already: --verify reads it; name another to remember anew.")
        if options["most"] < 1:
            raise Unusable("--most is from 1.")
        run.knock(door, writes=False)
        if memory is not None:
            remember.verify(door, memory, told.outcomes, told.notes)
        if written:
            self._remember(door, told, written, options["most"])

    def _remember(self, door: Door, told: Report, path: Path, most: int) -> None:
        found: list[remember.Memory] = []
        outcome = run.Outcome("remember", "The team's threads, triggers and workers can be walked and remembered.")
        told.outcomes.append(outcome)
        run.measure(outcome, door, lambda: found.append(remember.walk(door, most=most)))
        if not found:
            return
        remember.write(found[0], path, address=door.root)
        told.notes.append(f"{len(found[0].records):,} records are remembered in {path}.")
        told.notes.extend(f"left out: {line}" for line in found[0].left_out)


def _key(given: str | None) -> str:
    key = (given or "").strip()
    if not key:
        raise Unusable("Give an agent key by --key, or by TEAM_MEMORY_KEY in the environment.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Unusable("This is no agent key: they are like tm_live_… with letters and digits only.")
    return key


def _names(only: str | None) -> list[str]:
    if only is None:
        return list(run.CONTRACTS)
    names = [name.strip() for name in only.split(",") if name.strip()]
    wrong = [name for name in names if name not in run.CONTRACTS]
    if wrong or not names:
        raise Unusable(f"--only takes {', '.join(run.CONTRACTS)}, not {', '.join(wrong) or 'nothing'}.")
    return names


@contextmanager
def _interruptible() -> Iterator[None]:
    """A polite kill ends the checks as Ctrl-C does: what was made is deleted first. Ctrl-C counts also where a shell
    started this in the background and had it ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
