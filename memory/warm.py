"""What a web worker loads only when it is first needed, loaded right after its start: addresses, tokenizer, parsers.

Whoever came first waited for it, a second or more. It happens beside the requests, so the worker is ready as before; a
request that needs one of them at once waits for the same import that it would have made itself.
"""

import gc
import threading

from django.conf import settings
from django.urls import get_resolver

from cache_admin import semantic
from cache_admin.summaries import summarise
from memory import embed, redact, tokens

_CODE = "import os\n\n\ndef one() -> None:\n    pass\n" * 30
_LOG = "2026-01-01 00:00:00 INFO started\n" * 60


def soon() -> threading.Thread:
    """Load it all in a thread of its own, which never keeps the process from ending."""
    thread = threading.Thread(target=load, name="warm", daemon=True)
    thread.start()
    return thread


def load() -> None:
    """Load it all, what most requests need first. Writes nothing and asks no database."""
    # Django reads the addresses, and with them every view, at the first request.
    _ = get_resolver().url_patterns
    redact.clean_text("token")
    tokens.count("token")
    for text, name in ((_CODE, "a.py"), (_LOG, "logs")):
        summarise(text, "auto", kind=name, tool="")
    maker = semantic.maker() if settings.EMBED == embed.LOCAL else None
    if maker is not None:
        maker.embed(["warm"], kind="query")
    # What is loaded by now stays: the collector need not walk hundreds of thousands of objects each time it runs.
    gc.collect()
    gc.freeze()
