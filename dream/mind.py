"""Two minds behind one interface: rules without a model, and a model. A mind is given events and gives proposals."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import orjson
from django.conf import settings

from dream import answer, prompt
from dream.distill import distill, render
from dream.distill_shapes import MADE_BY, Draft, SeenEvent
from dream.gist import gists
from dream.shapes import Cited, Gist, KnownNote, Proposed, Rejected
from memory import tokens
from memory.llm import MAX_TOKENS, ModelFailed, Price, Provider, Usage
from memory.tenants import choices
from memory.tenants.models import Tenant
from memory.tenants.rls import tenant_scope

Told = TypeVar("Told")
ASKED_AGAIN: Final = 2
NO_TOKENS: Final = Usage()
# Failures that the events themselves may cause. A provider that is away or busy proves nothing against them.
BLAMED: Final = frozenset({"malformed", "refused", "cut_off", "rejected", "crashed"})


class Meter(Protocol):
    """Whoever pays: asked before each call, told after it."""

    def before(self, sent: int, *, priced: bool) -> int:
        """How many tokens a call that sends so many may get back. Raises MindFailed where it may not be made."""

    def after(self, usage: Usage) -> None:
        """What a call has cost."""


class Free:
    """Nobody counts."""

    def before(self, sent: int, *, priced: bool) -> int:
        return MAX_TOKENS

    def after(self, usage: Usage) -> None:
        pass


class MindFailed(Exception):
    """The mind gave nothing for these events. `blames` says whether they may be the reason."""

    def __init__(self, kind: str, detail: str, *, retry_after: float = 0.0, usage: Usage | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.retry_after = retry_after
        self.usage = usage or Usage()

    @property
    def blames(self) -> bool:
        return self.kind in BLAMED


@dataclass(frozen=True)
class Material:
    """What a mind is given: new events of one project, and what the team has of it."""

    project: str
    slug: str
    events: Sequence[SeenEvent]
    notes: Sequence[KnownNote] = ()
    rejected: Sequence[Rejected] = ()
    state: dict[str, Any] = field(default_factory=dict)
    # More of the same project follows: a mind that counts may wait with its notes.
    is_last: bool = True
    # What is told of these sessions so far.
    gists: Sequence[Gist] = ()
    meter: Meter = field(default_factory=Free)
    # Some of the team don't see the project, so nothing of it belongs anywhere else.
    is_limited: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of it. `state` is what the mind wants to be given next time, None where it keeps nothing."""

    proposed: tuple[Proposed, ...] = ()
    state: dict[str, Any] | None = None
    usage: Usage = NO_TOKENS
    dropped: tuple[str, ...] = ()
    gists: tuple[Gist, ...] = ()


class Mind(Protocol):
    """Whatever turns events into proposals."""

    name: str
    model: str
    version: str
    budget: int

    def weigh(self, event: SeenEvent) -> int:
        """How much of the budget an event takes."""

    def dream(self, material: Material) -> Outcome:
        """The proposals of one batch. Raises MindFailed."""


class DistillMind:
    """Rules. Costs nothing, knows nothing but what it counts, and says on each note that it is no model."""

    name = "distill"
    model = ""
    version = ""
    # Bytes of payload at once; read as objects they take several times that.
    budget = 6 * 1024 * 1024

    def weigh(self, event: SeenEvent) -> int:
        return 500 + len(orjson.dumps(event.payload, default=str))

    def dream(self, material: Material) -> Outcome:
        found = distill(material.events, project=material.project, slug=material.slug, state=material.state or None)
        proposed = tuple(_proposed(draft) for draft in found.drafts) if material.is_last else ()
        return Outcome(proposed, found.state, gists=gists(material.events, before=material.gists))


def _proposed(draft: Draft) -> Proposed:
    """The draft as a note without citation marks: what a line rests on is kept beside the text."""
    tiers = {statement.text: statement.tier for section in draft.sections for statement in section.statements}
    lines, cited = [], []
    for line in render(draft).splitlines():
        found = _MARK.search(line)
        text = line[: found.start()] if found else line
        if found:
            tier = tiers.get(text.removeprefix("- "), 3)
            cited += [Cited(text, each.strip(), tier) for each in found[1].split(",")]
        lines.append(text)
    path, member = draft.path, None
    if path.startswith("profile/"):
        _, member, rest = path.split("/", 2)
        path = f"profile/{rest}"
    return Proposed(path, "\n".join(lines) + "\n", tuple(cited), f"Made by {MADE_BY}.", member)


_MARK = re.compile(r" \[((?:evt_[\w.-]+)(?:, evt_[\w.-]+)*)\]$")


class ModelMind:
    """A language model, asked once a batch, and again with the error where its answer does not follow the form."""

    name = "model"
    # Tokens of the events as the prompt shows them.
    budget = 24_000

    def __init__(self, provider: Provider, instructions: str = "") -> None:
        self.provider = provider
        self.model = provider.model
        self.instructions = instructions or prompt.INSTRUCTIONS
        self.version = prompt.version_of(instructions)

    def with_instructions(self, instructions: str) -> "ModelMind":
        """The same model for another errand."""
        return ModelMind(self.provider, instructions)

    def weigh(self, event: SeenEvent) -> int:
        return tokens.count(prompt.line(event)) + 1

    def dream(self, material: Material) -> Outcome:
        if not material.events:
            return Outcome()
        question = prompt.compose(_asked(material))
        shown = {event.id: event for event in material.events}
        made_by = f"dream ({self.model})"

        def read(text: str) -> answer.Read:
            return answer.parse(text, shown=shown, notes=material.notes, made_by=made_by)

        found, usage = self.talk(question, read, material.meter)
        return Outcome(tuple(found.proposed), None, usage, tuple(found.dropped), tuple(found.gists))

    def talk(self, question: str, read: Callable[[str], Told], meter: Meter) -> tuple[Told, Usage]:
        """What `read` makes of the model's answer, and what it took. Where `read` raises Malformed, the model is asked
        again with the error, twice. Raises MindFailed.
        """
        before: list[tuple[str, str]] = []
        usage = Usage()
        while True:
            text, spent = self._ask(question, before, usage, meter)
            usage += spent
            try:
                return read(text), usage
            except answer.Refused as why:
                raise MindFailed("refused", str(why), usage=usage) from why
            except answer.Malformed as why:
                if len(before) == ASKED_AGAIN:
                    raise MindFailed("malformed", str(why), usage=usage) from why
                again = f"This can't be read: {why}. Send the whole JSON object again, and nothing else."
                before.append((text or "(nothing)", again))

    def _ask(self, question: str, before: list[tuple[str, str]], usage: Usage, meter: Meter) -> tuple[str, Usage]:
        sent = sum(tokens.counts([self.instructions, question, *(said for pair in before for said in pair)]))
        try:
            most = meter.before(sent, priced=self.provider.is_priced)
        except MindFailed as why:
            why.usage = usage
            raise
        try:
            said = self.provider.ask(question, instructions=self.instructions, before=before, most=most)
        except ModelFailed as why:
            meter.after(why.usage)
            raise MindFailed(why.kind, why.detail, retry_after=why.retry_after, usage=usage + why.usage) from why
        meter.after(said.usage)
        return said.text, said.usage


def _asked(material: Material) -> prompt.Asked:
    told = {gist.session: [line.text for line in gist.lines] for gist in material.gists}
    return prompt.Asked(
        material.project, material.slug, material.events, material.notes, material.rejected, told, material.is_limited
    )  # fmt: skip


def chosen(model: str = "", instructions: str = "", *, tenant_pk: str = "") -> Mind:
    """The mind of that name ("distill" for the rules), else what the team chose, else the server's: a model, or the
    rules."""
    usual = _usual(tenant_pk)
    named = model or usual.model
    if not named or named == DistillMind.name:
        return DistillMind()
    price = Price.of(settings.DREAM_MODEL_PRICE) if named == settings.DREAM_MODEL else None
    return ModelMind(Provider(named, usual.url, usual.key, price=price), instructions)


def _usual(tenant_pk: str) -> choices.Model:
    if not tenant_pk:
        return choices.Model(settings.DREAM_MODEL, settings.DREAM_MODEL_URL, settings.DREAM_MODEL_KEY)
    with tenant_scope(tenant_pk):
        return choices.model_of(Tenant(pk=tenant_pk))
