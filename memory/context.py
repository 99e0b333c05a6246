"""What the frame of every page shows: how much waits, and in how many teams this person is."""

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from memory.notes import reading
from memory.tenants import entry


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor; lazy, so that a piece of a page costs no query."""
    if getattr(request, "member", None) is None:
        return {}
    actor = request.actor  # type: ignore[attr-defined]
    return {
        # Shown twice on a page, in the side bar and in the menu; counted once.
        "inbox_count": cache(lambda: reading.waiting(actor).count()),
        "tenant_count": lambda: len(entry.teams(request)),
    }


def languages(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what pages can speak, each by its own name."""
    return {"languages": settings.LANGUAGES}
