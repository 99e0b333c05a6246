"""A hook session becomes a worker of the threads it works on: made and kept up to date from its events, by rule."""

import logging
from collections.abc import Sequence
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from memory.events import bodies, cited
from memory.events.claims import Claims, Heard, threads_of
from memory.events.models import Claim, Event, ProjectRoot, Reading, Session
from memory.graph import citations, linking, mentions, workers
from memory.graph.models import Thread, Worker
from memory.graph.workers import Said
from memory.problems import Problem
from memory.tenants import due
from memory.tenants.due import LeaseLost
from memory.tenants.models import Tenant
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
TASK: Final = "working"
BY: Final = "rule:session"
# So many events of a session are read in one transaction; what they name is remembered up to a bound.
BATCH: Final = 500
MOST_NAMED: Final = 300
MAX_TASK: Final = 200
# A tool's answer beyond this is a log or a file, and no forge speaks at such length.
LARGEST: Final = 1_000_000
_WORDS: Final = ("last_assistant_message", "prompt_response", "response", "text")
# A session that is stopped may go on; its worker stays "stopped" then, or each turn would be two steps of the thread.
_STATES: Final = {"stopped": "stopped", "ended": "done"}


def perform(claim: due.Claim) -> None:
    """Carry out what is due for a team."""
    try:
        with due.heartbeat(claim):
            catch_up(claim.tenant_pk)
        with tenant_scope(claim.tenant_pk):
            due.done(claim)
    except LeaseLost:
        due.release(claim)


def catch_up(tenant_pk: str) -> int:
    """Read what is new in all sessions of a team, and look again at what waits; gives how many workers were made."""
    made = 0
    for session_pk in _unread(tenant_pk):
        made += follow(tenant_pk, session_pk)
    return made


def _unread(tenant_pk: str) -> list[str]:
    with tenant_scope(tenant_pk):
        sessions = Session.objects.filter(tenant_id=tenant_pk, is_internal=False)
        is_new = Q(reading__isnull=True, last_seq__gt=0) | Q(last_seq__gt=F("reading__settled_seq"))
        rows = sessions.filter(is_new | Q(pk__in=_arrived(tenant_pk))).order_by("first_received_at", "pk")
        return [str(pk) for pk in rows.values_list("pk", flat=True)]


def _arrived(tenant_pk: str) -> list[str]:
    """Sessions with a claim whose thread has come."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT claims_arrived(%s)", [tenant_pk])
        return [str(pk) for (pk,) in cursor.fetchall()]


def follow(tenant_pk: str, session_pk: str) -> int:
    """Read a session's new events, then make and update the workers it is; gives how many were made. Safe twice."""
    while True:
        with tenant_scope(tenant_pk):
            session = Session.objects.select_related("project").filter(pk=session_pk).first()
            if session is None:  # deleted since
                return 0
            reading = _locked(session)
            if not _read_on(session, reading):
                return _settle(session, reading)


def _locked(session: Session) -> Reading:
    """The session's mark, held until the commit: two that read a session at once come one after the other."""
    with transaction.atomic():
        Reading.objects.bulk_create([Reading(tenant_id=session.tenant_id, session=session)], ignore_conflicts=True)
    return Reading.objects.select_for_update().get(session=session)


def _read_on(session: Session, reading: Reading) -> int:
    """Move the mark over the next events and keep what they claim; gives how many there were."""
    rows = list(session.events.filter(seq__gt=reading.seq).order_by("seq")[:BATCH])
    if not rows:
        return 0
    found = threads_of([_heard(row) for row in rows], home=reading.home or _home_of(session))
    reading.home = found.home[:300]
    reading.named = list(dict.fromkeys([*reading.named, *found.named]))[-MOST_NAMED:]
    reading.said_seq = max((row.seq for row in rows if _is_last_word(row)), default=reading.said_seq)
    reading.seq = rows[-1].seq
    reading.save(update_fields=["seq", "home", "said_seq", "named"])
    _keep(session, found)
    return len(rows)


def _keep(session: Session, found: Claims) -> None:
    rows = [
        Claim(tenant_id=session.tenant_id, session=session, what=what[:300], why=why)
        for what, why in found.works_on.items()
    ]
    Claim.objects.bulk_create(rows, ignore_conflicts=True)


def _heard(event: Event) -> Heard:
    is_read = event.kind in ("prompt", "tool_after") and event.size <= LARGEST
    return Heard(event.kind, event.tool, _payload(event) if is_read else {})


def _payload(event: Event) -> dict[str, Any]:
    try:
        return bodies.payload(event)
    except Problem:
        return {}


def _is_last_word(event: Event) -> bool:
    """Whether the agent itself speaks, and not one it sent out."""
    return not event.agent_id and bool(event.summary) and (event.kind == "stop" or event.name == "AssistantMessage")


def _home_of(session: Session) -> str:
    """The repository that the session's project is known by."""
    if session.project is None:
        return ""
    remotes = ProjectRoot.objects.filter(project=session.project, kind="remote").order_by("first_seen_at", "place")
    for place in remotes.values_list("place", flat=True):
        host, _, name = place.partition("/")
        if host in ("github.com", "gitlab.com") and name.count("/") >= 1:
            return f"{host.removesuffix('.com')}:{name}"
    return ""


def _settle(session: Session, reading: Reading) -> int:
    """A worker for each thread that is there; a claim whose thread is not there yet waits for it."""
    tenant = Tenant(pk=session.tenant_id)
    found: dict[str, tuple[Thread, list[Claim]]] = {}
    for claim in session.claims.order_by("made_at", "pk"):
        thread = _thread_of(tenant, claim, reading.home)
        if thread is not None and thread.deleted_at is None:
            found.setdefault(str(thread.pk), (thread, []))[1].append(claim)
    made = 0
    said = _last_words(session, reading) if found else ""
    all_threads = [thread for thread, _ in found.values()]
    for _, (thread, claims) in sorted(found.items()):
        was_settled = any(claim.is_settled for claim in claims)
        worker, is_new = _worker_on(tenant, session, thread, may_make=not was_settled)
        made += is_new
        if worker is not None and worker.by == BY:
            _update(worker, session, said, cited.triggers(worker, reading.named, all_threads, home=reading.home))
        Claim.objects.filter(pk__in=[claim.pk for claim in claims]).update(is_settled=True, worker=worker)
    reading.settled_seq = reading.seq
    reading.save(update_fields=["settled_seq"])
    return made


def _thread_of(tenant: Tenant, claim: Claim, home: str) -> Thread | None:
    """The thread a claim means; for one that is not there, what will tell that it came is kept with the claim."""
    what = f"{home}{claim.what}" if claim.what.startswith("#") and home else claim.what
    key = ""
    thread: Thread | None = None
    if what.startswith("thr_"):
        thread = tenant.threads.filter(public_id=what, deleted_at__isnull=True).first()
    elif what.startswith("branch:"):
        branch = what.removeprefix("branch:")
        thread = mentions.thread_of_branch(tenant, home, branch) if home else None
        # Its mark is forgotten when its pull request is closed, and means another one when the name is used again.
        thread = claim.worker.thread if claim.worker else thread
    elif not what.startswith("#"):
        thread, key = mentions.thread_with(tenant, what), what
    if thread is None and not claim.is_settled and claim.key != key:
        Claim.objects.filter(pk=claim.pk).update(key=key)
    return thread


def _worker_on(tenant: Tenant, session: Session, thread: Thread, *, may_make: bool) -> tuple[Worker | None, bool]:
    """The worker that the session is on a thread, made where it is none yet; None where people deleted it."""
    own = tenant.workers.filter(session_public_id=session.public_id, thread=thread, deleted_at__isnull=True)
    old = own.order_by("created_at", "pk").first()
    if old is not None or not may_make:
        return old, False
    task = _task(session)
    said = Said(task=task, state="running", session_id=session.public_id)
    return workers.start(tenant, None, thread, said, by=BY)[0], True


def _task(session: Session) -> str:
    """What the session was asked first."""
    return (_prompts(session).order_by("seq").first() or session.last_prompt or f"A session of {session.client}")[
        :MAX_TASK
    ]


def _last_words(session: Session, reading: Reading) -> str:
    """The agent's last message; where no event holds one, the last prompt and how the session ended."""
    event = session.events.filter(seq=reading.said_seq).first() if reading.said_seq else None
    if event is not None:
        payload = _payload(event)
        text = next((text for name in _WORDS if isinstance(text := payload.get(name), str) and text.strip()), "")
        if text or event.summary:
            return text or event.summary
    last = _prompts(session).order_by("-seq").first() or session.last_prompt
    return f"The session is {_state(session)}. Its last prompt: {last}" if last else ""


def _prompts(session: Session) -> "QuerySet[Any]":
    return session.events.filter(kind="prompt").exclude(summary="").values_list("summary", flat=True)


def _state(session: Session) -> str:
    """The session's state. What a transcript adds after the last stop, message by message, does not open it again."""
    asked_since = session.events.filter(kind="prompt", seq__gt=session.last_stop_seq).exists()
    is_over = session.state == "open" and session.last_stop_seq and not asked_since
    return "stopped" if is_over else session.state


def _update(worker: Worker, session: Session, said: str, cites: Sequence[str]) -> None:
    """Tell the worker what is new: nothing is written, and no step made, where all is as it was."""
    report = workers.packed_report(said) if said else None
    if report is not None and worker.report_sha256 and bytes(worker.report_sha256) == report.packed.sha256:
        report = None
    state = _STATES.get(_state(session), worker.state)
    given = list(worker.citations.filter(origin="given").order_by("position").values_list("cited", flat=True))
    new_cites = list(cites)[: citations.MOST] if list(cites) != given else None
    if report is None and state == worker.state and new_cites is None:
        return
    workers.change(worker, Said(state=state, report=report, cites=new_cites))
    if report is not None:
        linking.report(worker)
