"""Mail as it came over the wire (RFC 5322): threaded by References and In-Reply-To, by the subject only at last."""

import email.utils
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from typing import Final

from memory.graph.summaries.line import one_line
from memory.graph.summaries.mail import head_of, header
from memory.graph.webhooks.taken import MAX_MARK, Marks, Taken, Unreadable, name
from memory.sentences import sentence

_ID: Final = re.compile(r"<\s*([^<>\s]{3,250})\s*>")
_REPLY: Final = re.compile(
    r"^\s*(?:(?:re|aw|sv|antw|odp|r|fw|fwd|wg|tr|rv|回复|回覆|答复|转发)(?:\[\d+\])?\s*[::]\s*)+", re.I
)
_MOST_REFERENCES: Final = 50


def take(headers: Mapping[str, str], raw: bytes) -> Taken:
    """The mail, read. Raises Unreadable."""
    message = BytesParser(policy=compat32).parsebytes(head_of(raw), headersonly=True)
    if not message.keys() or not (message.get("From") or message.get("Message-ID") or message.get("Subject")):
        raise Unreadable(
            sentence("The body is a mail as it was sent (RFC 5322): header lines such as From and Subject, then text.")
        )
    own = _ids(message, "Message-ID")[:1]
    before = _references(message)
    subject = header(message, "Subject")
    bare = _REPLY.sub("", subject).strip()
    is_reply = bare != subject.strip()
    by_subject = [_subject_mark(bare)] if bare else []
    # A reply whose program sends no References is found by its subject, never one that has them or is no reply.
    sought = [*map(_mark, before), *map(_mark, own), *(by_subject if is_reply and not before else [])]
    root = (before or own)[:1]
    return Taken(
        event="mail",
        payload=raw,
        media_type="message/rfc822",
        external_id=name(own[0]) if own else None,
        key=name(f"mail:{root[0]}") if root else (name(f"mail:subject:{bare.lower()}") if bare else None),
        title=one_line(bare, 300),
        occurred_at=_date(message),
        is_sure=True,
        marks=Marks(
            seek=_fit(sought),
            keep=_fit([*map(_mark, own), *map(_mark, before)]),
            renew=_fit(by_subject),
        ),
    )


def _references(message: Message) -> list[str]:
    """The ids of what this answers, the oldest first; In-Reply-To where there are no References."""
    found = _ids(message, "References")
    answered = _ids(message, "In-Reply-To")
    kept = list(dict.fromkeys([*found, *answered]))
    own = _ids(message, "Message-ID")
    # A long line of references keeps its root and its nearest.
    kept = [one for one in kept if one not in own]
    return kept if len(kept) <= _MOST_REFERENCES else [kept[0], *kept[1 - _MOST_REFERENCES :]]


def _ids(message: Message, field: str) -> list[str]:
    try:
        values = [str(value) for value in message.get_all(field) or []]
    except (ValueError, LookupError):
        return []
    text = " ".join(values).encode("ascii", "replace").decode().replace("\0", "?")[:20_000]
    found = _ID.findall(text)
    # Some programs leave the brackets away.
    return found or [word for word in text.split() if "@" in word and len(word) <= 250][:1]


def _mark(message_id: str) -> str:
    return f"mail:{message_id}"


def _subject_mark(subject: str) -> str:
    return f"mail subject:{' '.join(one_line(subject, MAX_MARK).lower().split())}"


def _fit(marks: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for mark in marks if len(mark) <= MAX_MARK))


def _date(message: Message) -> datetime | None:
    try:
        at = email.utils.parsedate_to_datetime(header(message, "Date"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
