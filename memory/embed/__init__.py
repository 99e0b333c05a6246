"""Texts to vectors, whatever makes them: the local model, an OpenAI-compatible endpoint, or nothing.

Vectors of two models, or of two versions of one, say nothing about each other: whoever stores a vector stores
`Embedder.key` with it and never compares across keys.
"""

from collections.abc import Sequence
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

Text = Literal["query", "passage"]
Failure = Literal["timeout", "rate_limited", "unavailable", "not_allowed", "rejected"]
LOCAL: Final = "local"
OFF: Final = "off"


class EmbedFailed(Exception):
    """No vectors; `kind` says why, `retry_after` how many seconds the endpoint asks to wait."""

    def __init__(self, kind: Failure, detail: str, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after


class UnknownEmbedder(ValueError):
    """The setting names nothing that makes vectors; the message says how it is written."""


class Embedder(Protocol):
    """Makes unit vectors. `floor` is the likeness below which two texts have nothing to do with each other."""

    model: str
    version: str
    floor: float

    @property
    def dimensions(self) -> int:
        """How long a vector is; 0 where the first answer of an endpoint will tell."""

    def embed(self, texts: Sequence[str], *, kind: Text) -> list[list[float]]:
        """One vector for each text, in order. Raises EmbedFailed."""


def key_of(embedder: Embedder) -> str:
    """What is stored with each vector: only those of one key are compared."""
    return f"{embedder.model}@{embedder.version}"[:120]


def check(setting: str, model: str) -> None:
    """Raises UnknownEmbedder where `setting` and `model` can't be meant."""
    if setting in (LOCAL, OFF):
        return
    parts = urlsplit(setting)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnknownEmbedder(f"{setting!r} is none of local, off and an address such as https://host/v1.")
    if not model:
        raise UnknownEmbedder("an address needs the name of the model, TEAM_MEMORY_EMBED_MODEL.")


def embedder(setting: str, *, model: str = "", key: str = "", timeout: float = 30.0) -> Embedder | None:
    """What the setting names; None for off, and for local where the wheel is missing. Loads nothing yet."""
    check(setting, model)
    if setting == OFF:
        return None
    if setting == LOCAL:
        # Imported here: a process that embeds nothing shall not carry what embeds.
        from memory.embed.local import Local, is_installed

        return Local() if is_installed() else None
    from memory.embed.endpoint import Endpoint

    return Endpoint(setting.rstrip("/"), model, key=key, timeout=timeout)
