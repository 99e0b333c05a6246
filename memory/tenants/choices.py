"""What a team may choose itself: each setting with its default, its effect, and who changed it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from django.conf import settings

from memory.tenants import audit, vault
from memory.tenants.access import Actor, require
from memory.tenants.models import Setting, Tenant


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
        "Model",
        "Model for dreams",
        "Dreams ask it instead of going by rules: anthropic:NAME, openai:NAME or openai-compatible:NAME. Empty: the"
        " server's default.",
        lambda: settings.DREAM_MODEL,
    ),
    Known(
        "model_url",
        "Model",
        "Address of an OpenAI-compatible model",
        "Only addresses that the operator allows (TEAM_MEMORY_MODEL_URLS): the server itself calls it.",
        lambda: settings.DREAM_MODEL_URL,
    ),
    Known(
        "model_key",
        "Model",
        "Key of the model",
        "Sent with each question, paid by whoever owns it. Kept encrypted, never shown again.",
        lambda: "set" if settings.DREAM_MODEL_KEY else "",
        kind="secret",
    ),
    Known(
        "retention_events",
        "Retention",
        "Payloads of events",
        "After so long the stored payload of a hook event goes. Its id, place, tool and line stay.",
        lambda: "0",
        kind="number",
        unit="days",
    ),
    Known(
        "retention_triggers",
        "Retention",
        "Payloads of triggers",
        "After so long payloads, logs and diffs of triggers go. Id, summary and thread stay.",
        lambda: "0",
        kind="number",
        unit="days",
    ),
    Known(
        "retention_cited",
        "Retention",
        "Payloads that are cited",
        "What a note's line or a worker's report rests on is kept so long, and never shorter than the rest.",
        lambda: "0",
        kind="number",
        unit="days",
    ),
    Known(
        "private_reading",
        "Privacy",
        "Admins may read private notes",
        "On: owners and admins can open the notes in any member's own space, read-only. Each reading stands in the"
        " audit, and the member sees who read what. Off: nobody but the member can.",
        lambda: "off",
        kind="switch",
    ),
    Known(
        "alert_backlog_hours",
        "Alerts",
        "Sessions that wait for a dream",
        "The inbox warns when a finished session has waited longer than this for a dream.",
        lambda: "24",
        kind="number",
        unit="hours",
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
        raise Invalid(f"{known.label}: at most 2,000 characters, and no NUL.")
    if known.kind == "number":
        if not value.isascii() or not value.isdigit() or not known.least <= int(value) <= known.most:
            raise Invalid(f"{known.label}: a whole number from {known.least} to {known.most:,}.")
        if known.name.startswith("retention_"):
            _check_retention(tenant, known.name, int(value))
    elif known.kind == "switch" and value not in ("on", "off"):
        raise Invalid(f"{known.label}: on or off.")
    elif known.name == "model":
        provider, colon, name = value.partition(":")
        if not colon or not name or provider not in ("anthropic", "openai", "openai-compatible"):
            raise Invalid("Model: anthropic:NAME, openai:NAME or openai-compatible:NAME.")
    elif known.name == "model_url" and value.rstrip("/") not in settings.MODEL_URLS:
        raise Invalid("The server may not call this address: the operator allows addresses by TEAM_MEMORY_MODEL_URLS.")


def _check_retention(tenant: Tenant, name: str, days: int) -> None:
    """What is cited goes last: its time is never shorter than that of the rest."""
    asked = {one: number(tenant, one) for one in ("retention_events", "retention_triggers", "retention_cited")}
    asked[name] = days
    cited = asked.pop("retention_cited")
    if cited and cited < max(asked.values()):
        raise Invalid(f"What is cited is kept longest: at least {max(asked.values())} days, or 0 for ever.")


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
