"""The user guide: markdown files in templates/docs, shown by the app."""

from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.safestring import SafeString

from memory.notes.markdown import render

ORDER = ("start", "review", "threads", "caches", "admin", "api", "check", "operate", "scale")


@dataclass(frozen=True)
class GuidePage:
    """One page of the guide."""

    slug: str
    title: str
    html: SafeString


@cache
def pages() -> tuple[GuidePage, ...]:
    """The pages in reading order."""
    found = []
    for slug in ORDER:
        text = (settings.BASE_DIR / "templates" / "docs" / f"{slug}.md").read_text(encoding="utf-8")
        found.append(GuidePage(slug, text.split("\n", 1)[0].lstrip("# ").strip(), render(text)))
    return tuple(found)


def page(slug: str) -> GuidePage | None:
    """The page of that name, or None."""
    return next((entry for entry in pages() if entry.slug == slug), None)
