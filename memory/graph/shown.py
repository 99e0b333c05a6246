"""What the pages of threads, triggers and workers show: a fixed number of queries each, however long the lists."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils.translation import gettext

from memory import ids
from memory.graph import threads
from memory.graph.models import Citation, InboxEntry, Link, Owner, Part, Step, Thread, Trigger, Worker
from memory.graph.webhooks.models import Endpoint
from memory.tenants.models import AgentKey, Member, Tenant
from memory.tenants.names import Names

# The sources that a filter offers are those of so many of the latest threads, and of the endpoints.
_LATEST: Final = 500
MOST_LINKS: Final = 100
_PAGES: Final = {"thr": "thread", "trg": "trigger", "wkr": "worker", "ses": "session", "evt": "event"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Which threads a list is to hold; state is `open`, `closed` or `any`."""

    q: str = ""
    state: str = "open"
    source: str = ""
    owned: str = ""


def listed(tenant: Tenant, asked: Asked) -> "QuerySet[Thread]":
    """Threads, the latest active first, each with `owner_count` and the summary of its `first` trigger."""
    rows = threads.listed(tenant, q=asked.q)
    if asked.state == "open":
        rows = rows.filter(state="open")
    elif asked.state == "closed":
        rows = rows.exclude(state="open")
    if asked.source:
        # By bounds: a prefix as a pattern would not use the index of keys.
        rows = rows.filter(key__gte=f"{asked.source}:", key__lt=f"{asked.source};")
    owners = Owner.objects.filter(thread=OuterRef("pk"), worker__deleted_at__isnull=True)
    if asked.owned in ("yes", "no"):
        rows = rows.filter(Exists(owners) if asked.owned == "yes" else ~Exists(owners))
    counted = owners.order_by().values("thread").annotate(n=Count("worker")).values("n")
    first = Trigger.objects.filter(thread=OuterRef("pk"), deleted_at__isnull=True).order_by("seq").values("summary")
    rows = rows.annotate(owner_count=Subquery(counted), first=Subquery(first[:1]))
    return rows.order_by("-active_at", "-pk")


def position(thread: Thread) -> list[str]:
    """Where a thread stands in `listed`."""
    return [thread.active_at.isoformat(), str(thread.pk)]


def beyond(rows: "QuerySet[Thread]", after: list[str]) -> "QuerySet[Thread]":
    """The threads that follow a position. The key decides between those of one instant."""
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(active_at__lt=at) | Q(active_at=at, pk__lt=pk))


def sources(tenant: Tenant, asked: str = "") -> list[str]:
    """Where threads come from, for the filter."""
    latest = tenant.threads.filter(state="open", deleted_at__isnull=True).order_by("-active_at")
    keys = list(latest.values_list("key", flat=True)[:_LATEST])
    named = {key.partition(":")[0] for key in keys if key and ":" in key}
    named |= set(Endpoint.objects.filter(tenant=tenant).values_list("source", flat=True))
    return sorted({name for name in named | {asked} if name and len(name) <= 40})


@dataclass(frozen=True, slots=True)
class Named:
    """An id as a link: where it leads, and what it is about. Without `url` there is nothing to open."""

    public_id: str
    kind: str
    line: str = ""
    url: str = ""
    state: str = ""
    # Of a trigger, the thread it is in.
    home: str = ""


def named(tenant: Tenant, public_ids: Iterable[str]) -> dict[str, Named]:
    """Each id with its line. One query for each kind of id."""
    wanted: dict[str, list[str]] = {}
    for public_id in dict.fromkeys(public_ids):
        wanted.setdefault(public_id.partition("_")[0], []).append(public_id)
    found: dict[str, Named] = {}
    if some := wanted.get("thr"):
        for thread in tenant.threads.filter(public_id__in=some, deleted_at__isnull=True):
            found[thread.public_id] = of_thread(tenant, thread)
    if some := wanted.get("trg"):
        rows = tenant.triggers.select_related("thread").filter(public_id__in=some, deleted_at__isnull=True)
        for trigger in rows:
            found[trigger.public_id] = of_trigger(tenant, trigger)
    if some := wanted.get("wkr"):
        for worker in tenant.workers.filter(public_id__in=some, deleted_at__isnull=True):
            found[worker.public_id] = of_worker(tenant, worker)
    if some := wanted.get("evt"):
        steps = tenant.steps.select_related("thread").filter(public_id__in=some, thread__deleted_at__isnull=True)
        for step in steps:
            url = f"{_url(tenant, 'thread', step.thread.public_id)}?from={step.seq}#{step.public_id}"
            found[step.public_id] = Named(step.public_id, "step", step.summary or step.kind, url)
    # A session or its event lives on a higher rung; a citation was checked when it was made.
    for prefix in ("ses", "evt"):
        for public_id in wanted.get(prefix, []):
            kind = _PAGES[prefix]
            line = gettext("Session of a coding agent") if prefix == "ses" else gettext("Event of a coding agent")
            found.setdefault(public_id, Named(public_id, kind, line, _url(tenant, kind, public_id)))
    return found


def in_order(tenant: Tenant, public_ids: Iterable[str]) -> list[Named]:
    """The ids as links, in their order; what was deleted says so."""
    asked = list(public_ids)
    found = named(tenant, asked)
    return [found.get(one) or Named(one, ids.kind_of(one) or "", gettext("Deleted")) for one in asked]


def of_thread(tenant: Tenant, thread: Thread) -> Named:
    """A thread as a link."""
    line = thread.title or thread.summary or thread.key or gettext("Thread without a title")
    return Named(thread.public_id, "thread", line, _url(tenant, "thread", thread.public_id), thread.state)


def of_trigger(tenant: Tenant, trigger: Trigger) -> Named:
    """A trigger as a link."""
    line = trigger.summary or gettext("%(source)s without a summary") % {"source": trigger.source}
    url = _url(tenant, "trigger", trigger.public_id)
    return Named(trigger.public_id, "trigger", line, url, home=trigger.thread.public_id)


def of_worker(tenant: Tenant, worker: Worker) -> Named:
    """A worker as a link."""
    line = " ".join(worker.task.split())[:300] or gettext("Worker without a task")
    return Named(worker.public_id, "worker", line, _url(tenant, "worker", worker.public_id), worker.state)


def _url(tenant: Tenant, kind: str, public_id: str) -> str:
    return reverse(kind, args=[tenant.slug, public_id])


@dataclass(slots=True)
class Moment:
    """A step of a thread with what it speaks of."""

    step: Step
    about: Named | None = None
    parts: list[Part] = field(default_factory=list)
    source: str = ""
    cites: list[Named] = field(default_factory=list)
    more: int = 0
    # Of a link: "Linked to" before the other thread's title, and its kind behind.
    lead: str = ""
    kind: str = ""


CITES_SHOWN: Final = 12
_LINKED: Final = re.compile(r"((?:Linked|No longer linked) (?:to|from)) \S+ \((.{1,60})\)$")


def timeline(tenant: Tenant, steps: list[Step]) -> list[Moment]:
    """Steps with their triggers, workers and threads as links, and what each report cites."""
    spoken = [one for step in steps for one in (step.trigger_public_id, step.worker_public_id, step.other_public_id)]
    reported = {step.worker_public_id: step.seq for step in steps if step.kind == "worker_reported"}
    cites = citations(tenant, reported)
    links = named(tenant, [*filter(None, spoken), *(one for some in cites.values() for one in some[:CITES_SHOWN])])
    parts, sent_by = _of_triggers(tenant, [step.trigger_public_id for step in steps if step.kind == "trigger"])
    moments = []
    for step in steps:
        spoken_of = step.trigger_public_id or step.worker_public_id or step.other_public_id
        moment = Moment(step, links.get(spoken_of))
        told = _LINKED.match(step.summary) if step.kind in ("linked", "unlinked") else None
        if told and moment.about:
            moment.lead, moment.kind = told[1], told[2]
        if step.kind == "trigger":
            moment.parts, moment.source = parts.get(spoken_of, []), sent_by.get(spoken_of, "")
        # A report that was replaced cites what the last one cites: told once, where the last one stands.
        if step.kind == "worker_reported" and reported[step.worker_public_id] == step.seq:
            some = cites.get(step.worker_public_id, [])
            moment.cites = [links.get(one) or Named(one, "", gettext("Deleted")) for one in some[:CITES_SHOWN]]
            moment.more = max(0, len(some) - CITES_SHOWN)
        moments.append(moment)
    return moments


def citations(tenant: Tenant, worker_ids: Iterable[str]) -> dict[str, list[str]]:
    """What each worker cites, in its order."""
    rows = Citation.objects.filter(worker__public_id__in=list(worker_ids), tenant=tenant)
    found: dict[str, list[str]] = {}
    for worker, cited in rows.order_by("worker", "position").values_list("worker__public_id", "cited"):
        found.setdefault(worker, []).append(cited)
    return found


def _of_triggers(tenant: Tenant, public_ids: list[str]) -> tuple[dict[str, list[Part]], dict[str, str]]:
    if not public_ids:
        return {}, {}
    rows = Part.objects.filter(trigger__public_id__in=public_ids, tenant=tenant).select_related("trigger")
    found: dict[str, list[Part]] = {}
    for part in rows.defer("content").order_by("name"):
        found.setdefault(part.trigger.public_id, []).append(part)
    sent = tenant.triggers.filter(public_id__in=public_ids).values_list("public_id", "source")
    return found, dict(sent)


def owners(thread: Thread) -> list[Owner]:
    """The workers that own a thread, the first first."""
    rows = thread.owners.select_related("worker").filter(worker__deleted_at__isnull=True)
    return list(rows.order_by("since", "worker__public_id"))


def thread_workers(thread: Thread, most: int = 20) -> list[Worker]:
    """The thread's workers, the latest first."""
    return list(thread.workers.filter(deleted_at__isnull=True).order_by("-created_at", "public_id")[:most])


@dataclass(frozen=True, slots=True)
class Shown:
    """A link of a thread as its page shows it."""

    kind: str
    direction: str
    to: Named
    by: str
    because: Named | None


def links_of(tenant: Tenant, thread: Thread) -> list[Shown]:
    """A thread's links, both ways, the first made first."""
    live = Link.objects.filter(removed_at__isnull=True).select_related("from_thread", "to_thread")
    rows = list(
        live.filter(
            Q(from_thread=thread, to_thread__isnull=True)
            | Q(from_thread=thread, to_thread__deleted_at__isnull=True)
            | Q(to_thread=thread, from_thread__deleted_at__isnull=True)
        ).order_by("made_at", "pk")[:MOST_LINKS]
    )
    because = named(tenant, [row.because_of for row in rows if row.because_of])
    people = _makers(tenant, [row.made_by for row in rows])
    shown = []
    for row in rows:
        is_out = row.from_thread_id == thread.pk
        other = row.to_thread if is_out else row.from_thread
        to = of_thread(tenant, other) if other else Named(row.to_key, "key", row.to_key)
        shown.append(
            Shown(row.kind, "to" if is_out else "from", to, people.get(row.made_by, ""), because.get(row.because_of))
        )
    return shown


def _makers(tenant: Tenant, made_by: list[str]) -> dict[str, str]:
    """Who made a link, in words."""
    found = {one: gettext("a rule") for one in made_by if one.startswith("rule:")}
    members = Member.objects.filter(public_id__in=made_by, tenant=tenant)
    called = Names(tenant)
    found |= {public_id: called.of(handle) for public_id, handle in members.values_list("public_id", "handle")}
    return found | dict(AgentKey.objects.filter(public_id__in=made_by, tenant=tenant).values_list("public_id", "name"))


def cited_by(tenant: Tenant, public_id: str, most: int = 50) -> list[Worker]:
    """The workers whose reports cite an id, the first first."""
    rows = Worker.objects.filter(citations__cited=public_id, tenant=tenant, deleted_at__isnull=True)
    return list(rows.order_by("created_at", "public_id")[:most])


def neighbours(trigger: Trigger, most: int = 3) -> list[Trigger]:
    """The triggers just before one in its thread, in order."""
    before = Trigger.objects.filter(thread_id=trigger.thread_id, seq__lt=trigger.seq, deleted_at__isnull=True)
    return list(before.order_by("-seq")[:most])[::-1]


def following(trigger: Trigger) -> Trigger | None:
    """The trigger just after one in its thread."""
    after = Trigger.objects.filter(thread_id=trigger.thread_id, seq__gt=trigger.seq, deleted_at__isnull=True)
    return after.order_by("seq").first()


def parts_of(trigger: Trigger) -> list[Part]:
    """The parts of a trigger without their bytes; the payload first."""
    return sorted(trigger.parts.defer("content"), key=lambda part: (part.name != "payload", part.name))


def inbox(worker: Worker, *, after: int, most: int) -> list[InboxEntry]:
    """What was passed straight to a worker, past a place."""
    rows = worker.inbox.select_related("trigger__thread").filter(seq__gt=after)
    return list(rows.order_by("seq")[:most])


def owned_by(worker: Worker, most: int = 50) -> list[Owner]:
    """What a worker owns, the first first."""
    rows = worker.owned.select_related("thread").filter(thread__deleted_at__isnull=True)
    return list(rows.order_by("since", "thread__public_id")[:most])


def unlinked(tenant: Tenant) -> "QuerySet[Thread]":
    """Threads that nothing leads to and that lead nowhere: no link, no worker, no owner, and no report cites what is
    in them. The newest first, each with its `latest` trigger.
    """
    live = Link.objects.filter(removed_at__isnull=True)
    of_thread = Trigger.objects.filter(thread=OuterRef("pk"), deleted_at__isnull=True)
    cited = Citation.objects.filter(cited=OuterRef("public_id"), tenant=OuterRef("tenant"))
    rows = tenant.threads.filter(deleted_at__isnull=True, worker_count=0, trigger_count__gt=0)
    latest = of_thread.order_by("-seq")
    return (
        rows.filter(
            ~Exists(live.filter(from_thread=OuterRef("pk"))),
            ~Exists(live.filter(to_thread=OuterRef("pk"))),
            ~Exists(Owner.objects.filter(thread=OuterRef("pk"))),
            ~Exists(Citation.objects.filter(cited=OuterRef("public_id"), tenant=OuterRef("tenant"))),
            ~Exists(of_thread.filter(Exists(cited))),
        )
        .annotate(
            latest_id=Subquery(latest.values("public_id")[:1]),
            latest_summary=Subquery(latest.values("summary")[:1]),
            latest_source=Subquery(latest.values("source")[:1]),
        )
        .order_by("-created_at", "-pk")
    )


def made_position(thread: Thread) -> list[str]:
    """Where a thread stands in `unlinked`."""
    return [thread.created_at.isoformat(), str(thread.pk)]


def made_before(rows: "QuerySet[Thread]", after: list[str]) -> "QuerySet[Thread]":
    """The threads that follow a position of `unlinked`."""
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(created_at__lte=at) & (Q(created_at__lt=at) | Q(pk__lt=pk)))
