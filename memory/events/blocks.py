"""What the memory and the harness themselves put into a prompt. It is never what a person said."""

from typing import Final

NAMES: Final = ("team-memory", "system-reminder")


def without_injected(text: str) -> str:
    """The text without `<team-memory …>…</team-memory>` and `<system-reminder>…</system-reminder>`.

    A block that is never closed goes to the end: a cut-off block must not be taken for a person's words.
    """
    if "<" not in text:
        return text.strip()
    for name in NAMES:
        text = _without(text, name)
    return text.strip()


def _without(text: str, name: str) -> str:
    kept, at = [], 0
    while (start := _opening(text, name, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(f"</{name}", start)
        at = text.find(">", end) + 1 if end >= 0 else len(text)
        if at == 0:
            at = len(text)
    return "".join((*kept, text[at:]))


def _opening(text: str, name: str, at: int) -> int:
    """Where the next `<name` stands as a whole word."""
    tag = f"<{name}"
    while (at := text.find(tag, at)) >= 0:
        after = text[at + len(tag) : at + len(tag) + 1]
        if not after or after in "> \t\r\n/":
            return at
        at += len(tag)
    return -1
