"""Diffs: every file and hunk with its counts; the lines themselves are fetched."""

import re
from typing import Final

from cache_admin.summaries.fit import rows_of

MOST_HUNKS: Final = 300
CLIP: Final = 160
_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")


def summary(text: str) -> str:
    """A line for each file (how many lines came and went) and each hunk (where, in which function)."""
    lines: list[str] = []
    files = added = removed = hunks = 0
    counts = [0, 0]
    head = -1
    for number, row in enumerate(rows_of(text), 1):
        hunk = _HUNK.match(row)
        if row.startswith(("diff --git ", "Index: ")) or (row.startswith("--- ") and head < 0):
            files += 1
            head = len(lines)
            counts = [0, 0]
            lines.append(_name(row))
        elif hunk:
            hunks += 1
            if hunks <= MOST_HUNKS:
                lines.append(f"  at line {hunk[1]} {hunk[2][:CLIP]} [{number}]".rstrip())
        elif row.startswith(("+", "-")) and not row.startswith(("+++", "---")):
            counts[row[0] == "-"] += 1
            added, removed = added + (row[0] == "+"), removed + (row[0] == "-")
            if head >= 0:
                lines[head] = f"{lines[head].partition(' (+')[0]} (+{counts[0]} -{counts[1]})"
    if not files:
        return ""
    more = [f"[{hunks - MOST_HUNKS} more hunks]"] if hunks > MOST_HUNKS else []
    return "\n".join([f"[{files} files, +{added} -{removed}; [n] is the line of the diff]", *lines, *more])


def _name(row: str) -> str:
    if row.startswith("diff --git "):
        return row.rpartition(" b/")[2][:CLIP]
    return row.partition(" ")[2].removeprefix("a/")[:CLIP]
