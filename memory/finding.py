"""What one field finds for a person: pages, notes, threads and what is in them, sessions, members."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop

from memory.events.models import Session
from memory.recall import everywhere, vectors
from memory.recall.kinds import KINDS
from memory.recall.looks import reach_of
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

# Where each kind of hit is read, what it is called, and its sign.
_KINDS: Final = {
    "note": ("note", gettext_noop("Note"), "note"),
    "thread": ("thread", gettext_noop("Thread"), "thread"),
    "trigger": ("trigger", gettext_noop("Trigger"), "trigger"),
    "worker": ("worker", gettext_noop("Worker"), "worker"),
    "event": ("event", gettext_noop("Prompt"), "prompt"),
}
# Pages by the names that people call them, and what may be done there.
_PAGES: Final = (
    ("inbox", gettext_noop("Inbox"), "review approve proposals", "note.read", "inbox"),
    ("notes", gettext_noop("Notes"), "memory", "note.read", "note"),
    ("note_files", gettext_noop("Notes as files"), "export import download zip", "note.read", "note"),
    ("rules", gettext_noop("Review rules"), "auto locked four eyes", "rule.manage", "inbox"),
    ("garden", gettext_noop("Gardener"), "duplicates stale", "note.read", "note"),
    ("purge", gettext_noop("Purge by source"), "poison quarantine", "note.purge", "note"),
    ("threads", gettext_noop("Threads"), "pull requests tickets", "graph.read", "thread"),
    ("unlinked", gettext_noop("Unlinked triggers"), "links", "graph.read", "trigger"),
    ("sessions", gettext_noop("Sessions"), "agents events", "session.read", "session"),
    ("dreams", gettext_noop("Dreams"), "runs budget cost", "dream.read", "dream"),
    ("caches", gettext_noop("Caches"), "hits tokens saved", "cache.read", "cache"),
    ("cache_tools", gettext_noop("Cache policies"), "tools serve observe", "cache.read", "cache"),
    ("cache_repeats", gettext_noop("Duplicate audit"), "repeats", "cache.read", "cache"),
    ("projects", gettext_noop("Projects"), "roots merge", "project.read", "project"),
    ("endpoints", gettext_noop("Webhooks"), "github gitlab slack mail", "webhook.manage", "webhook"),
    ("members", gettext_noop("Members"), "invite people roles", "member.read", "access"),
    ("keys", gettext_noop("Agent keys"), "tokens rotate revoke", "member.read", "keys"),
    ("roles", gettext_noop("Roles"), "who may what", "member.read", "access"),
    ("audit", gettext_noop("Audit"), "log changes refusals", "audit.read", "access"),
    ("connect", gettext_noop("Connect an agent"), "hooks install mcp", "member.read", "connect"),
    ("settings", gettext_noop("Settings"), "model retention alerts", "settings.read", "keys"),
    ("news", gettext_noop("Your news"), "notifications mail slack", "news.choose", "account"),
    ("docs", gettext_noop("Guide"), "help documentation", "note.read", "docs"),
)
_OF_EACH: Final = 5
_HITS: Final = 12


@dataclass(frozen=True)
class Found:
    """One thing that may be gone to: what it is, what it is called, a line about it, and its page."""

    kind: str
    icon: str
    title: str
    about: str
    url: str


def find(tenant: Tenant, by: Actor, q: str, *, is_typing: bool = False) -> list[Found]:
    """What fits, best first: pages by name, sessions and members, then what search finds by words and, unless the
    person is still typing, by meaning. Empty for an empty question.
    """
    if not q:
        return []
    found = [*_pages(tenant, by, q), *_members(tenant, by, q), *_sessions(tenant, by, q)]
    return [*found, *_hits(tenant, by, q, is_typing=is_typing)]


def _pages(tenant: Tenant, by: Actor, q: str) -> Iterator[Found]:
    asked = q.casefold().split()
    for name, title, words, action, icon in _PAGES:
        # By its English name too: the guide and colleagues speak of it so.
        known = f"{title} {gettext(title)} {words}".casefold().split()
        if by.may(action) and all(any(word.startswith(part) for word in known) for part in asked):
            yield Found(gettext("Page"), icon, gettext(title), "", reverse(name, args=[tenant.slug]))


def _members(tenant: Tenant, by: Actor, q: str) -> Iterator[Found]:
    if not by.may("member.read"):
        return
    fits = Q(handle__icontains=q) | Q(user__name__icontains=q) | Q(user__email__icontains=q)
    for member in tenant.members.filter(fits).select_related("user").order_by("handle")[:_OF_EACH]:
        url = f"{reverse('members', args=[tenant.slug])}#{member.public_id}"
        role = gettext(member.role).capitalize()
        yield Found(gettext("Member"), "access", member.user.name or member.handle, role, url)


def _sessions(tenant: Tenant, by: Actor, q: str) -> Iterator[Found]:
    if not by.may("session.read"):
        return
    # A prompt's words are found as prompts; here a session is named by its id, the harness's own, or its project.
    fits = Q(public_id__startswith=q) | Q(key__startswith=q) | Q(project__name__icontains=q)
    rows = tenant.sessions.filter(fits, deleted_at=None).select_related("project")
    for session in rows.order_by("-last_received_at", "-pk")[:_OF_EACH]:
        url = reverse("session", args=[tenant.slug, session.public_id])
        yield Found(
            gettext("Session"), "session", _named(session), session.project.name if session.project else "", url
        )


def _named(session: Session) -> str:
    said = " ".join(session.last_prompt.split())
    return said[:200] or session.public_id


def _hits(tenant: Tenant, by: Actor, q: str, *, is_typing: bool) -> Iterator[Found]:
    reach = reach_of(str(tenant.pk), kinds=KINDS, member_pk=by.member_pk)
    asked = everywhere.Asked(q, reach, member_pk=by.member_pk)
    hits = everywhere.find(asked, limit=_HITS, by=None if is_typing else vectors.maker())
    threads = [hit.record.public_id for hit in hits if hit.record.kind == "thread"]
    # Threads of one kind are often titled alike; the key says which pull request, ticket or run it is.
    keys = dict(tenant.threads.filter(public_id__in=threads).values_list("public_id", "key"))
    for hit in hits:
        page, kind, icon = _KINDS[hit.record.kind]
        shown = hit.show()
        # A prompt's title is the hook that brought it; what was asked says more.
        named = shown["title"] if hit.record.kind != "event" else ""
        title = named or shown["summary"] or shown["title"] or hit.record.public_id
        about = shown.get("path") or keys.get(hit.record.public_id) or shown["snippet"]
        url = reverse(page, args=[tenant.slug, hit.record.public_id])
        yield Found(gettext(kind), icon, title, about if about != title else "", url)
