"""A mail's line: who wrote, and the subject."""

import base64
import email.utils
import quopri
import re
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from typing import Any, Final

from memory.graph.summaries.line import one_line, whole, word

_HEAD: Final = 256 * 1024
_WORD: Final = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]{0,1000})\?=")
_ENCODED: Final = re.compile(rf"{_WORD.pattern}(?:\s*{_WORD.pattern})*")


def line(raw: bytes) -> str:
    """`Alice Doe: Re: the retry test is red`; the address where there is no name."""
    message = BytesParser(policy=compat32).parsebytes(head_of(raw), headersonly=True)
    sender, subject = _sender(header(message, "From")), header(message, "Subject")
    if sender or subject:
        return one_line(f"{sender or 'Mail'}: {subject or '(no subject)'}")
    return one_line(raw[:4000].decode("utf-8", "replace"))


def line_of_fields(body: dict[str, Any]) -> str:
    """The same from the JSON that mail services post."""
    lower = {str(key).lower(): value for key, value in body.items()}
    sender = word(lower, "from", "email") or word(lower, "from") or word(lower, "sender")
    subject = word(lower, "subject")
    return one_line(f"{_sender(sender) or 'Mail'}: {subject or '(no subject)'}") if sender or subject else ""


def head_of(raw: bytes) -> bytes:
    """The header part, at most 256 KB: what follows is body."""
    raw = raw.lstrip(b"\r\n")[:_HEAD]
    if raw.startswith(b"From ") and b"\n" in raw:
        raw = raw[raw.index(b"\n") + 1 :]  # mbox's own line
    ends = [end for end in (raw.find(b"\r\n\r\n"), raw.find(b"\n\n")) if end >= 0]
    return raw[: min(ends)] + b"\n\n" if ends else raw


def header(message: Message, name: str) -> str:
    """A header as text, whatever its bytes are: decoded where it says how, else as UTF-8, else as Latin-1.

    Without secrets: no look at the mail's bytes sees through its encoded words.
    """
    # The parser's own reading puts question marks for bytes beyond ASCII; the raw ones are kept as surrogates.
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join(whole(_decoded(_natural(raw))).split())


def _natural(text: str) -> str:
    """Bytes beyond ASCII that stand in a header as they are."""
    try:
        raw = text.encode("ascii", "surrogateescape")
    except UnicodeEncodeError:
        return text
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _decoded(text: str) -> str:
    """Encoded words as what they stand for. Neighbours are joined as bytes: senders split characters between them."""
    return _ENCODED.sub(lambda found: _run(found[0]), text) if "=?" in text else text


def _run(words: str) -> str:
    joined: list[tuple[str, bytes]] = []
    for charset, how, content in _WORD.findall(words):
        charset = charset.partition("*")[0].lower()
        raw = _bytes(how, content)
        if joined and joined[-1][0] == charset:
            joined[-1] = (charset, joined[-1][1] + raw)
        else:
            joined.append((charset, raw))
    return "".join(readable(raw, charset) for charset, raw in joined)


def _bytes(how: str, content: str) -> bytes:
    raw = content.encode("utf-8", "surrogateescape")
    if how in "qQ":
        return quopri.decodestring(raw, header=True)
    try:
        return base64.b64decode(raw + b"=" * (-len(raw) % 4))
    except ValueError:
        return raw


def readable(raw: bytes, charset: str) -> str:
    """Bytes by the charset they claim, else as UTF-8, else as Latin-1, which reads anything."""
    for name in (charset or "utf-8", "utf-8"):
        try:
            return raw.decode(name)
        except (LookupError, UnicodeError, ValueError):
            continue
    return raw.decode("latin-1")


def _sender(text: str) -> str:
    name, address = email.utils.parseaddr(text)
    return name or address or text
