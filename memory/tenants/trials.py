"""A message that an admin sends to see whether mail and Slack work."""

from django.utils.translation import gettext

from memory.tenants import access, audit, choices, outbox
from memory.tenants.access import Actor
from memory.tenants.models import Member, Message, Setting, Tenant

SLACK = outbox.Hook(url_setting="slack_url")


class NoWay(Exception):
    """There is nothing to try; the message says what to set."""


def has_slack(tenant: Tenant) -> bool:
    """Whether the team has a Slack webhook. The tenant must be bound."""
    return Setting.objects.filter(tenant=tenant, name="slack_url").exists()


def send(tenant: Tenant, channel: str, *, by: Actor) -> Message:
    """Put down a message by one channel, `mail` or `slack`. Raises Refused, NoWay."""
    access.require(by, "settings.manage")
    made = _slack(tenant, by) if channel == "slack" else _mail(tenant, by)
    audit.record(by, "message.try", made.public_id, after=f"{made.channel} to {made.recipient}")
    return made


def _mail(tenant: Tenant, by: Actor) -> Message:
    me = Member.objects.filter(tenant=tenant, public_id=by.id).select_related("user").first()
    if me is None:
        raise NoWay(gettext("Only a member has an address to send to."))
    text = f"Mail of Team Memory works: {by.label} of {tenant.name} asked for this one.\n"
    try:
        made = outbox.mail(tenant, me.user.email, "Mail of Team Memory works", text)
    except outbox.NoMail:
        raise NoWay(gettext("No mail server is set: the operator sets TEAM_MEMORY_SMTP_URL and restarts.")) from None
    assert made is not None  # noqa: S101 - an occasion of its own
    return made


def _slack(tenant: Tenant, by: Actor) -> Message:
    if not choices.text(tenant, "slack_url"):
        raise NoWay(gettext("No Slack webhook is set: paste its address under Settings, News."))
    text = f"Team Memory can post here: {by.label} of {tenant.name} asked for this message."
    made = outbox.slack(tenant, SLACK, text, about="Slack works")
    assert made is not None  # noqa: S101 - an occasion of its own
    return made
