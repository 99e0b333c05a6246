"""Logs: each kind of line once with its count, every rare line and every error as it is, and the tail."""

import re
from collections import Counter
from typing import Any, Final

import re2  # type: ignore[import-untyped]
from drain3.drain import Drain  # type: ignore[import-untyped]

from cache_admin.summaries.fit import rows_of

TAIL: Final = 20
RARE: Final = 1
# Kinds of lines beyond these are shown by their count alone.
MOST_TEMPLATES: Final = 60
MOST_RARE: Final = 150
MOST_ERRORS: Final = 200
# Distinct kinds that Drain sees; more of them are beyond its use, and its time grows with them.
MOST_DISTINCT: Final = 4_000
CLIP: Final = 600
# Numbers, times and ids in one pass over bytes: line by line took six times as long.
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_NUMBER: Final = re.compile(rb"0[0.,:]*+[A-Fa-f0]*+")
# What a tool prints where something went wrong, whatever the level is called. By RE2: one pass, however many words.
_ERROR: Final = re2.compile(
    rb"UNEXPECTED|\bFATAL\b|\bCRITICAL\b|\bPANIC\b|\bpanic:|\bERROR\b|:error\]|\bError:|\bFAILED\b|"
    rb"\bFAILURE\b|\bTraceback\b|\bException\b|\bAssertionError\b|LEAKING|\bexit (?:status|code) [1-9]|"
    rb"\bsegmentation fault\b|\btimed out after\b|\bnpm ERR!"
)
_STRONG: Final = re.compile(r"UNEXPECTED|\bFATAL\b|\bCRITICAL\b|:error\]|LEAKING|\bexit (?:status|code) [1-9]")


def summary(text: str) -> str:
    """Errors first, then rare lines, then each kind of line with how often it came, then the last lines."""
    raw = text.encode("utf-8", "replace")
    rows = rows_of(text)
    masked = [row.strip().decode() for row in _masked(raw).split(b"\n")][: len(rows)]
    counts = Counter(masked)
    errors = _errors(raw, rows, masked)
    taken = set(errors)
    templates, rare = _templates(counts)
    rare_rows = [number for number, kind in enumerate(masked) if kind and kind in rare and number not in taken]
    parts = [f"[{len(rows)} lines, {len(counts)} kinds; numbers in kinds are #]"]
    parts += _section("errors", [_numbered(number, _around_error(rows[number])) for number in errors], MOST_ERRORS * 5)
    parts += _section("rare lines", [_numbered(number, rows[number]) for number in rare_rows], MOST_RARE)
    parts += _section("kinds", [f"{count}x {kind[:CLIP]}" for kind, count in templates], MOST_TEMPLATES)
    tail = range(max(0, len(rows) - TAIL), len(rows))
    return "\n".join(
        [
            *parts,
            *_section("last lines", [_numbered(number, rows[number]) for number in tail if number not in taken], TAIL),
        ]
    )


def _masked(raw: bytes) -> bytes:
    return _NUMBER.sub(b"#", raw.translate(_DIGITS))


def _numbered(number: int, row: str) -> str:
    # Errors keep their length: what is cut off a stack is what somebody looks for.
    return f"{number + 1}: {row if _STRONG.search(row[:CLIP]) else row[:CLIP]}"


def _around_error(row: str) -> str:
    """Of a long line the part that says what went wrong: after a progress bar, or amid a line of a megabyte."""
    raw = row.encode("utf-8", "replace")
    found = _ERROR.search(raw) if len(row) > CLIP else None
    if found is None or found.start() <= CLIP // 2:
        return row
    return "…" + raw[found.start() - 100 : found.start() + CLIP].decode("utf-8", "ignore")


def _errors(raw: bytes, rows: list[str], masked: list[str]) -> list[int]:
    """Each line that says that something went wrong; of a weak kind that comes again and again, the first ones."""
    seen: Counter[str] = Counter()
    strong: list[int] = []
    weak: list[int] = []
    for number in _hit_lines(raw):
        is_strong = bool(_STRONG.search(rows[number]))
        seen[masked[number]] += 1
        if seen[masked[number]] <= (MOST_ERRORS if is_strong else 2):
            (strong if is_strong else weak).append(number)
    return sorted(strong + weak[: max(0, MOST_ERRORS - len(strong))])


def _hit_lines(raw: bytes) -> list[int]:
    """The numbers of the lines in which the pattern is found."""
    lines: list[int] = []
    at = number = 0
    for found in _ERROR.finditer(raw):
        number += raw.count(b"\n", at, found.start())
        at = found.start()
        if not lines or lines[-1] != number:
            lines.append(number)
    return lines


def _templates(counts: Counter[str]) -> tuple[list[tuple[str, int]], set[str]]:
    """Kinds of lines by count, and the masked lines that are of no kind."""
    drain = Drain(sim_th=0.5, depth=4, max_children=50, max_clusters=500)
    members: dict[int, list[str]] = {}
    clusters: dict[int, Any] = {}
    for kind, _ in counts.most_common(MOST_DISTINCT):
        cluster, _change = drain.add_log_message(kind)
        members.setdefault(cluster.cluster_id, []).append(kind)
        clusters[cluster.cluster_id] = cluster
    sums = {place: sum(counts[kind] for kind in kinds) for place, kinds in members.items()}
    rare = {kind for place, kinds in members.items() if sums[place] <= RARE for kind in kinds}
    # Beyond what Drain sees stand the kinds that came least often.
    rare |= {kind for kind, count in counts.most_common()[MOST_DISTINCT:] if count <= RARE}
    common = [
        (members[place][0] if len(members[place]) == 1 else clusters[place].get_template(), total)
        for place, total in sums.items()
        if total > RARE
    ]
    return sorted(common, key=lambda one: (-one[1], one[0])), rare


def _section(title: str, rows: list[str], most: int) -> list[str]:
    if not rows:
        return []
    more = [f"[{len(rows) - most} more; grep or lines shows them]"] if len(rows) > most else []
    return [f"[{title}: {len(rows)}]", *rows[:most], *more]
