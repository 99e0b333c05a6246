"""What can be found: for each kind, the text search reads of it, who may find it, and where it belongs."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.events.models import Event, ProjectRoot, Session
from memory.graph.models import Thread, Trigger, Worker
from memory.notes.lines import body_of
from memory.notes.models import Note
from memory.recall.scope import same_project
from memory.tenants.rls import NIL

KINDS: Final = ("thread", "trigger", "worker", "note", "event")
MOST_TEXT: Final = 40_000  # characters of one thing that are read
_FORGES: Final = {"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}


@dataclass(frozen=True)
class Subject:
    """What search reads of one thing. `head` is what it is called, `body` what it says."""

    kind: str
    pk: str
    head: str
    body: str
    reader: str = NIL
    place: str = NIL
    thread: str | None = None


def subjects(kind: str, pks: Sequence[str]) -> list[Subject]:
    """The things of a kind that are there to be found: deleted and unapproved ones are not."""
    return _READ[kind](pks)


def place_of(project_pk: str) -> str:
    return str(project_pk)


def named_place(slug: str) -> str:
    """What stands for a project of which only the name in a path is known."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"project {slug}".encode()).digest()[:16]))


def remote_of(key: str | None) -> str:
    """The git remote that a thread's key names (`github:acme/payments#412`), or ""."""
    forge, colon, rest = (key or "").partition(":")
    host, path = _FORGES.get(forge.lower(), ""), rest.partition("#")[0].strip("/").lower()
    return f"{host}/{path}" if colon and host and "/" in path else ""


def _threads(pks: Sequence[str]) -> list[Subject]:
    threads = list(Thread.objects.filter(pk__in=pks, deleted_at__isnull=True))
    places = _places(threads)
    return [
        Subject(
            "thread",
            str(one.pk),
            f"{one.title}\n{one.key or ''}",
            one.summary,
            place=places[str(one.pk)],
            thread=str(one.pk),
        )
        for one in threads
    ]


def _triggers(pks: Sequence[str]) -> list[Subject]:
    found = list(Trigger.objects.filter(pk__in=pks, deleted_at__isnull=True).select_related("thread"))
    places = _places([one.thread for one in found])
    return [
        Subject(
            "trigger",
            str(one.pk),
            one.external_id or "",
            one.summary,
            place=places[str(one.thread_id)],
            thread=str(one.thread_id),
        )
        for one in found
        if one.thread.deleted_at is None
    ]


def _workers(pks: Sequence[str]) -> list[Subject]:
    found = list(Worker.objects.filter(pk__in=pks, deleted_at__isnull=True).select_related("thread"))
    places = _places([one.thread for one in found if one.thread is not None])
    own = _session_places([one.session_public_id for one in found])
    return [
        Subject(
            "worker",
            str(one.pk),
            one.task,
            report_of(one),
            place=own.get(one.session_public_id) or places.get(str(one.thread_id), NIL),
            thread=str(one.thread_id) if one.thread_id else None,
        )
        for one in found
    ]


def report_of(worker: Worker) -> str:
    """The report; of one that is kept elsewhere for its length, its start and its end."""
    return worker.report or f"{worker.report_head}\n{worker.report_tail}".strip("\n")


def _notes(pks: Sequence[str]) -> list[Subject]:
    found = Note.objects.live().filter(pk__in=pks).select_related("current")
    return [_note(one) for one in found]


def _note(note: Note) -> Subject:
    revision = note.current
    assert revision is not None, "only live notes are read"  # noqa: S101
    head = f"{note.path.removesuffix('.md')}\n{revision.title}\n{revision.description}"
    reader = str(note.member_id) if note.member_id else NIL
    return Subject("note", str(note.pk), head, body_of(revision.text), reader, _place_of_note(note))


def _place_of_note(note: Note) -> str:
    if note.project_id:
        return str(note.project_id)
    family, _, rest = note.path_key.partition("/")
    slug, slash, _ = rest.partition("/")
    return named_place(slug) if family == "project" and slash else NIL


def _events(pks: Sequence[str]) -> list[Subject]:
    found = Event.objects.filter(pk__in=pks, kind="prompt", session__is_internal=False).select_related("session")
    return [
        Subject("event", str(one.pk), "", one.summary, place=str(one.session.project_id or NIL))
        for one in found
        if one.summary
    ]


_READ: Final[dict[str, Callable[[Sequence[str]], list[Subject]]]] = {
    "thread": _threads,
    "trigger": _triggers,
    "worker": _workers,
    "note": _notes,
    "event": _events,
}


def _places(threads: Iterable[Thread]) -> dict[str, str]:
    """Each thread's project: the one whose remote its key names, else the one its workers' sessions ran in."""
    by_pk = {str(one.pk): one for one in threads}
    remotes = {pk: remote for pk, one in by_pk.items() if (remote := remote_of(one.key))}
    roots = ProjectRoot.objects.filter(kind="remote", place__in=set(remotes.values())).select_related("project")
    homes = {root.place: str(same_project(root.project)[0].pk) for root in roots}
    places = {pk: homes[remote] for pk, remote in remotes.items() if remote in homes}
    rest = [pk for pk in by_pk if pk not in places]
    workers = Worker.objects.filter(thread__in=rest).exclude(session_public_id="") if rest else Worker.objects.none()
    ran = {str(one.thread_id): one.session_public_id for one in workers.order_by("pk")}
    own = _session_places(list(ran.values()))
    return {pk: places.get(pk) or own.get(ran.get(pk, ""), NIL) for pk in by_pk}


def _session_places(public_ids: Sequence[str]) -> dict[str, str]:
    asked = {one for one in public_ids if one}
    if not asked:
        return {}
    sessions = Session.objects.filter(public_id__in=asked, project__isnull=False)
    return {one.public_id: str(one.project_id) for one in sessions}
