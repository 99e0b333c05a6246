"""What the operator set for the whole server, each with its default and its effect. Secrets only say they are set."""

import os
from dataclasses import dataclass
from typing import Final

from django.conf import settings


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
_KNOWN: Final[dict[str, tuple[tuple[str, str, str, str, str], ...]]] = {
    "Address": (
        (
            "TEAM_MEMORY_PUBLIC_URL",
            "Public address",
            "PUBLIC_URL",
            "where start serves",
            "Login links and hooks lead there; with https, cookies go over TLS only and browsers stay on it.",
        ),
        (
            "TEAM_MEMORY_ALLOWED_HOSTS",
            "More host names",
            "ALLOWED_HOSTS",
            "",
            "Any other name is refused.",
        ),
    ),
    "Model": (
        ("TEAM_MEMORY_MODEL", "Model for dreams", "DREAM_MODEL", "none: rules", "What teams without a choice use."),
        ("TEAM_MEMORY_MODEL_URL", "Its address", "DREAM_MODEL_URL", "", "Where an OpenAI-compatible server answers."),
        ("TEAM_MEMORY_MODEL_KEY", "Its key", "", "", "Sent with each question of teams without a model of their own."),
        (
            "TEAM_MEMORY_MODEL_URLS",
            "Allowed addresses",
            "MODEL_URLS",
            "",
            "Those a team may choose.",
        ),
        (
            "TEAM_MEMORY_DREAM_HOURS",
            "Hours between dreams",
            "DREAM_EVERY_HOURS",
            "4",
            "How often a team dreams.",
        ),
        (
            "TEAM_MEMORY_GARDEN_HOURS",
            "Hours between gardenings",
            "GARDEN_EVERY_HOURS",
            "24",
            "How often the gardener looks through a team's notes.",
        ),
        ("TEAM_MEMORY_IDLE_HOURS", "Idle hours", "IDLE_HOURS", "4", "A session so long silent counts as ended."),
    ),
    "Search": (
        ("TEAM_MEMORY_EMBED", "Embedding", "EMBED", "local", "What makes vectors: local, off, or a server's address."),
        ("TEAM_MEMORY_EMBED_MODEL", "Its model", "EMBED_MODEL", "", "The model of that server."),
        ("TEAM_MEMORY_EMBED_KEY", "Its key", "", "", "Sent with each text that gets a vector."),
    ),
    "Storage": (
        ("DATABASE_URL", "Database", "", "embedded", "A PostgreSQL of yours instead of the one that comes along."),
        ("TEAM_MEMORY_DATA", "Data folder", "DATA_HOME", ".team-memory", "Database, keys and logs."),
        ("TEAM_MEMORY_S3_BUCKET", "Bucket", "S3_BUCKET", "", "Payloads over 16 KB go there instead of the database."),
        (
            "TEAM_MEMORY_DISK_RESERVE_MB",
            "Reserve on the disk",
            "",
            "256",
            "With less free, agents' writes are refused with 507 and kept by their clients.",
        ),
    ),
    "Mail and webhooks": (
        (
            "TEAM_MEMORY_TRUSTED_PROXIES",
            "Trusted proxies",
            "TRUSTED_PROXIES",
            "127.0.0.1, ::1 with https, else nobody",
            "Whose word on who asks, and whether by https, is believed (X-Forwarded-For, X-Forwarded-Proto).",
        ),
        (
            "TEAM_MEMORY_SMTP_URL",
            "Mail server",
            "EMAIL_HOST",
            "",
            "Invitations, login links and news go by it. Without one, links are shown to be sent by hand.",
        ),
        ("TEAM_MEMORY_MAIL_FROM", "Sender of mail", "DEFAULT_FROM_EMAIL", "", "The From address of every mail."),
        (
            "TEAM_MEMORY_WEBHOOK_HOSTS",
            "Private hosts",
            "WEBHOOK_HOSTS",
            "",
            "Hosts (or host:port) that webhooks and single sign-on may reach though private or by plain http.",
        ),
    ),
    "Teams": (
        (
            "TEAM_MEMORY_DELETE_GRACE_DAYS",
            "Days before a team goes",
            "DELETE_GRACE_DAYS",
            "14",
            "So long the deletion of a team can be taken back.",
        ),
        ("TEAM_MEMORY_CONTACT", "Whom to ask", "CONTACT", "", "What members of a suspended team are told."),
    ),
    "Watching": (
        (
            "TEAM_MEMORY_METRICS_TOKEN",
            "Token for /metrics",
            "",
            "",
            "Without one only this machine may read them.",
        ),
        ("TEAM_MEMORY_LOG_LEVEL", "Log level", "", "INFO", "How much stands in the logs."),
        (
            "TEAM_MEMORY_LOG_FORMAT",
            "Log format",
            "LOG_FORMAT",
            "line",
            "line for people; json for what gathers logs: one object a line, with the request's id or the task.",
        ),
    ),
}
_SECRET: Final = ("KEY", "TOKEN", "DATABASE_URL")


def shown() -> list[tuple[str, list[Shown]]]:
    """The groups with their settings as they hold now."""
    return [(group, [_shown(*row) for row in rows]) for group, rows in _KNOWN.items()]


def _shown(name: str, label: str, attribute: str, default: str, effect: str) -> Shown:
    given = os.environ.get(name, "").strip()
    if name.endswith(_SECRET):
        return Shown(name, label, effect, "set" if given else "", default, bool(given))
    held = getattr(settings, attribute) if attribute else given
    value = ", ".join(map(str, held)) if isinstance(held, list) else str(held)
    return Shown(name, label, effect, value, default, bool(given))
