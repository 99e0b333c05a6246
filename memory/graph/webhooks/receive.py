"""A call to a webhook endpoint: whose it is, whether it proves itself, and what it becomes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection, transaction

from memory import redact
from memory.graph import endpoints, links, mentions
from memory.graph.models import Trigger
from memory.graph.record import Incoming, Recorded, record_trigger
from memory.graph.webhooks import generic, github, gitlab, mail, marks, proofs, secrets, slack
from memory.graph.webhooks.models import Delivery, Endpoint
from memory.graph.webhooks.taken import Taken, Unreadable
from memory.problems import Problem
from memory.sentences import sentence
from memory.tenants import rls
from memory.tenants.models import Tenant
from memory.tenants.races import persistently

_TAKERS: Final = {"github": github.take, "gitlab": gitlab.take, "slack": slack.take, "mail": mail.take}


@dataclass(frozen=True)
class Call:
    """What came over the wire."""

    headers: Mapping[str, str]
    raw: bytes

    @property
    def size(self) -> int:
        return len(self.raw)


@dataclass(frozen=True)
class Outcome:
    """What became of a call: `accepted`, `repeated` or `ignored`, and what it is answered."""

    status: str
    answer: dict[str, Any]


def no_endpoint() -> Problem:
    """One answer for an address nobody has, another team's kind, and a team that is suspended."""
    return Problem(
        404, "not_found", sentence("There is no such webhook endpoint. Copy its address from the endpoint's page.")
    )


def whose(endpoint_id: str, kind: str) -> Endpoint:
    """The endpoint at an address. Raises Problem 404."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, endpoint_pk FROM webhook_endpoint(%s, %s)", [endpoint_id[:101], kind])
        row = cursor.fetchone()
    if row is None:
        raise no_endpoint()
    with rls.tenant_scope(str(row[0])):
        endpoint = Endpoint.objects.filter(pk=row[1]).first()
    if endpoint is None:
        raise no_endpoint()
    return endpoint


def receive(endpoint: Endpoint, call: Call) -> Outcome:
    """Check the call's proof, read it, record it. Raises Problem, noted among the endpoint's deliveries."""
    try:
        prove(endpoint, call)
        if endpoint.paused_at is not None:
            raise Problem(
                403, "paused", sentence("This endpoint is paused. Resume it on its page, then send the call again.")
            )
        ignored = _ignored(endpoint, call)
        if ignored is not None:
            return ignored
        return _recorded(endpoint, taken(endpoint, call), call)
    except Problem as problem:
        refused(endpoint, call, problem)
        raise


def prove(endpoint: Endpoint, call: Call) -> None:
    """Raises Problem 401 unless the call proves the endpoint's secret, or the one before while that is good."""
    try:
        kept = endpoints.secrets_of(endpoint)
        proofs.check(endpoints.proof_of(endpoint), kept, call.headers, call.raw, now=time.time())
    except secrets.Unreadable:
        detail = sentence(
            "The endpoint's secret can't be read: the server's secret key was changed. Give the endpoint a new secret."
        )
        raise Problem(503, "secret_unreadable", detail) from None
    except proofs.Unproven as why:
        raise Problem(401, why.code, str(why), headers={"WWW-Authenticate": "Webhook-Signature"}) from None


def taken(endpoint: Endpoint, call: Call) -> Taken:
    """The call, read as its kind is read. Raises Problem 400."""
    try:
        if endpoint.kind == Endpoint.Kind.GENERIC:
            return generic.take(call.headers, call.raw, source=endpoint.source, field_map=endpoint.field_map)
        return _TAKERS[endpoint.kind](call.headers, call.raw)
    except Unreadable as why:
        raise Problem(400, "unreadable", str(why)) from None
    except ValueError:
        raise Problem(400, "unreadable", sentence("The body can't be read as what its Content-Type says.")) from None


def refused(endpoint: Endpoint, call: Call, problem: Problem) -> None:
    """Note a refusal in a transaction of its own, without the body."""
    note = _note(endpoint, call, Delivery.Status.REFUSED)
    note.code, note.detail = problem.code[:60], redact.brief(problem.detail, 300)
    with rls.tenant_scope(str(endpoint.tenant_id)):
        endpoints.delivered(endpoint, note)


def _ignored(endpoint: Endpoint, call: Call) -> Outcome | None:
    """Calls that only try the address: they are answered and noted, and are no trigger."""
    said: dict[str, Any] | None = None
    if endpoint.kind == Endpoint.Kind.GITHUB and call.headers.get("X-GitHub-Event", "").strip() == "ping":
        taken(endpoint, call)
        said = {"status": "ok", "detail": "The endpoint works."}
    elif endpoint.kind == Endpoint.Kind.SLACK and (challenge := slack.challenge(call.raw)) is not None:
        said = {"challenge": challenge}
    if said is None:
        return None
    note = _note(endpoint, call, Delivery.Status.IGNORED)
    note.detail = sentence("Only tried whether the address works.")
    with rls.tenant_scope(str(endpoint.tenant_id)):
        endpoints.delivered(endpoint, note)
    return Outcome("ignored", said)


def _recorded(endpoint: Endpoint, told: Taken, call: Call) -> Outcome:
    """Two deliveries that link two threads to each other may meet crosswise; the one that gives way comes again."""
    return persistently(lambda: _once(endpoint, told, call))


def _once(endpoint: Endpoint, told: Taken, call: Call) -> Outcome:
    tenant = Tenant(pk=endpoint.tenant_id)
    with rls.tenant_scope(str(endpoint.tenant_id)):
        old = _before(tenant, endpoint.source, told.external_id)
        if old is not None:
            return _noted(endpoint, call, told, old, Delivery.Status.REPEATED)
        found = marks.found(tenant, told.marks, told.key)
        recorded = record_trigger(tenant, _incoming(endpoint.source, told, found.key))
        trigger = recorded.trigger
        _remember(tenant, told, trigger, is_sure=told.is_sure or found.is_known)
        with transaction.atomic():
            _link(tenant, told, trigger)
        status = Delivery.Status.ACCEPTED if recorded.is_new else Delivery.Status.REPEATED
        return _noted(endpoint, call, told, trigger, status)


def store(tenant: Tenant, told: Taken, *, source: str) -> Recorded:
    """Record what was told outside any endpoint, as one of its deliveries is recorded: once, linked, with its marks."""
    with rls.tenant_scope(str(tenant.pk)):
        old = _before(tenant, source, told.external_id)
        if old is not None:
            return Recorded(old, is_new=False)
        found = marks.found(tenant, told.marks, told.key)
        recorded = record_trigger(tenant, _incoming(source, told, found.key))
        _remember(tenant, told, recorded.trigger, is_sure=told.is_sure or found.is_known)
        with transaction.atomic():
            _link(tenant, told, recorded.trigger)
        return recorded


def _before(tenant: Tenant, source: str, external_id: str | None) -> Trigger | None:
    """What a delivery id brought before. Its thread may be found by other marks by now, so it is asked first."""
    if external_id is None:
        return None
    rows = tenant.triggers.select_related("thread").filter(external_id=external_id, source=source)
    return rows.first()


def _incoming(source: str, told: Taken, key: str | None) -> Incoming:
    return Incoming(
        source=source,
        external_id=told.external_id,
        thread_key=key,
        thread_title=told.title,
        occurred_at=told.occurred_at,
        summary=told.summary,
        payload=told.payload,
        media_type=told.media_type,
    )


def _remember(tenant: Tenant, told: Taken, trigger: Trigger, *, is_sure: bool) -> None:
    for name, known_as in told.names.items():
        marks.rename(tenant, name, known_as)
    key = trigger.thread.key
    if key is None:
        return
    kept = told.marks if is_sure else told.marks.unsure()
    marks.keep(tenant, kept, key)


def _link(tenant: Tenant, told: Taken, trigger: Trigger) -> None:
    """To what the text names, and to the threads that this one continues."""
    mentions.link_trigger(trigger, repository=told.repository)
    for key in told.also:
        to = links.target(tenant, key)
        if to.thread is not None and to.thread.pk != trigger.thread_id:
            links.add(trigger.thread, to, kind="continues", made_by=f"{links.RULE}commit", because_of=trigger.public_id)


def _note(endpoint: Endpoint, call: Call, status: str) -> Delivery:
    sent = call.headers
    delivery = next(
        (
            sent[name]
            for name in ("X-GitHub-Delivery", "Idempotency-Key", "webhook-id", "X-Gitlab-Event-UUID")
            if sent.get(name)
        ),
        "",
    )
    event = sent.get("X-GitHub-Event") or sent.get("X-Gitlab-Event") or ""
    return Delivery(status=status, delivery_id=_shown(delivery, 300), event=_shown(event, 100), size=call.size)


def _shown(text: str, most: int) -> str:
    """A header as it may be kept: senders that prove nothing write it too."""
    return redact.brief("".join(sign if sign.isprintable() else "\ufffd" for sign in text.strip()[: 4 * most]), most)


def _noted(endpoint: Endpoint, call: Call, told: Taken, trigger: Trigger, status: str) -> Outcome:
    note = _note(endpoint, call, status)
    note.delivery_id = note.delivery_id or _shown(told.external_id or "", 300)
    note.event = note.event or told.event
    note.trigger_public_id, note.thread_public_id = trigger.public_id, trigger.thread.public_id
    if retry := call.headers.get("X-Slack-Retry-Num", ""):
        note.detail = f"Slack's retry {_shown(retry, 10)}: {_shown(call.headers.get('X-Slack-Retry-Reason', ''), 100)}"
    endpoints.delivered(endpoint, note)
    answer = {
        "status": status,
        "trigger_id": trigger.public_id,
        "thread_id": trigger.thread.public_id,
        "thread_key": trigger.thread.key,
        "summary": trigger.summary,
    }
    return Outcome(status, answer)
