"""The data folder: where it is, whose it is, which version wrote it, and who holds it."""

import fcntl
import hashlib
import json
import os
import pwd
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).resolve().parents[2]
ROOT_HOME = Path("/var/lib/team-memory")
# Raised when an older program could no longer read the folder.
FORMAT = 1
# A socket's path may be 107 bytes on Linux and 103 on macOS; PostgreSQL adds "/.s.PGSQL.5432".
_LONGEST_SOCKET_FOLDER = 80


class Refused(Exception):
    """It can't go on; the message is the one line for the person at the terminal."""


@dataclass(frozen=True)
class Account:
    """The user that PostgreSQL, which refuses to run as root, runs as."""

    uid: int
    gid: int

    @property
    def spawn(self) -> dict[str, Any]:
        """Keyword arguments for subprocess; none unless we are root."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def reaches(self, path: Path) -> bool:
        """Whether this user may go through every folder above `path` and use it."""
        # Asked of the kernel, not worked out from mode bits: there are access lists and mounts too.
        return subprocess.run(["test", "-x", str(path)], check=False, cwd="/", **self.spawn).returncode == 0  # noqa: S603, S607

    def own(self, path: Path) -> None:
        """Make it this user's; only for what we made ourselves."""
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)


def account(home: Path) -> Account:
    """Ourselves, or as root the owner of an existing database, else nobody."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    database = home / "pg"
    if database.exists() and (owner := database.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def data_home(env: Mapping[str, str], argument: str | None) -> tuple[Path, str | None]:
    """The data folder, and a sentence to say aloud if it is not where one would look for it."""
    wished = Path(argument or env.get("TEAM_MEMORY_DATA") or PROJECT / ".team-memory").expanduser().absolute()
    above = next(folder for folder in (wished, *wished.parents) if folder.exists())
    if os.geteuid() != 0 or account(wished).reaches(above if above != wished else wished.parent):
        return wished, None
    moved = ROOT_HOME / hashlib.sha256(os.fsencode(wished)).hexdigest()[:12]
    return moved, f"PostgreSQL does not run as root, and an ordinary user can't reach {wished}: the data is in {moved}."


class Home:
    """The files of one data folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def socket_folder(self) -> Path:
        """Where the socket is: in the folder, or in /tmp when that path is too long or too odd for a DSN."""
        inside = self.path / "socket"
        plain = not set(str(inside)) & set(" '\"\\,@")
        if plain and len(os.fsencode(inside)) <= _LONGEST_SOCKET_FOLDER:
            return inside
        return Path("/tmp") / f"team-memory-{hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]}"  # noqa: S108

    def prepare(self) -> None:
        """Make the folder with its modes: others pass through it as root's, and not at all as a user's."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
            (self.path / "logs").mkdir(mode=0o700, exist_ok=True)
            (self.path / "run").mkdir(mode=0o700, exist_ok=True)
        except OSError as why:
            raise Refused(f"The data folder {self.path} can't be used: {why.strerror}.") from why
        if self.state().get("format", FORMAT) > FORMAT:
            raise Refused(f"The data folder {self.path} was written by a newer Team Memory. Update this one.")
        self._prepare_socket_folder()

    def _prepare_socket_folder(self) -> None:
        folder, owner = self.socket_folder, account(self.path)
        try:
            folder.mkdir(mode=0o700)
            owner.own(folder)
        except FileExistsError:
            found = folder.lstat()
            if found.st_uid != owner.uid or found.st_mode & 0o077:
                raise Refused(f"{folder} belongs to someone else; remove it.") from None

    def counters(self) -> Path:
        """An empty folder for the counters that the web processes share.

        In memory where the system has such a place: they are mapped files, and to touch a page of one on a full disk
        kills the process.
        """
        name = f"team-memory-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]}"
        shared = Path("/dev/shm")  # noqa: S108 - made with its owner's mode below
        folder = shared / name if os.access(shared, os.W_OK) else self.path / "run" / "counters"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def state(self) -> dict[str, Any]:
        """What the version file holds: the folder's format, PostgreSQL's version, what is set up."""
        try:
            state: dict[str, Any] = json.loads((self.path / "version.json").read_text())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except ValueError as why:
            raise Refused(f"{self.path / 'version.json'} can't be read: {why}.") from why
        if not isinstance(state, dict):
            raise Refused(f"{self.path / 'version.json'} holds no facts: put it back from a backup, or remove it.")
        return state

    def remember(self, **facts: Any) -> None:
        """Add facts to the version file."""
        self._write("version.json", {"format": FORMAT} | self.state() | facts)

    def mark_running(self) -> bool:
        """Leave a mark for as long as we run; True where a run before left its own, since it was killed."""
        mark = self.path / "run" / "running"
        left = mark.exists()
        mark.write_text(str(os.getpid()))
        return left

    def unmark_running(self) -> None:
        """We ended as asked."""
        (self.path / "run" / "running").unlink(missing_ok=True)

    def passwords(self) -> dict[str, str]:
        """The passwords of the database's roles; empty before the first start."""
        try:
            found: dict[str, str] = json.loads((self.path / "secrets.json").read_text())
        except (FileNotFoundError, PermissionError):
            return {}
        return found

    def make_passwords(self, names: tuple[str, ...]) -> dict[str, str]:
        """The passwords, those that are missing made first."""
        found = self.passwords()
        if missing := {name: secrets.token_urlsafe(24) for name in names if name not in found}:
            found |= missing
            self._write("secrets.json", found)
        return found

    def _write(self, name: str, content: Any) -> None:
        fresh = self.path / f"{name}.{os.getpid()}"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(content))
        fresh.replace(self.path / name)

    def log(self, name: str) -> IO[bytes]:
        """A log file to append to."""
        return (self.path / "logs" / f"{name}.log").open("ab")

    def rotate_logs(self, *, most: int = 10_000_000, kept: int = 4) -> None:
        """Set logs aside that have grown past `most` bytes, and keep so many old ones of each.

        The programs hold their files open, in append mode: the content is copied away and the file emptied, and what
        is written next begins a fresh one. A line that falls between the two is lost.
        """
        for path in (self.path / "logs").glob("*.log"):
            if path.stat().st_size <= most:
                continue
            for number in range(kept - 1, 0, -1):
                older = path.with_suffix(f".log.{number}")
                if older.exists():
                    older.replace(path.with_suffix(f".log.{number + 1}"))
            try:
                shutil.copyfile(path, path.with_suffix(".log.1"))
            except OSError:
                # A full disk: the log is what there is too much of.
                path.with_suffix(".log.1").unlink(missing_ok=True)
            os.truncate(path, 0)

    def last_line(self, name: str) -> str:
        """The last line of a log, for a message."""
        path = self.path / "logs" / f"{name}.log"
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return lines[-1].strip() if lines else "it wrote nothing"

    def hold(
        self, name: str, *, shared: bool = False, wait: float | None = 0, until: Callable[[], bool] = bool
    ) -> int | None:
        """Take a lock and give its file; None if it stays another's for `wait` seconds, or until `until()`.
        The lock is the kernel's: it goes when the last process that has the file open is gone."""
        file = os.open(self.path / "run" / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        deadline = None if wait is None else time.monotonic() + wait
        while True:
            try:
                fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                if until() or (deadline is not None and time.monotonic() >= deadline):
                    os.close(file)
                    return None
                time.sleep(0.05)

    def reachable_copy(self, tree: Path, *, beside: tuple[Path, ...], name: str) -> Path:
        """`tree`, or a copy of it in the data folder if the account can't reach it (an environment below /root)."""
        if account(self.path).reaches(tree / "bin" / "postgres"):
            return tree
        place = self.path / name
        if not place.exists():
            fresh = self.path / f"{name}.{os.getpid()}"
            for folder in (tree, *beside):
                # The libraries are found relative to the binaries, so the copy keeps their distance.
                target = fresh / folder.relative_to(tree.parents[1])
                shutil.copytree(folder, target, ignore=shutil.ignore_patterns("include", "__pycache__"))
            for copied in (fresh, *fresh.rglob("*")):
                copied.chmod(0o755)  # a public program, in our own folder
            fresh.replace(place)
        return place / tree.relative_to(tree.parents[1])
