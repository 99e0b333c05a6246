"""How news reads. Pure: notices in, words out. Paths, people and links; never a line of a note."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from django.conf import settings
from django.urls import reverse

from memory.notes.models import Notice, Proposal
from memory.tenants.models import Member, Tenant

HEADS: Final = {
    "assigned": "Given to you",
    "review": "Waits for your review",
    "comment": "Said about a proposal",
}
_ORDER: Final = tuple(HEADS)
_CHANGES: Final = {"write": "change", "delete": "deletion", "move": "move"}
# A comment is its writer's own words, and a mail is read where we can't take it back: its beginning is enough.
MOST_SAID: Final = 280


@dataclass(frozen=True)
class Words:
    """A message: its subject, its text, and the page where its reader chooses what is sent."""

    subject: str
    text: str
    page: str


def mail(tenant: Tenant, member: Member, told: Sequence[Notice], *, most: int) -> Words:
    """One mail with all that is new for a member."""
    page = link(tenant, "news")
    parts = [_heading(tenant)]
    for kind, some in _kinds(told[:most]):
        parts.append("\n".join([HEADS[kind], "", *(_mail_line(tenant, one) for one in some)]))
    if len(told) > most:
        parts.append(f"And {len(told) - most} more: {link(tenant, 'inbox')}")
    parts.append(
        f"-- \nYou get this as {member.handle} of {tenant.name}. Choose what is sent, and how often:\n{page}\n"
    )
    return Words(_subject(told), "\n\n".join(parts), page)


def slack(tenant: Tenant, told: Sequence[Notice], *, most: int) -> Words:
    """One post for the team's channel: each piece of news once, with those it is for."""
    lines = []
    by_occasion = {one.occasion: one for one in told}
    for occasion, one in list(by_occasion.items())[:most]:
        handles = sorted({other.member.handle for other in told if other.occasion == occasion})
        people = ", ".join(f"@{_plain(handle)}" for handle in handles)
        lines.append(f"• {people}: {_plain(_what(one))}: <{_to(tenant, one)}|{_plain(one.proposal.note.path)}>")
    if len(by_occasion) > most:
        lines.append(f"And {len(by_occasion) - most} more: {link(tenant, 'inbox')}")
    return Words(_subject(list(by_occasion.values())), "\n".join(lines), link(tenant, "news"))


def link(tenant: Tenant, name: str, *args: str) -> str:
    """The address of a page of the team, as people reach it."""
    return settings.PUBLIC_URL + reverse(name, args=[tenant.slug, *args])


def _heading(tenant: Tenant) -> str:
    return f"Team Memory, {tenant.name}"


def _kinds(told: Sequence[Notice]) -> Iterator[tuple[str, list[Notice]]]:
    rows = sorted(told, key=lambda one: _ORDER.index(one.kind))
    for kind, some in groupby(rows, key=lambda one: one.kind):
        yield kind, list(some)


def _subject(told: Sequence[Notice]) -> str:
    if len(told) > 1:
        kinds = {one.kind for one in told}
        if kinds == {"review"}:
            return f"{len(told)} proposals wait for your review"
        return f"{len(told)} news about proposals"
    [one] = told
    path = one.proposal.note.path
    if one.kind == "comment" and one.comment:
        return f"{one.comment.member.handle} about {path}"
    return f"Given to you: {path}" if one.kind == "assigned" else f"To review: {path}"


def _mail_line(tenant: Tenant, one: Notice) -> str:
    said = f":\n  “{_shortened(one.comment.text)}”" if one.kind == "comment" and one.comment else "."
    return f"* {one.proposal.note.path}\n  {_what(one)}{said}\n  {_to(tenant, one)}\n"


def _to(tenant: Tenant, one: Notice) -> str:
    return link(tenant, "proposal", one.proposal.public_id)


def _what(one: Notice) -> str:
    if one.kind == "comment" and one.comment:
        return f"{one.comment.member.handle} commented"
    if one.kind == "assigned":
        return f"{one.proposal.assigned_by} gave you this {_change(one.proposal)}"
    # A key's name is typed by whoever makes it: it stays one line of ours.
    author = "A dream" if one.proposal.author_kind == "dream" else " ".join(one.proposal.author_label.split())
    return f"{author} proposes a {_change(one.proposal)}"


def _change(proposal: Proposal) -> str:
    kind = _CHANGES.get(proposal.operation, "change")
    return "new text" if kind == "change" and proposal.base_id is None else kind


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MOST_SAID else f"{plain[:MOST_SAID].rstrip()}…"


def _plain(text: str) -> str:
    """Text that Slack reads as text: no link, no call of a whole channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
