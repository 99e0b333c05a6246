"""What may stand in a log: never a login link's token, an agent key, or another secret; and which work a line is of."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.orjson import OrjsonFormatter

from memory import redact

_TOKEN = re.compile(r"(/login/link/)[^/\s?\"']+")
_LONGEST = 20_000
_FORMAT = logging.Formatter()
# The request (its X-Request-Id) or the task that this thread works for; "" outside of both.
_request: ContextVar[str] = ContextVar("request", default="")
_task: ContextVar[str] = ContextVar("task", default="")


@contextmanager
def of_request(request_id: str) -> Iterator[None]:
    """Every line logged in the block names the request."""
    before = _request.set(request_id)
    try:
        yield
    finally:
        _request.reset(before)


def task_begins(name: str, task_id: str) -> None:
    """Every line from here on names the task, until another begins."""
    _task.set(f"{name}[{task_id}]" if task_id else "")


class Placed(logging.Filter):
    """Gives each record `request_id` and `task`, and `of`: both as a line of text has them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True always."""
        of = {"request_id": _request.get(), "task": _task.get()}
        vars(record).update(of, of="".join(f" [{name}]" for name in of.values() if name))
        return True


def json_lines() -> logging.Formatter:
    """One JSON object a line, for whatever gathers logs: at, level, logger, message, request_id, task, exception."""
    return OrjsonFormatter(
        ["levelname", "name", "message", "request_id", "task"],
        rename_fields={"levelname": "level", "name": "logger", "exc_info": "exception"},
        reserved_attrs=[*RESERVED_ATTRS, "of"],
        timestamp="at",
    )


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
