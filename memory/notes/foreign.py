"""What other tools remember, as drafts: CLAUDE.md, AGENTS.md, Cursor rules, and folders of markdown."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.utils.translation import gettext

from memory.notes import frontmatter, paths
from memory.sentences import thousands

ENDINGS: Final = (".md", ".mdc")
LEFT_OUT: Final = frozenset({"node_modules", "vendor", "dist", "build"})
# Hidden folders that hold memories; all others are not ours to read.
HIDDEN: Final = frozenset({".cursor", ".claude", ".codex", ".github", ".windsurf"})
MAX_BYTES: Final = 128 * 1024
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*)")


class Unreadable(ValueError):
    """The file can't become a note; `str()` says why."""


@dataclass(frozen=True)
class Found:
    """A file, and the note that it would be."""

    file: Path
    path: str
    text: str


def files_in(place: Path) -> Iterator[Path]:
    """The memory files at a place, in order; a file itself is taken whatever it is called. Links are left alone."""
    if place.is_file():
        yield place
        return
    for folder, folders, names in os.walk(place, followlinks=False):
        folders[:] = sorted(
            name for name in folders if name not in LEFT_OUT and (not name.startswith(".") or name in HIDDEN)
        )
        for name in sorted(names):
            file = Path(folder) / name
            if name.lower().endswith(ENDINGS) and not file.is_symlink():
                yield file


def read(file: Path, *, root: Path, project: str = "") -> Found:
    """The note that a file would be. Raises Unreadable."""
    parts = file.relative_to(root).parts if root != file else (file.name,)
    base = f"project/{paths.slug(project)}" if project else f"general/{paths.slug(root.resolve().name)}"
    return Found(file, path_of(parts, base=base), text_of(file.read_bytes()))


def path_of(parts: tuple[str, ...], *, base: str) -> str:
    """The path of the note below `base`, by the file's folders and name."""
    stem = [paths.slug(part.lstrip(".")) for part in (*parts[:-1], Path(parts[-1]).stem)][-4:]
    return f"{base}/{'/'.join(stem)}.md"


def text_of(raw: bytes) -> str:
    """The text of the note. Raises Unreadable."""
    if len(raw) > MAX_BYTES:
        raise Unreadable(gettext("%(raw)s bytes are too long for a note; split it.") % {"raw": thousands(len(raw))})
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(gettext("it is not UTF-8.")) from None
    return readable(text)


def readable(text: str) -> str:
    """The text with a head that our rules admit: Cursor writes `globs: *.ts`, which no YAML reader takes."""
    try:
        frontmatter.split(text)
    except frontmatter.InvalidFrontmatter:
        head, _, body = text.removeprefix("---").lstrip("\r").removeprefix("\n").partition("\n---")
        fields: dict[str, frontmatter.Value] = {}
        for line in head.splitlines():
            if (found := _FIELD.fullmatch(line.strip())) and found[1] not in fields:
                fields[found[1]] = found[2].strip()
        return frontmatter.compose(fields, body.partition("\n")[2])
    return text
