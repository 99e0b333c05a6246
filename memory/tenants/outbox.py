"""Messages that leave the server: put down in the transaction that has the news, sent by a worker, kept with outcome.

Nothing is sent twice by itself. A row is marked `sending` just before the other side may take it; a worker that finds
this mark on work that it takes over can't know, says so (`unknown`), and leaves it to a person to send again. Only a
signed webhook is tried again then: its id is the same, and receivers drop repeats by it. A refusal that is a clear "not
now" is tried again with back-off for a day.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from memory import ids
from memory.sentences import sentence
from memory.tenants import access, audit, choices, due, outgoing, vault
from memory.tenants.access import Actor
from memory.tenants.models import Message, Tenant
from memory.tenants.outgoing import NotSent
from memory.tenants.rls import tenant_scope

log = logging.getLogger(__name__)
TASK: Final = "outgoing"
# Minutes before the second, third … try. After the last one it is over: about a day.
WAITS: Final = (0.5, 2, 10, 30, 60, 240, 480, 720)
KEPT: Final = timedelta(days=30)
Channel, State = Message.Channel, Message.State


class NoMail(Exception):
    """The operator named no SMTP server: show a link to copy instead."""


@dataclass(frozen=True)
class Hook:
    """A webhook to call: an address and the secret to sign with, or the names of the team's settings that hold them,
    which are then read anew at each try.
    """

    url: str = ""
    secret: str = ""
    url_setting: str = ""
    secret_setting: str = ""


def mail(tenant: Tenant, to: str, subject: str, text: str, *, occasion: str = "", page: str = "") -> Message | None:
    """Put down a mail, inside the bound transaction; None where the same occasion has its message already. Raises
    NoMail.
    """
    if not outgoing.has_mail():
        raise NoMail
    said = {"to": to, "subject": subject, "text": text, "page": page}
    return _put(tenant, Channel.MAIL, to, subject, said, occasion)


def slack(tenant: Tenant, hook: Hook, text: str, *, about: str, occasion: str = "") -> Message | None:
    """Put down a message for a Slack-compatible webhook; None as in `mail`."""
    return _put(tenant, Channel.SLACK, _shown(tenant, hook), about, {**_named(hook), "text": text}, occasion)


def webhook(tenant: Tenant, hook: Hook, body: Mapping[str, Any], *, about: str, occasion: str = "") -> Message | None:
    """Put down a signed JSON call of a webhook; None as in `mail`."""
    return _put(tenant, Channel.WEBHOOK, _shown(tenant, hook), about, {**_named(hook), "body": dict(body)}, occasion)


def _named(hook: Hook) -> dict[str, str]:
    return {name: value for name, value in vars(hook).items() if value}


def _shown(tenant: Tenant, hook: Hook) -> str:
    url = hook.url or choices.text(tenant, hook.url_setting)
    return outgoing.place(url) if url else sentence("no address")


def _put(
    tenant: Tenant, channel: str, recipient: str, about: str, said: dict[str, Any], occasion: str
) -> Message | None:
    row = Message(
        tenant=tenant,
        occasion=(occasion or ids.new_key())[:200],
        channel=channel,
        recipient=recipient[:300],
        about=" ".join(about.split())[:200],
        sealed=vault.sealed(json.dumps(said)),
    )
    # Of two transactions that tell the same occasion one has it; the other must not fail for it.
    Message.objects.bulk_create([row], ignore_conflicts=True)
    if not Message.objects.filter(pk=row.pk).exists():
        return None
    due.put(str(tenant.pk), TASK, str(row.pk))
    return row


def perform(claim: due.Claim) -> None:
    """Send the message that the claim names, unless that is over, and keep what came of it."""
    try:
        with due.heartbeat(claim):
            _perform(claim)
    except due.LeaseLost:
        log.warning("another worker took message %s over", claim.argument)


def _perform(claim: due.Claim) -> None:
    with tenant_scope(claim.tenant_pk):
        row = Message.objects.filter(pk=claim.argument).select_related("tenant").first()
        if row is None or not _is_due(row):
            due.done(claim)
            return
    try:
        _send(claim, row)
    except NotSent as why:
        _failed(claim, row, why)
    else:
        _sent(claim, row)


def _is_due(row: Message) -> bool:
    if row.state == State.SENDING and row.channel != Channel.WEBHOOK:
        told = sentence(
            "A worker ended while it sent this: it may have arrived. Ask, then send it again if it did not."
        )
        Message.objects.filter(pk=row.pk, state=State.SENDING).update(state=State.UNKNOWN, error=told)
        return False
    return row.state in (State.WAITING, State.SENDING)


def _send(claim: due.Claim, row: Message) -> None:
    def before() -> None:
        with tenant_scope(claim.tenant_pk):
            due.hold(claim)
            Message.objects.filter(pk=row.pk).update(
                state=State.SENDING, attempts=F("attempts") + 1, tried_at=timezone.now(), next_at=None
            )

    said = _said(row)
    if row.channel == Channel.MAIL:
        outgoing.send_mail(outgoing.Mail(message_id=row.public_id, **said), before=before)
        return
    with tenant_scope(claim.tenant_pk):
        url, secret = _hook(row.tenant, said)
    before()
    if row.channel == Channel.SLACK:
        outgoing.slack(url, said["text"])
    else:
        outgoing.post_json(url, said["body"], message_id=row.public_id, secret=secret)


def _said(row: Message) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(vault.opened(bytes(row.sealed or b"")))
    except vault.Unreadable:
        raise NotSent("never", sentence("The key that its words were sealed with is gone.")) from None
    return said


def _hook(tenant: Tenant, said: dict[str, Any]) -> tuple[str, str]:
    try:
        url = said.get("url") or choices.text(tenant, said["url_setting"])
        named = said.get("secret_setting")
        secret = said.get("secret", "") or (choices.text(tenant, named) if named else "")
    except vault.Unreadable as why:
        raise NotSent("never", str(why)) from None
    if not url:
        raise NotSent("never", sentence("The settings hold no address for it any more."))
    return url, secret


def _failed(claim: due.Claim, row: Message, why: NotSent) -> None:
    with tenant_scope(claim.tenant_pk):
        fresh = Message.objects.get(pk=row.pk)
        # A try that ended before anything could be taken is one too.
        attempts = fresh.attempts + (fresh.state == State.WAITING)
        is_repeatable = why.kind == "later" or (why.kind == "unknown" and row.channel == Channel.WEBHOOK)
        if is_repeatable and attempts <= len(WAITS):
            wait = max(timedelta(minutes=WAITS[attempts - 1]), timedelta(seconds=why.retry_after))
            _keep(fresh, State.WAITING, str(why), attempts=attempts, next_at=timezone.now() + wait)
            due.postpone(claim, wait)
            return
        _keep(fresh, State.UNKNOWN if why.kind == "unknown" else State.FAILED, str(why), attempts=attempts)
        due.done(claim)


def _keep(row: Message, state: str, error: str, **more: Any) -> None:
    now = {"state": state, "error": error[:300], "tried_at": timezone.now(), "next_at": None}
    Message.objects.filter(pk=row.pk).update(**{**now, **more})


def _sent(claim: due.Claim, row: Message) -> None:
    """It went out: that is kept even where the lease was lost meanwhile."""
    with tenant_scope(claim.tenant_pk):
        Message.objects.filter(pk=row.pk).update(state=State.SENT, error="", sealed=None, next_at=None)
    with tenant_scope(claim.tenant_pk):
        due.done(claim)


def again(message: Message, *, by: Actor) -> bool:
    """Have a message sent once more that was not, or perhaps not; False where that can't be. Raises Refused."""
    access.require(by, "settings.manage")
    rows = Message.objects.troubled().filter(pk=message.pk, sealed__isnull=False)
    if not rows.update(state=State.WAITING, attempts=0, error="", next_at=None):
        return False
    due.put(str(message.tenant_id), TASK, str(message.pk))
    audit.record(by, "message.again", message.public_id, after=f"{message.channel} to {message.recipient}")
    return True


def troubled(tenant: Tenant) -> int:
    """How many messages of the last week did not arrive, or perhaps not. The tenant must be bound."""
    since = timezone.now() - timedelta(days=7)
    return Message.objects.troubled().filter(tenant=tenant, created_at__gt=since).count()


def forget(tenant: Tenant) -> int:
    """Take away messages of more than a month ago; gives how many. The tenant must be bound."""
    return Message.objects.filter(tenant=tenant, created_at__lt=timezone.now() - KEPT).delete()[0]


def reseal() -> int:
    """Seal what waits anew under the current key, as the migrator, who sees all teams; gives how many."""
    count = 0
    for row in Message.objects.filter(sealed__isnull=False).select_for_update():
        row.sealed = vault.resealed(bytes(row.sealed or b""))
        row.save(update_fields=["sealed"])
        count += 1
    return count
