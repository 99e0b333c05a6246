"""What a team may choose itself: each setting with its default, its effect, and who changed it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext, gettext_noop

from memory.sentences import retold, thousands
from memory.tenants import audit, outgoing, vault
from memory.tenants.access import Actor, require
from memory.tenants.models import Setting, Tenant

MOST_MAILS: Final = 20


class Invalid(ValueError):
    """The value can't be used; the message says what can."""


@dataclass(frozen=True)
class Known:
    """One setting. `default` asks the server's own settings, so that a page shows what holds now."""

    name: str
    group: str
    label: str
    effect: str
    default: Callable[[], str] = lambda: ""
    kind: str = "text"
    least: int = 0
    most: int = 36_500
    unit: str = ""


KNOWN: Final[tuple[Known, ...]] = (
    Known(
        "model",
        gettext_noop("Model"),
        gettext_noop("Model for dreams"),
        gettext_noop(
            "Dreams ask it instead of going by rules: anthropic:NAME, openai:NAME or openai-compatible:NAME. Empty: the"
            " server's default."
        ),
        lambda: settings.DREAM_MODEL,
    ),
    Known(
        "model_url",
        gettext_noop("Model"),
        gettext_noop("Address of an OpenAI-compatible model"),
        gettext_noop("Only addresses that the operator allows (TEAM_MEMORY_MODEL_URLS): the server itself calls it."),
        lambda: settings.DREAM_MODEL_URL,
    ),
    Known(
        "model_key",
        gettext_noop("Model"),
        gettext_noop("Key of the model"),
        gettext_noop("Sent with each question, paid by whoever owns it. Kept encrypted, never shown again."),
        lambda: "set" if settings.DREAM_MODEL_KEY else "",
        kind="secret",
    ),
    Known(
        "retention_events",
        gettext_noop("Retention"),
        gettext_noop("Payloads of events"),
        gettext_noop("After so long the stored payload of a hook event goes. Its id, place, tool and line stay."),
        lambda: "0",
        kind="number",
        unit=gettext_noop("days"),
    ),
    Known(
        "retention_triggers",
        gettext_noop("Retention"),
        gettext_noop("Payloads of triggers"),
        gettext_noop("After so long payloads, logs and diffs of triggers go. Id, summary and thread stay."),
        lambda: "0",
        kind="number",
        unit=gettext_noop("days"),
    ),
    Known(
        "retention_cited",
        gettext_noop("Retention"),
        gettext_noop("Payloads that are cited"),
        gettext_noop(
            "What a note's line or a worker's report rests on is kept so long, and never shorter than the rest."
        ),
        lambda: "0",
        kind="number",
        unit=gettext_noop("days"),
    ),
    Known(
        "garden_untold_days",
        gettext_noop("Gardener"),
        gettext_noop("Notes that nobody is told"),
        gettext_noop("The gardener labels a note that no session was told for so long. 0: never."),
        lambda: "90",
        kind="number",
        unit=gettext_noop("days"),
    ),
    Known(
        "garden_tokens",
        gettext_noop("Gardener"),
        gettext_noop("Tokens for contradictions"),
        gettext_noop(
            "What one go of the gardener may send to the model to find notes that contradict each other; it counts in"
            " the month's budget. 0: it does not ask. Without a model it never does."
        ),
        lambda: "50000",
        kind="number",
        most=100_000_000,
        unit=gettext_noop("tokens"),
    ),
    Known(
        "slack_url",
        gettext_noop("News"),
        gettext_noop("Slack webhook"),
        gettext_noop(
            "Where the news of members who chose Slack is posted: the address of an incoming webhook of Slack,"
            " Mattermost or Rocket.Chat. Whoever has it can post there, so it is kept encrypted and never shown again."
        ),
        kind="secret",
    ),
    Known(
        "digest_hour",
        gettext_noop("News"),
        gettext_noop("Hour of the daily digest"),
        gettext_noop("When the news of members who chose a daily digest goes out, in UTC."),
        lambda: "7",
        kind="number",
        most=23,
        unit=gettext_noop("hour, 0 to 23"),
    ),
    Known(
        "private_reading",
        gettext_noop("Privacy"),
        gettext_noop("Admins may read private notes"),
        gettext_noop(
            "On: owners and admins can open the notes in any member's own space, read-only. Each reading stands in the"
            " audit, and the member sees who read what. Off: nobody but the member can."
        ),
        lambda: "off",
        kind="switch",
    ),
    Known(
        "alert_backlog_hours",
        gettext_noop("Alerts"),
        gettext_noop("Sessions that wait for a dream"),
        gettext_noop("The inbox warns when a finished session has waited longer than this for a dream."),
        lambda: "24",
        kind="number",
        unit=gettext_noop("hours"),
    ),
    Known(
        "alert_mail",
        gettext_noop("Alerts"),
        gettext_noop("Mail for alerts"),
        gettext_noop(
            "Who is told when a cache served something stale or its hit rate collapsed: addresses, with commas between"
            " them."
        ),
        kind="mails",
    ),
    Known(
        "alert_webhook",
        gettext_noop("Alerts"),
        gettext_noop("Webhook for alerts"),
        gettext_noop(
            "The same as signed JSON (Standard Webhooks). Whoever has the address can post there, so it is kept"
            " encrypted and never shown again."
        ),
        kind="secret",
    ),
    Known(
        "alert_webhook_secret",
        gettext_noop("Alerts"),
        gettext_noop("Secret of that webhook"),
        gettext_noop(
            "What its calls are signed with, so that the receiver knows who speaks: whsec_ and base64, or any words."
        ),
        kind="secret",
    ),
    Known(
        "alert_stale_hours",
        gettext_noop("Alerts"),
        gettext_noop("Stale answers from a cache"),
        gettext_noop(
            "One alert when a tool's cache served a stale answer; the next only after so long without another. 0: none."
        ),
        lambda: "24",
        kind="number",
        most=720,
        unit=gettext_noop("hours"),
    ),
    Known(
        "alert_hit_rate",
        gettext_noop("Alerts"),
        gettext_noop("Collapse of a hit rate"),
        gettext_noop(
            "One alert when a tool's hit rate of the last two hours is lower by this share than in the week before; the"
            " next only after it has recovered. 0: none."
        ),
        lambda: "50",
        kind="number",
        most=100,
        unit="%",
    ),
)
BY_NAME: Final = {known.name: known for known in KNOWN}


@dataclass(frozen=True)
class Chosen:
    """A setting as a page shows it; of a secret only that there is one."""

    known: Known
    value: str
    is_own: bool
    changed_by: str = ""
    changed_at: datetime | None = None

    @property
    def default(self) -> str:
        """What holds where the team chose nothing."""
        return self.known.default()


def text(tenant: Tenant, name: str) -> str:
    """What holds for the team: its own choice, else the server's default. The tenant must be bound."""
    known = BY_NAME[name]
    row = Setting.objects.filter(tenant=tenant, name=name).first()
    if row is None:
        return known.default()
    return vault.opened(bytes(row.secret)) if row.secret else row.value


def number(tenant: Tenant, name: str) -> int:
    """The same of a number; 0 says: never."""
    return int(text(tenant, name) or 0)


def shown(tenant: Tenant) -> list[Chosen]:
    """All settings in their order. No secret is among them."""
    rows = {row.name: row for row in Setting.objects.filter(tenant=tenant)}
    return [_chosen(known, rows.get(known.name)) for known in KNOWN]


def grouped(rows: Sequence[Chosen]) -> list[tuple[str, list[Chosen]]]:
    """The same by group, in the order of `KNOWN`."""
    return [(name, list(some)) for name, some in groupby(rows, key=lambda row: row.known.group)]


def _chosen(known: Known, row: Setting | None) -> Chosen:
    if row is None:
        return Chosen(known, "" if known.kind == "secret" else known.default(), False)
    return Chosen(known, "" if row.secret else row.value, True, row.changed_by, row.changed_at)


def choose(tenant: Tenant, name: str, value: str, *, by: Actor) -> None:
    """Set one; an empty value goes back to the default. Raises Refused, Invalid. The tenant must be bound."""
    require(by, "settings.manage")
    known = BY_NAME[name]
    value = value.strip()
    before = Setting.objects.filter(tenant=tenant, name=name).first()
    if not value:
        if before is not None:
            before.delete()
            audit.record(by, "settings.manage", name, before=_told(known, before), after="default")
        return
    _check(tenant, known, value)
    is_secret = known.kind == "secret"
    if before is not None and not is_secret and before.value == value:
        return
    kept = {"value": "", "secret": vault.sealed(value)} if is_secret else {"value": value, "secret": None}
    row, _ = Setting.objects.update_or_create(
        tenant=tenant, name=name, defaults={**kept, "changed_by": f"{by.label} ({by.id})"[:200]}
    )
    audit.record(by, "settings.manage", name, before=_told(known, before), after=_told(known, row))


def _told(known: Known, row: Setting | None) -> str:
    if row is None:
        return "default"
    return "a secret" if known.kind == "secret" else row.value


def _check(tenant: Tenant, known: Known, value: str) -> None:
    if "\0" in value or len(value) > 2_000:
        raise Invalid(gettext("%(label)s: at most 2,000 characters, and no NUL.") % {"label": gettext(known.label)})
    if known.kind == "number":
        if not value.isascii() or not value.isdigit() or not known.least <= int(value) <= known.most:
            raise Invalid(
                gettext("%(label)s: a whole number from %(least)s to %(most)s.")
                % {
                    "label": gettext(known.label),
                    "least": known.least,
                    "most": thousands(known.most),
                }
            )
        if known.name.startswith("retention_"):
            _check_retention(tenant, known.name, int(value))
    elif known.kind == "switch" and value not in ("on", "off"):
        raise Invalid(gettext("%(label)s: on or off.") % {"label": gettext(known.label)})
    elif known.name == "model":
        provider, colon, name = value.partition(":")
        if not colon or not name or provider not in ("anthropic", "openai", "openai-compatible"):
            raise Invalid(gettext("Model: anthropic:NAME, openai:NAME or openai-compatible:NAME."))
    elif known.kind == "mails":
        _check_mails(known, value)
    elif known.name in ("slack_url", "alert_webhook"):
        try:
            outgoing.check_url(value)
        except outgoing.InvalidAddress as why:
            raise Invalid(f"{gettext(known.label)}: {retold(why)}") from None
    elif known.name == "model_url" and value.rstrip("/") not in settings.MODEL_URLS:
        raise Invalid(
            gettext("The server may not call this address: the operator allows addresses by TEAM_MEMORY_MODEL_URLS.")
        )


def addresses(text: str) -> list[str]:
    """The mail addresses in a setting, each once."""
    return list(dict.fromkeys(one for one in text.replace(",", " ").split() if one))


def _check_mails(known: Known, value: str) -> None:
    wanted = addresses(value)
    if len(wanted) > MOST_MAILS:
        raise Invalid(
            gettext("%(label)s: at most %(most_mails)s addresses.")
            % {"label": gettext(known.label), "most_mails": MOST_MAILS}
        )
    for one in wanted:
        try:
            validate_email(one)
        except ValidationError:
            raise Invalid(
                gettext("%(label)s: %(one)s is no mail address.")
                % {"label": gettext(known.label), "one": repr(one[:80])}
            ) from None


def _check_retention(tenant: Tenant, name: str, days: int) -> None:
    """What is cited goes last: its time is never shorter than that of the rest."""
    asked = {one: number(tenant, one) for one in ("retention_events", "retention_triggers", "retention_cited")}
    asked[name] = days
    cited = asked.pop("retention_cited")
    if cited and cited < max(asked.values()):
        raise Invalid(
            gettext("What is cited is kept longest: at least %(asked)s days, or 0 for ever.")
            % {"asked": max(asked.values())}
        )


@dataclass(frozen=True)
class Model:
    """A model for dreams; without a name there is none."""

    model: str
    url: str
    key: str


def model_of(tenant: Tenant) -> Model:
    """The team's model, or the server's. With a name of its own a team never gets the server's key with it."""
    own = {row.name: row for row in Setting.objects.filter(tenant=tenant, name__in=("model", "model_url", "model_key"))}
    if "model" not in own:
        return Model(settings.DREAM_MODEL, settings.DREAM_MODEL_URL, settings.DREAM_MODEL_KEY)
    url = own["model_url"].value if "model_url" in own else ""
    key = vault.opened(bytes(own["model_key"].secret or b"")) if "model_key" in own else ""
    return Model(own["model"].value, url, key)
