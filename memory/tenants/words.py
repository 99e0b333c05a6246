"""What the actions of access.MAY and the scopes of keys are called on pages, beside their codes."""

from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

ACTIONS: Final = {
    "note.read": gettext_noop("Read notes"),
    "note.propose": gettext_noop("Propose changes to notes, and edit their own space"),
    "note.edit": gettext_noop("Edit the team's notes"),
    "note.approve": gettext_noop("Approve and reject proposals"),
    "note.revert": gettext_noop("Bring an earlier revision back"),
    "note.delete": gettext_noop("Delete notes"),
    "note.comment": gettext_noop("Comment on proposals"),
    "note.assign": gettext_noop("Give proposals to members"),
    "note.purge": gettext_noop("Purge all that came from a source"),
    "note.read_private": gettext_noop("Read members' own spaces, while the team's rule allows it"),
    "rule.manage": gettext_noop("Set rules by path"),
    "session.read": gettext_noop("Read sessions and their events"),
    "session.delete": gettext_noop("Delete their own sessions"),
    "session.delete_any": gettext_noop("Delete anybody's sessions"),
    "event.record": gettext_noop("Record events of sessions"),
    "graph.read": gettext_noop("Read threads, triggers and workers"),
    "graph.record": gettext_noop("Record and change threads, triggers and workers"),
    "graph.withdraw": gettext_noop("Take back threads, triggers and workers of their own"),
    "graph.delete": gettext_noop("Delete threads, triggers and workers"),
    "project.read": gettext_noop("Read the list of projects"),
    "project.edit": gettext_noop("Merge and map projects"),
    "project.limit": gettext_noop("Limit a project to some members"),
    "dream.read": gettext_noop("Read dream runs"),
    "dream.start": gettext_noop("Start and cancel dreams"),
    "dream.undo": gettext_noop("Undo a dream"),
    "dream.budget": gettext_noop("Set the monthly budget of dreams"),
    "cache.read": gettext_noop("Read the caches"),
    "cache.use": gettext_noop("Look up in and store into the caches"),
    "cache.manage": gettext_noop("Set cache policies and purge entries"),
    "key.create": gettext_noop("Make agent keys of their own"),
    "member.read": gettext_noop("See who is in the team"),
    "member.manage": gettext_noop("Invite, change and remove members"),
    "audit.read": gettext_noop("Read the audit"),
    "webhook.manage": gettext_noop("Make and change webhooks"),
    "settings.manage": gettext_noop("Change the team's settings"),
    "settings.read": gettext_noop("Read the team's settings"),
    "news.choose": gettext_noop("Choose what they are told of"),
    "filter.save": gettext_noop("Save filters for themselves"),
    "filter.share": gettext_noop("Save filters for everybody"),
}
SCOPES: Final = {
    "ingest": gettext_noop("Record: hooks, events, triggers"),
    "read": gettext_noop("Read: notes, sessions, threads"),
    "propose": gettext_noop("Propose changes to notes"),
    "cache": gettext_noop("Use the caches"),
    "dream": gettext_noop("Start dreams"),
    "admin": gettext_noop("Administer: projects, caches, delete records"),
}


def with_code(code: str) -> SafeString:
    """An action or a scope as pages name it: in words, with its code beside them."""
    words = ACTIONS.get(code) or SCOPES.get(code)
    return format_html('{} <code class="code-beside">{}</code>', gettext(words) if words else "", code)
