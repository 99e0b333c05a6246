"""One question to a language model, whatever the provider: text in, text out, and a few kinds of failure.

`model` is `anthropic:NAME`, `openai:NAME` or `openai-compatible:NAME`; the last one needs a base URL. No tools, no
streaming, no retries of its own: when to ask again is for the caller to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

# pydantic-ai takes seconds and 100 MB to import; a web process, and a team without a model, never asks one.
from memory import redact
from memory.sentences import sentence

if TYPE_CHECKING:
    from pydantic_ai.exceptions import AgentRunError
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

PROVIDERS: Final = ("anthropic", "openai", "openai-compatible")
TIMEOUT_SECONDS: Final = 300.0
_AMOUNT: Final = re.compile(r"\d{1,6}(\.\d{1,6})?")
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
    """Tokens: `cached` is the part of `sent` that the provider had in its cache. `cost` is in US dollars.

    `unpriced` counts the calls of which nobody knows the price: their cost is not in `cost`.
    """

    sent: int = 0
    received: int = 0
    cached: int = 0
    cost: Decimal = field(default=Decimal(0), compare=False)
    unpriced: int = field(default=0, compare=False)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.sent + other.sent,
            self.received + other.received,
            self.cached + other.cached,
            self.cost + other.cost,
            self.unpriced + other.unpriced,
        )


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens: sent, received, and read from the provider's cache."""

    sent: Decimal
    received: Decimal
    cached: Decimal

    @classmethod
    def of(cls, text: str) -> Price | None:
        """The price that "3,15,0.3" states; None for "". Raises ValueError."""
        if not text:
            return None
        parts = [Decimal(part.strip()) for part in text.split(",") if _AMOUNT.fullmatch(part.strip())]
        if len(parts) not in (2, 3) or len(parts) != text.count(",") + 1:
            raise ValueError(
                "a price is dollars for a million tokens sent, received and, where it differs, cached: 3,15,0.3"
            )
        return cls(parts[0], parts[1], parts[2] if len(parts) == 3 else parts[0])

    def cost(self, usage: Usage) -> Decimal:
        """What a call costs."""
        full = (usage.sent - usage.cached) * self.sent + usage.cached * self.cached + usage.received * self.received
        return full / 1_000_000


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
    # What the operator says it costs; else the published list prices, where the model is on the list.
    price: Price | None = None

    def __post_init__(self) -> None:
        vendor, _, name = self.model.partition(":")
        if vendor not in PROVIDERS or not name:
            known = ", ".join(f"{each}:NAME" for each in PROVIDERS)
            raise UnknownModel(
                sentence("%(model)s is no model; write one of %(known)s.", model=repr(self.model), known=known)
            )
        if vendor == "openai-compatible" and not self.url:
            raise UnknownModel(sentence("openai-compatible: needs the address of the server, TEAM_MEMORY_MODEL_URL."))

    def ask(
        self, question: str, *, instructions: str, before: Sequence[tuple[str, str]] = (), most: int = MAX_TOKENS
    ) -> Answer:
        """The model's answer of at most so many tokens. `before` holds earlier (answer, reply) pairs of the same talk.

        Raises ModelFailed.
        """
        from pydantic_ai.direct import model_request_sync
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
        from pydantic_ai.settings import ModelSettings

        talk: list[ModelMessage] = [ModelRequest([UserPromptPart(question)], instructions=instructions)]
        for said, reply in before:
            talk.append(ModelResponse([TextPart(said)]))
            talk.append(ModelRequest([UserPromptPart(reply)], instructions=instructions))
        wanted = ModelSettings(max_tokens=most, timeout=self.timeout)
        # The instructions and the notes stand first, so that the provider's prefix cache holds from call to call.
        if self.model.startswith("anthropic:"):
            wanted["cache"] = {"messages": bool(before)}
        try:
            # In a thread of its own: where the caller's has an event loop, another can't run beside it.
            with ThreadPoolExecutor(1) as apart:
                response = apart.submit(model_request_sync, self._model(), talk, model_settings=wanted).result()
        except AgentRunError as why:
            raise _failure(why) from why
        return _answer(response, self.price, most)

    @property
    def is_priced(self) -> bool:
        """Whether what a call costs can be told before it is made."""
        if self.price is not None:
            return True
        from genai_prices import Usage as Amount
        from genai_prices import calc_price

        vendor, _, name = self.model.partition(":")
        try:
            calc_price(Amount(input_tokens=1), model_ref=name, provider_id=vendor)
        except (LookupError, ValueError):
            return False
        return True

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


def _answer(response: ModelResponse, price: Price | None, most: int) -> Answer:
    spent = response.usage
    usage = _priced(Usage(spent.input_tokens, spent.output_tokens, spent.cache_read_tokens), response, price)
    text = response.text or ""
    if response.finish_reason == "length":
        raise ModelFailed(
            "cut_off", sentence("the answer ended at its limit of %(most)s tokens", most=most), usage=usage
        )
    if response.finish_reason == "content_filter":
        raise ModelFailed(
            "refused", redact.brief(text, 200) or sentence("the provider's filter stopped the answer"), usage=usage
        )
    return Answer(text, usage)


def _priced(usage: Usage, response: ModelResponse, price: Price | None) -> Usage:
    """The usage with its cost: by the operator's price, else by the list of genai-prices; unpriced without either."""
    if price is not None:
        return replace(usage, cost=price.cost(usage))
    try:
        return replace(usage, cost=response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return replace(usage, unpriced=1)


def _failure(why: AgentRunError) -> ModelFailed:
    from pydantic_ai import exceptions as refusals

    detail = redact.brief(str(why), 300)
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
