"""What a body says about itself: its kind, its thread, and the marks by which others find that thread. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from memory.graph.summaries.line import one_line, word

MAX_KEY: Final = 300
MAX_MARK: Final = 400


class Unreadable(ValueError):
    """The body is not what this kind of endpoint takes; the words say what it takes."""


@dataclass(frozen=True, slots=True)
class Marks:
    """By what a thread is found (`seek`, the surest first) and is found later (`keep`).

    `keep` holds only for a thread that is known by more than the call itself: a PR, a mail. `renew` moves a mark to the
    thread that names it last, as a branch does; `drop` forgets it.
    """

    seek: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    renew: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def unsure(self) -> "Marks":
        """What is kept where only the call itself says which thread it is."""
        return Marks(renew=self.renew, drop=self.drop)


@dataclass(frozen=True, slots=True)
class Taken:
    """One call, read. `key` is the thread's where no mark leads to another."""

    event: str
    payload: bytes
    media_type: str = "application/json"
    external_id: str | None = None
    key: str | None = None
    title: str = ""
    summary: str = ""
    occurred_at: datetime | None = None
    # `github:acme/payments`: what a bare #412 in the text belongs to.
    repository: str = ""
    # What the repository is called, as marks: name -> its own mark and its name in the case it has.
    names: Mapping[str, str] = field(default_factory=dict)
    # True where the body itself names the thread (a PR's number), so that its marks may be kept.
    is_sure: bool = False
    marks: Marks = field(default_factory=Marks)
    # Keys of threads that this one continues: the checks of a commit from before its PR was opened.
    also: tuple[str, ...] = ()


def moment(*values: Any) -> datetime | None:
    """The first that is a time: ISO 8601, or seconds or milliseconds since 1970."""
    for value in values:
        found = _moment(value)
        if found is not None:
            return found
    return None


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC) if value > 0 else None
        if not isinstance(value, str) or not value.strip() or len(value) > 60:
            return None
        text = value.strip()
        if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit():
            return _moment(float(text))
        text = text.removesuffix(" UTC") + ("+00:00" if text.endswith(" UTC") else "")
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def name(text: str, most: int = MAX_KEY) -> str:
    """A text fit to be a key, an id or a mark: one line, within its length."""
    return one_line(text, most) if text else ""


def title_of(body: Any, *path: str) -> str:
    return one_line(word(body, *path), 300)
