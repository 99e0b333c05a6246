"""Search results and listings: every item, clipped. A list that shows its first ten hides the one that matters."""

import re
from collections import Counter
from typing import Final

from cache_admin.summaries.fit import rows_of

CLIP: Final = 100
# Items of one file beyond these are counted: the file is still named.
PER_FILE: Final = 3
PER_FILE_BARE: Final = 30
# `path:12:text`, and `path:text` where grep was asked for no numbers; with `-` a line around a match.
_MATCH: Final = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*?)(?P<mark>[:-])(?:(?P<line>\d+)(?P=mark))(?P<text>.*)"
    r"|(?P<bare>(?:[A-Za-z]:)?[^\s:]*/[^\s:]*?\.\w{1,8})(?P<sign>[:-])(?P<words>.*)"
)
_PATH: Final = re.compile(r"(?:[-\s]*)(?:[\w.@~+-]*[/\\])+[\w.@~+ -]*|[-\s]+[\w.@~+-]+/?|[\w@~+-]+\.\w{1,8}")


def is_listing(rows: list[str]) -> bool:
    """Whether most rows are nothing but a path."""
    return len(rows) >= 5 and sum(bool(_PATH.fullmatch(row)) for row in rows) >= 0.8 * len(rows)


def summary(text: str) -> str:
    """Matches grouped by file, or names grouped by folder; nothing that was found is left unnamed or uncounted."""
    rows = rows_of(text)
    matches = [_match(row) for row in rows]
    if sum(map(bool, matches)) >= 0.5 * len(rows):
        return _matches(rows, matches)
    return _names(rows)


def _match(row: str) -> dict[str, str] | None:
    # No path is as long, of the rest only the beginning is shown, and slashes alone would be searched for hours.
    found = _MATCH.fullmatch(row[:4_000])
    if found is None:
        return None
    if found["path"] is not None:
        return {"path": found["path"], "mark": found["mark"], "line": found["line"], "text": found["text"]}
    return {"path": found["bare"], "mark": found["sign"], "line": "", "text": found["words"]}


def _matches(rows: list[str], matches: list[dict[str, str] | None]) -> str:
    files: dict[str, list[tuple[str, str]]] = {}
    rest = []
    around = 0
    for row, found in zip(rows, matches, strict=True):
        if found is None:
            if row.strip(" -"):
                rest.append(row)
        elif found["mark"] == ":":
            files.setdefault(found["path"], []).append((found["line"] or "", found["text"].strip()))
        else:
            around += 1
    lines = [f"[{sum(map(len, files.values()))} matches in {len(files)} files]"]
    for path, found_at in files.items():
        lines += [f"{path} ({len(found_at)})", *_in_file(found_at)]
    if around:
        lines.append(f"[{around} lines around the matches are hidden]")
    return "\n".join([*lines, *(row[:CLIP] for row in rest)])


def _in_file(found_at: list[tuple[str, str]]) -> list[str]:
    """The matches of a file: the first by their words, all by their line numbers; without numbers, each once."""
    if found_at[0][0]:
        lines = [f"  {line}: {text[:CLIP]}" for line, text in found_at[:PER_FILE]]
        return lines + (["  also " + " ".join(line for line, _ in found_at[PER_FILE:])] if found_at[PER_FILE:] else [])
    counts = Counter(text[:CLIP] for _, text in found_at)
    lines = [
        f"  {text}" + (f" (x{count})" if count > 1 else "") for text, count in list(counts.items())[:PER_FILE_BARE]
    ]
    hidden = len(counts) - PER_FILE_BARE
    return lines + ([f"  [{hidden} more]"] if hidden > 0 else [])


def _names(rows: list[str]) -> str:
    names = [row for row in rows if row.strip()]
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, slash, leaf = name.rstrip("/").rpartition("/")
        folders.setdefault(folder + slash, []).append(leaf + ("/" if name.endswith("/") else ""))
    lines = [f"[{len(names)} items]"]
    for folder, leaves in folders.items():
        lines.append(f"{folder}{{{', '.join(leaf[:CLIP] for leaf in leaves)}}}" if folder else "\n".join(leaves))
    return "\n".join(lines)
