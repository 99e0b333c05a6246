"""A folder of markdown files and a space, kept in step both ways by three-way merges.

What both sides last agreed on stands in `.team-memory/notes.json` in the folder, as hashes; the texts are in the notes'
own history. A run that was killed in the middle leaves both sides closer together, and the next one goes on: where a
side has what the other sent, they agree.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from memory.notes import exporting, importing, merging, paths, review, rules
from memory.notes.bundle import MAX_FILE, File
from memory.notes.importing import Space
from memory.notes.models import Note
from memory.sentences import sentence
from memory.tenants.access import Actor, Refused
from memory.tenants.models import Member, Tenant
from memory.tenants.rls import tenant_scope

MAX_NOTES: Final = 10_000
STATE: Final = Path(".team-memory") / "notes.json"


class BadFolder(ValueError):
    """The folder can't be kept in step; `str()` says what to mend. Nothing was changed."""


@dataclass(frozen=True)
class Step:
    """One thing that a run did, or could not do."""

    path: str
    outcome: str
    detail: str = ""


@dataclass
class Folder:
    """The folder, its files by path key, and what both sides last agreed on."""

    root: Path
    files: dict[str, tuple[paths.NotePath, str]]
    agreed: dict[str, dict[str, str]]

    def keep(self, key: str, text: str | None, *, refused: str = "") -> None:
        """Remember that both sides have this text; None: neither has one. `refused`: the hash of what waits."""
        if text is None:
            self.agreed.pop(key, None)
        else:
            self.agreed[key] = {"sha256": _digest(text)}
        if refused:
            self.agreed.setdefault(key, {})["waits"] = refused
        _replace(self.root / STATE, orjson.dumps(self.agreed, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))


def sync(root: Path, tenant: Tenant, member: Member | None, *, by: Actor) -> list[Step]:
    """Bring both sides into step, one note a transaction. Raises BadFolder before anything is changed."""
    with _alone(root):
        folder = Folder(root, dict(_read(root)), _state(root))
        with tenant_scope(str(tenant.pk)):
            notes = {paths.path_key(path): path for path in exporting.texts_of(tenant, member)}
        space = Space(tenant, member, by)
        keys = sorted({*folder.files, *folder.agreed, *notes})
        steps = [_one(folder, key, notes.get(key), space) for key in keys]
    return [step for step in steps if step is not None]


def _one(folder: Folder, key: str, known: str | None, space: Space) -> Step | None:
    """One path, both ways."""
    path, theirs = folder.files.get(key, (None, None))
    with tenant_scope(str(space.tenant.pk)):
        note = space.note(key)
        ours = note.current.text if note and note.current and note.deleted_at is None else None
        agreed = folder.agreed.get(key, {})
        base = _agreed_text(note, agreed.get("sha256"))
        shown = path.shown if path else known or key
        if theirs is not None and agreed.get("waits") == _digest(f"{_digest(theirs)}{_digest(ours or '')}"):
            return None
        if theirs is None and ours is None:
            text, step = None, None
        elif theirs is None or (ours is None and base is not None):
            text, step = _one_side(note, shown, base, ours, theirs, space)
        else:
            text, step = _both(note, shown, base, ours, theirs, space)
    if step is not None and step.outcome in ("conflict", "proposed", "refused"):
        folder.keep(key, base, refused=_digest(f"{_digest(theirs or '')}{_digest(ours or '')}"))
        return step
    # The space is written and committed: now the file, then the memory of it. Killed between, the next run agrees.
    if text != theirs:
        _put(folder.root, path.shown if path else shown, text)
        step = step or Step(shown, "written" if text is not None else "removed")
    if agreed.get("sha256") != (_digest(text) if text is not None else None):
        folder.keep(key, text)
    return step


def _one_side(
    note: Note | None, path: str, base: str | None, ours: str | None, theirs: str | None, space: Space
) -> tuple[str | None, Step | None]:
    """A side has no text: it is new on the other one, or was deleted here. What was changed meanwhile stays."""
    if theirs is None and (base is None or ours != base):
        return ours, None
    if theirs is None and note is not None:
        try:
            review.delete(note, by=space.by, reason=sentence("The file was removed from the folder."))
        except (Refused, rules.Locked, rules.NeedsTwo) as error:
            return ours, Step(path, "kept", str(error))
        return None, Step(path, "deleted")
    if theirs == base:
        return None, None
    made = importing.bring(File(paths.clean_path(path), theirs or ""), space, reason=sentence("Changed in a folder."))
    return theirs, Step(path, made.outcome, made.detail)


def _both(
    note: Note | None, path: str, base: str | None, ours: str | None, theirs: str | None, space: Space
) -> tuple[str | None, Step | None]:
    outcome = merging.merge(base, ours, theirs)
    if outcome.kind in ("same", "ours"):
        return outcome.text, None
    file = File(paths.clean_path(path), theirs or "")
    made = importing.bring(file, space, reason=sentence("Changed in a folder."), base=lambda _: base)
    now = space.note(file.path.key)
    text = now.current.text if now and now.current else None
    step = None if made.outcome == "unchanged" else Step(path, made.outcome, made.detail)
    return text, step


def _agreed_text(note: Note | None, digest: str | None) -> str | None:
    if note is None or digest is None:
        return None
    found = note.revisions.filter(sha256=bytes.fromhex(digest), blanked_at=None).first()
    return found.text if found else None


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One run at a time on one folder."""
    if not root.is_dir():
        raise BadFolder(f"There is no folder {root}. Make it first: a wrong name must not look like an empty folder.")
    (root / STATE).parent.mkdir(exist_ok=True)
    with open((root / STATE).parent / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadFolder("Another run keeps this folder in step right now.") from None
        yield


def _state(root: Path) -> dict[str, dict[str, str]]:
    try:
        state: Any = orjson.loads((root / STATE).read_bytes())
    except FileNotFoundError:
        return {}
    except orjson.JSONDecodeError:
        raise BadFolder(f"{root / STATE} is damaged. Remove it: both sides are then compared afresh.") from None
    return state if isinstance(state, dict) else {}


def _read(root: Path) -> Iterator[tuple[str, tuple[paths.NotePath, str]]]:
    """The notes among the files: below the known families, ending in .md. Links are refused, never followed."""
    seen: dict[str, str] = {}
    for family in sorted(path for path in root.iterdir() if path.name.casefold() in paths.FAMILIES):
        for place, folders, names in os.walk(family, followlinks=False):
            links = [name for name in (*folders, *names) if (Path(place) / name).is_symlink()]
            if links or family.is_symlink():
                raise BadFolder(f"{place}/{(links or [''])[0]} is a link. Put the file itself there.")
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.casefold().endswith(".md") and not name.startswith("."):
                    found = _file(root, Path(place) / name)
                    if found[0].key in seen:
                        raise BadFolder(f"{found[0]} and {seen[found[0].key]} are one note; keep one of them.")
                    seen[found[0].key] = found[0].shown
                    yield found[0].key, found
    if len(seen) > MAX_NOTES:
        raise BadFolder(f"A folder may hold {MAX_NOTES:,} notes.")


def _file(root: Path, file: Path) -> tuple[paths.NotePath, str]:
    name = file.relative_to(root).as_posix()
    try:
        raw = file.read_bytes()
        if len(raw) > MAX_FILE:
            raise BadFolder(f"{name} has {len(raw):,} bytes; a note has {MAX_FILE // 1024} KB at most.")
        return paths.clean_path(name), raw.decode()
    except UnicodeDecodeError:
        raise BadFolder(f"{name} is not UTF-8.") from None
    except paths.InvalidPath as error:
        raise BadFolder(f"{name}: {error.advice}") from None


def _put(root: Path, path: str, text: str | None) -> None:
    file = root / paths.clean_path(path).shown
    if not file.parent.resolve().is_relative_to(root.resolve()):
        raise BadFolder(f"{path} leads out of the folder.")
    if text is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    _replace(file, text.encode())


def _replace(file: Path, content: bytes) -> None:
    """The whole file or the old one, whenever the process ends."""
    fresh = file.with_name(f".{file.name[:100]}.new")
    with open(fresh, "wb") as new:
        new.write(content)
        new.flush()
        os.fsync(new.fileno())
    fresh.replace(file)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
