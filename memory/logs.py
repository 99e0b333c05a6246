"""What may stand in a log: never a login link's token, an agent key, or another secret."""

import logging
import re

from memory import redact

_TOKEN = re.compile(r"(/login/link/)[^/\s?\"']+")


class Masked(logging.Filter):
    """Takes secrets out of a record's message. A log is read by more people than the memory."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True always: the record stays, its secrets do not."""
        said = record.getMessage()
        masked = _TOKEN.sub(r"\1[token]", said)
        if record.levelno >= logging.WARNING:
            masked = str(redact.clean_text(masked[:20_000]).value)
        if masked != said:
            record.msg, record.args = masked, ()
        return True
