"""Which triggers a session rests on: those it named by a comment, a commit, or the opening of what it works on."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db.models import Q

from memory.graph import bodies, mentions
from memory.graph.models import Link, Part, Thread, Trigger, Worker
from memory.problems import Problem
from memory.tenants.models import Tenant
from memory.tenants.rest import fast_json

# Of a long thread the latest are looked at.
_MOST: Final = 300
_MOST_CITED: Final = 50


def triggers(worker: Worker, named: Sequence[str], threads: Sequence[Thread], *, home: str) -> list[str]:
    """Ids of triggers, in the order in which the session named them: of the worker's thread, and of those threads of
    the session that are linked with it.
    """
    if worker.thread is None or not named:
        return []
    near = [worker.thread, *_linked(worker.thread, threads)]
    marked: dict[str, list[str]] = {}
    for thread in near:
        for mark, public_id in _marked(thread):
            marked.setdefault(mark, []).append(public_id)
    tenant = Tenant(pk=worker.tenant_id)
    found: dict[str, None] = {}
    for mark in named:
        for public_id in _of_mark(tenant, mark, marked, near, home=home):
            found[public_id] = None
    return list(found)[:_MOST_CITED]


def _linked(thread: Thread, threads: Iterable[Thread]) -> list[Thread]:
    others = {one.pk: one for one in threads if one.pk != thread.pk}
    both = Q(from_thread=thread, to_thread__in=others) | Q(to_thread=thread, from_thread__in=others)
    rows = Link.objects.filter(both, removed_at__isnull=True).values_list("from_thread_id", "to_thread_id")
    ends = {end for pair in rows for end in pair}
    return [one for pk, one in others.items() if pk in ends]


def _of_mark(
    tenant: Tenant, mark: str, marked: dict[str, list[str]], near: Sequence[Thread], *, home: str
) -> list[str]:
    kind, _, rest = mark.partition(":")
    if kind == "commit":
        return [one for known, ids in marked.items() if known.startswith(mark) for one in ids]
    if kind != "opened":
        return marked.get(mark, [])
    key = f"{home}{rest}" if rest.startswith("#") else rest
    thread = next((one for one in near if key in (one.key, one.public_id)), None)
    if thread is None and not key.startswith(("#", "thr_")):
        meant = mentions.thread_with(tenant, key)
        thread = next((one for one in near if meant is not None and one.pk == meant.pk), None)
    return marked.get(f"opened:{thread.pk}", []) if thread else []


def _marked(thread: Thread) -> list[tuple[str, str]]:
    """Marks of a thread's triggers; what opened it is the trigger that says so, else the first."""
    rows = Trigger.objects.filter(thread=thread, deleted_at__isnull=True).order_by("-seq")[:_MOST]
    latest = {one.pk: one for one in rows}
    parts = {part.trigger_id: part for part in Part.objects.filter(trigger__in=latest, name="payload")}
    found: list[tuple[str, str]] = []
    opened = ""
    for one in sorted(latest.values(), key=lambda one: one.seq):
        body = _body(parts.get(one.pk))
        found += [(mark, one.public_id) for mark in marks_of(body)]
        if body.get("action") == "opened" and not opened:
            opened = one.public_id
    first = opened or next((one.public_id for one in sorted(latest.values(), key=lambda one: one.seq)), "")
    return [*found, (f"opened:{thread.pk}", first)] if first else found


def marks_of(body: dict[str, Any]) -> list[str]:
    """The comment or review a delivery brings, and the commit of a push."""
    found = []
    for about in ("comment", "review"):
        item = body.get(about)
        if isinstance(item, dict) and isinstance(item.get("id"), int):
            found.append(f"comment:{item['id']}")
    head = body.get("head_commit")
    if isinstance(head, dict) and isinstance(head.get("id"), str):
        found.append(f"commit:{head['id']}")
    return found


def _body(part: Part | None) -> dict[str, Any]:
    if part is None or "json" not in part.media_type:
        return {}
    raw = part.content
    whole = bytes(raw) if raw is not None else bodies.fetch(str(part.tenant_id), bytes(part.sha256))
    try:
        value = fast_json(whole)[0] if whole else {}
    except Problem:
        return {}
    return value if isinstance(value, dict) else {}
