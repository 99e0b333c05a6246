"""What may stand in a log: never a login link's token, an agent key, or another secret."""

import logging
import re

from memory import redact

_TOKEN = re.compile(r"(/login/link/)[^/\s?\"']+")
_LONGEST = 20_000
_FORMAT = logging.Formatter()


class Masked(logging.Filter):
    """Takes secrets out of a record's message and traceback. A log is read by more people than the memory."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True always: the record stays, its secrets do not."""
        said = record.getMessage()
        masked = _clean(said)
        if masked != said:
            record.msg, record.args = masked, ()
        if record.exc_info and not record.exc_text:
            # A formatter writes what stands here, and not the exception again: a database says which values it means.
            record.exc_text = _clean(_FORMAT.formatException(record.exc_info))
        return True


def _clean(text: str) -> str:
    return redact.brief(_TOKEN.sub(r"\1[token]", text), _LONGEST)
