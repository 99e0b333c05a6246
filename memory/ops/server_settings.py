"""What the operator set for the whole server, each with its default and its effect. Secrets only say they are set."""

import os
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.translation import gettext, gettext_noop


@dataclass(frozen=True)
class Shown:
    """One setting of the server."""

    name: str
    label: str
    effect: str
    value: str
    default: str
    is_set: bool


# Group -> (variable, label, name in the settings, default, effect). What holds a secret has no name in the settings.
_IN_WORDS: Final = frozenset(
    (
        gettext_noop("where start serves"),
        gettext_noop("none: rules"),
        gettext_noop("embedded"),
        gettext_noop("127.0.0.1, ::1 with https, else nobody"),
    )
)
_KNOWN: Final[dict[str, tuple[tuple[str, str, str, str, str], ...]]] = {
    gettext_noop("Address"): (
        (
            "TEAM_MEMORY_PUBLIC_URL",
            gettext_noop("Public address"),
            "PUBLIC_URL",
            "where start serves",
            gettext_noop(
                "Login links and hooks lead there; with https, cookies go over TLS only and browsers stay on it."
            ),
        ),
        (
            "TEAM_MEMORY_ALLOWED_HOSTS",
            gettext_noop("More host names"),
            "ALLOWED_HOSTS",
            "",
            gettext_noop("Any other name is refused."),
        ),
    ),
    gettext_noop("Model"): (
        (
            "TEAM_MEMORY_MODEL",
            gettext_noop("Model for dreams"),
            "DREAM_MODEL",
            "none: rules",
            gettext_noop("What teams without a choice use."),
        ),
        (
            "TEAM_MEMORY_MODEL_URL",
            gettext_noop("Its address"),
            "DREAM_MODEL_URL",
            "",
            gettext_noop("Where an OpenAI-compatible server answers."),
        ),
        (
            "TEAM_MEMORY_MODEL_KEY",
            gettext_noop("Its key"),
            "",
            "",
            gettext_noop("Sent with each question of teams without a model of their own."),
        ),
        (
            "TEAM_MEMORY_MODEL_URLS",
            gettext_noop("Allowed addresses"),
            "MODEL_URLS",
            "",
            gettext_noop("Those a team may choose."),
        ),
        (
            "TEAM_MEMORY_DREAM_HOURS",
            gettext_noop("Hours between dreams"),
            "DREAM_EVERY_HOURS",
            "4",
            gettext_noop("How often a team dreams."),
        ),
        (
            "TEAM_MEMORY_GARDEN_HOURS",
            gettext_noop("Hours between gardenings"),
            "GARDEN_EVERY_HOURS",
            "24",
            gettext_noop("How often the gardener looks through a team's notes."),
        ),
        (
            "TEAM_MEMORY_IDLE_HOURS",
            gettext_noop("Idle hours"),
            "IDLE_HOURS",
            "4",
            gettext_noop("A session so long silent counts as ended."),
        ),
    ),
    gettext_noop("Search"): (
        (
            "TEAM_MEMORY_EMBED",
            gettext_noop("Embedding"),
            "EMBED",
            "local",
            gettext_noop("What makes vectors: local, off, or a server's address."),
        ),
        (
            "TEAM_MEMORY_EMBED_MODEL",
            gettext_noop("Its model"),
            "EMBED_MODEL",
            "",
            gettext_noop("The model of that server."),
        ),
        (
            "TEAM_MEMORY_EMBED_KEY",
            gettext_noop("Its key"),
            "",
            "",
            gettext_noop("Sent with each text that gets a vector."),
        ),
    ),
    gettext_noop("Storage"): (
        (
            "DATABASE_URL",
            gettext_noop("Database"),
            "",
            "embedded",
            gettext_noop("A PostgreSQL of yours instead of the one that comes along."),
        ),
        (
            "TEAM_MEMORY_DATA",
            gettext_noop("Data folder"),
            "DATA_HOME",
            ".team-memory",
            gettext_noop("Database, keys and logs."),
        ),
        (
            "TEAM_MEMORY_S3_BUCKET",
            gettext_noop("Bucket"),
            "S3_BUCKET",
            "",
            gettext_noop("Payloads over 16 KB go there instead of the database."),
        ),
        (
            "TEAM_MEMORY_DISK_RESERVE_MB",
            gettext_noop("Reserve on the disk"),
            "DISK_RESERVE_MB",
            "256",
            gettext_noop("With less free, agents' writes are refused with 507 and kept by their clients."),
        ),
    ),
    gettext_noop("Mail and webhooks"): (
        (
            "TEAM_MEMORY_TRUSTED_PROXIES",
            gettext_noop("Trusted proxies"),
            "TRUSTED_PROXIES",
            "127.0.0.1, ::1 with https, else nobody",
            gettext_noop(
                "Whose word on who asks, and whether by https, is believed (X-Forwarded-For, X-Forwarded-Proto)."
            ),
        ),
        (
            "TEAM_MEMORY_SMTP_URL",
            gettext_noop("Mail server"),
            "EMAIL_HOST",
            "",
            gettext_noop(
                "Invitations, login links and news go by it. Without one, links are shown to be sent by hand."
            ),
        ),
        (
            "TEAM_MEMORY_MAIL_FROM",
            gettext_noop("Sender of mail"),
            "DEFAULT_FROM_EMAIL",
            "",
            gettext_noop("The From address of every mail."),
        ),
        (
            "TEAM_MEMORY_WEBHOOK_HOSTS",
            gettext_noop("Private hosts"),
            "WEBHOOK_HOSTS",
            "",
            gettext_noop(
                "Hosts (or host:port) that webhooks and single sign-on may reach though private or by plain http."
            ),
        ),
    ),
    gettext_noop("Teams"): (
        (
            "TEAM_MEMORY_DELETE_GRACE_DAYS",
            gettext_noop("Days before a team goes"),
            "DELETE_GRACE_DAYS",
            "14",
            gettext_noop("So long the deletion of a team can be taken back."),
        ),
        (
            "TEAM_MEMORY_CONTACT",
            gettext_noop("Whom to ask"),
            "CONTACT",
            "",
            gettext_noop("What members of a suspended team are told."),
        ),
    ),
    gettext_noop("Watching"): (
        (
            "TEAM_MEMORY_METRICS_TOKEN",
            gettext_noop("Token for /metrics"),
            "",
            "",
            gettext_noop("Without one only this machine may read them."),
        ),
        (
            "TEAM_MEMORY_LOG_LEVEL",
            gettext_noop("Log level"),
            "LOG_LEVEL",
            "INFO",
            gettext_noop("How much stands in the logs."),
        ),
        (
            "TEAM_MEMORY_LOG_FORMAT",
            gettext_noop("Log format"),
            "LOG_FORMAT",
            "line",
            gettext_noop(
                "line for people; json for what gathers logs: one object a line, with the request's id or the task."
            ),
        ),
    ),
}
_SECRET: Final = ("KEY", "TOKEN", "DATABASE_URL")


def shown() -> list[tuple[str, list[Shown]]]:
    """The groups with their settings as they hold now."""
    return [(group, [_shown(*row) for row in rows]) for group, rows in _KNOWN.items()]


def _default(value: str) -> str:
    """What is so without a choice; a value that could be typed stays as it is typed."""
    return gettext(value) if value in _IN_WORDS else value


def _shown(name: str, label: str, attribute: str, default: str, effect: str) -> Shown:
    given = os.environ.get(name, "").strip()
    if name.endswith(_SECRET):
        return Shown(name, label, effect, gettext("set") if given else "", _default(default), bool(given))
    held = getattr(settings, attribute) if attribute else given
    value = ", ".join(map(str, held)) if isinstance(held, list) else str(held)
    return Shown(name, label, effect, value, _default(default), bool(given))
