"""Markdown: every heading with its line number, and the first words below it."""

from typing import Final

from cache_admin.summaries.fit import rows_of

CLIP: Final = 160
MOST: Final = 300


def summary(text: str) -> str:
    """The headings, each with the first line of what it says; empty where there are none."""
    rows = rows_of(text)
    lines: list[str] = []
    is_code = wants_words = False
    headings = 0
    for number, row in enumerate(rows, 1):
        if row.lstrip().startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and row.startswith("#"):
            headings += 1
            wants_words = True
            lines.append(f"{number}: {row[:CLIP]}")
        elif wants_words and not is_code and row.strip():
            wants_words = False
            lines.append(f"    {row.strip()[:CLIP]}")
    if headings < 2:
        return ""
    more = [f"[{len(lines) - MOST * 2} more lines of headings]"] if len(lines) > MOST * 2 else []
    return "\n".join([f"[{len(rows)} lines, {headings} headings]", *lines[: MOST * 2], *more])
