"""What the notes API answers: plain JSON values, and the serializers that describe them."""

from collections import defaultdict
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from memory.events.models import Event
from memory.notes import frontmatter, risks
from memory.notes.models import Note, NoteReport, Proposal, Revision, Source

PAGED = [OpenApiParameter("limit", int), OpenApiParameter("cursor", str)]


class RevisionOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    number = serializers.IntegerField()
    tier = serializers.CharField(help_text="T0 approved, T1 a person's words, T2 an agent's, T3 from outside")
    title = serializers.CharField()
    description = serializers.CharField()
    author = serializers.CharField()
    approved_by = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    sha256 = serializers.CharField()
    created_at = serializers.DateTimeField()


class NoteLineOut(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    line = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    deleted = serializers.ListField(child=serializers.CharField(), help_text="Those whose session was deleted")


class NoteOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    space = serializers.CharField()
    path = serializers.CharField()
    project = serializers.CharField(allow_null=True)
    kind = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    revision = RevisionOut()


class NoteFoundOut(NoteOut):
    why = serializers.CharField(required=False, help_text="why it matched; only with q")


class NoteWholeOut(NoteOut):
    text = serializers.CharField()
    sources = NoteLineOut(many=True)


class RiskOut(serializers.Serializer[Any]):
    code = serializers.CharField()
    level = serializers.ChoiceField(choices=list(risks.LEVELS))
    reason = serializers.CharField()


class ProposalOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    note = serializers.CharField()
    space = serializers.CharField()
    path = serializers.CharField()
    operation = serializers.ChoiceField(choices=["write", "delete", "move"])
    target = serializers.CharField(allow_null=True, help_text="where a move goes")
    state = serializers.ChoiceField(choices=["open", "approved", "rejected", "superseded"])
    base = serializers.IntegerField(allow_null=True, help_text="the revision it changes; null for a new note")
    tier = serializers.CharField()
    risks = RiskOut(many=True)
    author = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(allow_null=True)
    decision_reason = serializers.CharField()


class ApproveIn(serializers.Serializer[Any]):
    shown = serializers.CharField(help_text="the sha256 of the text that was read")


class RejectIn(serializers.Serializer[Any]):
    reason = serializers.CharField()
    close_path = serializers.BooleanField(required=False, help_text="never again for this path")


class ReportIn(serializers.Serializer[Any]):
    reason = serializers.CharField(help_text="what is wrong with it, and how you know")


class ReportOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    note = serializers.CharField()
    path = serializers.CharField()
    revision = serializers.IntegerField()
    reason = serializers.CharField()
    author = serializers.CharField()
    state = serializers.ChoiceField(choices=["open", "closed"])
    created_at = serializers.DateTimeField()


class MoveIn(serializers.Serializer[Any]):
    path = serializers.CharField()
    reason = serializers.CharField(required=False)


class ImportedOut(serializers.Serializer[Any]):
    path = serializers.CharField()
    outcome = serializers.ChoiceField(
        choices=["created", "updated", "unchanged", "merged", "proposed", "conflict", "refused"]
    )
    note = serializers.CharField(allow_null=True)
    proposal = serializers.CharField(allow_null=True)
    detail = serializers.CharField()


class ImportOut(serializers.Serializer[Any]):
    signature = serializers.CharField(help_text="valid: signed here; other: signed elsewhere; none: not signed")
    counts = serializers.DictField(child=serializers.IntegerField())
    items = ImportedOut(many=True)


class ProposalWholeOut(ProposalOut):
    text = serializers.CharField()
    sha256 = serializers.CharField()
    sources = NoteLineOut(many=True)


def page_of(item: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The description of a list of `item`."""
    fields = {
        "items": item(many=True),
        "next_cursor": serializers.CharField(),
        "has_more": serializers.BooleanField(),
    }
    return type(f"{item.__name__.removesuffix('Out')}PageOut", (serializers.Serializer,), fields)


def revision(shown: Revision) -> dict[str, Any]:
    return {
        "id": shown.public_id,
        "number": shown.number,
        "tier": f"T{shown.tier}",
        "title": shown.title,
        "description": shown.description,
        "author": shown.author_label,
        "approved_by": shown.approved_by.handle if shown.approved_by else None,
        "reason": shown.reason,
        "sha256": bytes(shown.sha256).hex(),
        "created_at": shown.created_at,
    }


def note(shown: Note, at: Revision) -> dict[str, Any]:
    """A note at one of its revisions, without its text."""
    tags = frontmatter.split(at.text).fields.get("tags", [])
    return {
        "id": shown.public_id,
        "space": shown.space,
        "path": shown.path,
        "project": shown.project.slug if shown.project else None,
        "kind": at.kind,
        "tags": tags if isinstance(tags, list) else [],
        "revision": revision(at),
    }


def whole_note(shown: Note, at: Revision) -> dict[str, Any]:
    return {**note(shown, at), "text": at.text, "sources": lines(list(at.sources.select_related("event")))}


def proposal(shown: Proposal) -> dict[str, Any]:
    """A proposal without its text."""
    return {
        "id": shown.public_id,
        "note": shown.note.public_id,
        "space": shown.note.space,
        "path": shown.note.path,
        "operation": shown.operation,
        "target": shown.target or None,
        "state": shown.state,
        "base": shown.base.number if shown.base else None,
        "tier": f"T{shown.tier}",
        "risks": shown.risks,
        "author": shown.author_label,
        "reason": shown.reason,
        "created_at": shown.created_at,
        "decided_at": shown.decided_at,
        "decided_by": shown.decided_by.handle if shown.decided_by else None,
        "decision_reason": shown.decision_reason,
    }


def whole_proposal(shown: Proposal) -> dict[str, Any]:
    sources = lines(list(shown.sources.select_related("event")))
    return {**proposal(shown), "text": shown.text, "sha256": bytes(shown.sha256).hex(), "sources": sources}


def lines(sources: list[Source]) -> list[dict[str, Any]]:
    """The lines of a text that rest on events, in order, each with its events."""
    events: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for source in sorted(sources, key=lambda one: (one.position, one.event.public_id)):
        events[source.position, source.line].append(source.event)
    return [
        {
            "number": number,
            "line": line,
            "events": [event.public_id for event in cited],
            "deleted": [event.public_id for event in cited if event.is_deleted],
        }
        for (number, line), cited in events.items()
    ]


def report(shown: NoteReport) -> dict[str, Any]:
    return {
        "id": shown.public_id,
        "note": shown.note.public_id,
        "path": shown.note.path,
        "revision": shown.revision.number,
        "reason": shown.reason,
        "author": shown.author_label,
        "state": "closed" if shown.closed_at else "open",
        "created_at": shown.created_at,
    }
