"""One question to a language model, whatever the provider: text in, text out, and a few kinds of failure.

`model` is `anthropic:NAME`, `openai:NAME` or `openai-compatible:NAME`; the last one needs a base URL. No tools, no
streaming, no retries of its own: when to ask again is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

# pydantic-ai takes seconds and 100 MB to import; a web process, and a team without a model, never asks one.
if TYPE_CHECKING:
    from pydantic_ai.exceptions import AgentRunError
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

PROVIDERS: Final = ("anthropic", "openai", "openai-compatible")
TIMEOUT_SECONDS: Final = 300.0
MAX_TOKENS: Final = 16_000

Kind = Literal["timeout", "rate_limited", "unavailable", "not_allowed", "refused", "cut_off", "rejected"]


class ModelFailed(Exception):
    """The model gave no whole answer; `kind` says why, `retry_after` how many seconds the provider asks to wait."""

    def __init__(self, kind: Kind, detail: str, *, retry_after: float = 0.0, usage: Usage | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after
        self.usage = usage or Usage()


class UnknownModel(ValueError):
    """The setting names no model; the message says how it is written."""


@dataclass(frozen=True)
class Usage:
    """Tokens: `cached` is the part of `sent` that the provider had in its cache."""

    sent: int = 0
    received: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.sent + other.sent, self.received + other.received, self.cached + other.cached)


@dataclass(frozen=True)
class Answer:
    text: str
    usage: Usage


@dataclass(frozen=True)
class Provider:
    """Which model to ask, where, and with which key."""

    model: str
    url: str = ""
    key: str = ""
    timeout: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        vendor, _, name = self.model.partition(":")
        if vendor not in PROVIDERS or not name:
            known = ", ".join(f"{each}:NAME" for each in PROVIDERS)
            raise UnknownModel(f"{self.model!r} is no model; write one of {known}.")
        if vendor == "openai-compatible" and not self.url:
            raise UnknownModel("openai-compatible: needs the address of the server, TEAM_MEMORY_MODEL_URL.")

    def ask(self, question: str, *, instructions: str, before: Sequence[tuple[str, str]] = ()) -> Answer:
        """The model's answer. `before` holds earlier (answer, reply) pairs of the same talk. Raises ModelFailed."""
        from pydantic_ai.direct import model_request_sync
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
        from pydantic_ai.settings import ModelSettings

        talk: list[ModelMessage] = [ModelRequest([UserPromptPart(question)], instructions=instructions)]
        for said, reply in before:
            talk.append(ModelResponse([TextPart(said)]))
            talk.append(ModelRequest([UserPromptPart(reply)], instructions=instructions))
        wanted = ModelSettings(max_tokens=MAX_TOKENS, timeout=self.timeout)
        # The instructions and the notes stand first, so that the provider's prefix cache holds from call to call.
        if self.model.startswith("anthropic:"):
            wanted["cache"] = {"messages": bool(before)}
        try:
            response = model_request_sync(self._model(), talk, model_settings=wanted)
        except AgentRunError as why:
            raise _failure(why) from why
        return _answer(response)

    def _model(self) -> Model:
        vendor, _, name = self.model.partition(":")
        if vendor == "anthropic":
            return _anthropic(name, self)
        return _openai(name, self)


def _anthropic(name: str, provider: Provider) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key=provider.key or None, base_url=provider.url or None, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _openai(name: str, provider: Provider) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    # A server of one's own often wants no key; the client insists on one.
    key = provider.key or ("none" if provider.url else None)
    client = AsyncOpenAI(api_key=key, base_url=provider.url or None, max_retries=0)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


def _answer(response: ModelResponse) -> Answer:
    spent = response.usage
    usage = Usage(spent.input_tokens, spent.output_tokens, spent.cache_read_tokens)
    text = response.text or ""
    if response.finish_reason == "length":
        raise ModelFailed("cut_off", f"the answer ended at its limit of {MAX_TOKENS} tokens", usage=usage)
    if response.finish_reason == "content_filter":
        raise ModelFailed("refused", text[:200] or "the provider's filter stopped the answer", usage=usage)
    return Answer(text, usage)


def _failure(why: AgentRunError) -> ModelFailed:
    from pydantic_ai import exceptions as refusals

    detail = str(why)[:300]
    match why:
        case refusals.ModelRateLimitError() | refusals.ModelQuotaExceededError():
            return ModelFailed("rate_limited", detail, retry_after=_retry_after(why))
        case refusals.ModelTimeoutError() | refusals.ModelRequestTimeout() | refusals.RunTimedOut():
            return ModelFailed("timeout", detail)
        case refusals.ModelAuthenticationError() | refusals.ModelNotFoundError():
            return ModelFailed("not_allowed", detail)
        case refusals.ContentFilterError():
            return ModelFailed("refused", detail)
        case refusals.ModelRequestRejectedError():
            return ModelFailed("rejected", detail)
        case refusals.UnexpectedModelBehavior():
            return ModelFailed("rejected", detail)
    return ModelFailed("unavailable", detail, retry_after=_retry_after(why))


def _retry_after(why: AgentRunError) -> float:
    headers = getattr(why, "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", 0)))
    except ValueError:
        return 0.0
