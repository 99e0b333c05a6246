"""Tellings whose event comes later: a client with a backlog asks at once, and sends the event after those before it."""

from collections.abc import Mapping

from django.db.models import Max

from memory.events.models import Session
from memory.recall.models import Telling, ToldNote


def known(key: str) -> Telling | None:
    """What was told for an event that is still on its way."""
    return Telling.objects.filter(event=None, awaits=key).first()


def go_on(session_pk: str, *, renews: bool) -> None:
    """Let the session's count of what it forgot run on from events that are still on their way."""
    found = Telling.objects.filter(event=None, session_id=session_pk).aggregate(last=Max("generation"))
    if found["last"] is not None:
        now = found["last"] + renews
        Session.objects.filter(pk=session_pk, generation__lt=now).update(generation=now)


def taken(event_pk: str) -> tuple[Telling, list[ToldNote]] | None:
    """What was told at an event and the notes in it, to outlive the transaction that is taken back."""
    told = Telling.objects.filter(event_id=event_pk).first()
    return (told, list(told.notes.all())) if told else None


def keep(told: Telling, notes: list[ToldNote], *, key: str) -> None:
    """Store a telling without its event."""
    told.event, told.awaits = None, key
    told.save(force_insert=True)
    ToldNote.objects.bulk_create(notes)


def arrived(events: Mapping[str, str]) -> None:
    """Give what was told before to the events that came in now: `events` are their rows by their keys."""
    for told in Telling.objects.filter(event=None, awaits__in=list(events)).only("pk", "awaits"):
        # Two that bring the same event give it the same row.
        Telling.objects.filter(pk=told.pk, event=None).update(event_id=events[told.awaits], awaits="")
