"""How a text would read as a note, before it is one."""

from dataclasses import dataclass

from memory.notes import editing, links, reading
from memory.notes.frontmatter import MACHINE_NOTE_BYTES
from memory.notes.markdown import render as to_html
from memory.notes.publish import title_of
from memory.tenants.access import Actor
from memory.tenants.models import Member, Tenant


@dataclass(frozen=True)
class Preview:
    """A text as a reader sees it, and what stands against saving it."""

    title: str
    description: str
    html: str
    size: int
    problems: list[str]
    is_empty: bool = False

    @property
    def is_long(self) -> bool:
        return self.size > MACHINE_NOTE_BYTES


def preview(tenant: Tenant, text: str, *, path: str, member: Member | None, by: Actor) -> Preview:
    """The text as it would read at this path, in the team's space or a member's own, with the links that `by` sees."""
    document, problems = editing.checked(text)
    title = title_of(document, path)
    body = reading.below_title(document.body, title)
    linked = links.of(tenant, body, by=by, path=path, member=member)
    html = to_html(body, link_for=linked.link_for, page_for=linked.page_for)
    about, size = document.field("description"), len(text.encode())
    return Preview(title, about, html, size, problems, is_empty=not (body.strip() or about or document.field("title")))
