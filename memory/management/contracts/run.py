"""All contracts, one after the other, against one deployment; and the tidying after them, whatever happened."""

import statistics
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from memory.management.contracts import events, exact, given, links, unknown, walk
from memory.management.contracts.client import Answer, Broken, Door, Unusable
from memory.management.contracts.visit import Visit

Check = Callable[[Visit], None]
CONTRACTS: Final[dict[str, Check]] = {
    "thread-same-twice": links.same_twice,
    "chain-resolves": links.resolves,
    "existing-resolve": links.existing,
    "unknown-404": unknown.unknown_ids,
    "never-nearest": unknown.never_the_nearest,
    "other-team-404": unknown.other_team,
    "events-once-in-order": events.once_in_order,
    "inbox-once-in-order": events.inbox_in_order,
    "cursor-tail-resumes": events.tail_resumes,
    "cursor-wrong-400": events.wrong_cursors,
    "payload-exact": exact.payloads,
    "payload-pieces": exact.pieces,
    "repeat-is-same": exact.repeats,
    "own-id-grammar": given.grammar,
    "deleted-410": given.gone,
    "ids-never-again": given.never_again,
    "recall-same-bytes": walk.same_bytes,
    "recall-in-budget": walk.in_budget,
    "both-slashes": links.both_slashes,
}
TIDY: Final = "only-tombstones-left"
# What an answer of another shape than documented leads to, wherever it is read.
_ODD: Final = (KeyError, IndexError, TypeError, AttributeError, ValueError)


@dataclass
class Outcome:
    """What came of one contract."""

    name: str
    sentence: str
    broken: list[Broken] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0
    spent: list[float] = field(default_factory=list)

    @property
    def state(self) -> str:
        return "broken" if self.broken else "skipped" if self.skipped else "ok"

    @property
    def median_ms(self) -> float:
        return 1000 * statistics.median(self.spent) if self.spent else 0.0

    @property
    def slowest_ms(self) -> float:
        return 1000 * max(self.spent, default=0.0)


def knock(door: Door, *, writes: bool) -> None:
    """Make sure that there is a Team Memory, and that the key opens what is needed. Raises Unusable."""
    try:
        listed = door.get("threads", limit=1)
        _is_ours(door, listed)
        if not writes:
            return
        nobody = "contract-nobody"
        put = door.call("PUT", f"threads/thr_{nobody}", body={"title": "nobody"})
        delete = door.call("DELETE", f"workers/wkr_{nobody}")
    except Broken as why:
        raise Unusable(f"No answer from {door.root}: {why.got}.") from None
    for answer in (put, delete):
        _opens(answer, "ingest")


def _is_ours(door: Door, answer: Answer) -> None:
    if answer.status == 401:
        raise Unusable(f"{door.root} does not take this key: unknown, expired or revoked.")
    if 300 <= answer.status < 400:
        raise Unusable(
            f"{door.root} sends elsewhere: give the address {answer.headers.get('location', '')!r} leads to."
        )
    _opens(answer, "read")
    kind = answer.headers.get("content-type", "no Content-Type")
    if answer.status != 200 or "json" not in kind:
        raise Unusable(f"There is no Team Memory at {door.root}: {answer.request} answered {answer.status}, {kind}.")


def _opens(answer: Answer, scope: str) -> None:
    if answer.status == 403:
        raise Unusable(
            f"The key lacks the scope {scope}, or its owner the role: {answer.request} answered 403. The checks need"
            " a key with ingest and read (they delete what they make); --remember and --verify only read."
        )


def run(visit: Visit, names: Collection[str], outcomes: list[Outcome]) -> None:
    """Add each contract's outcome; the last is the tidying, which comes even after Ctrl-C."""
    try:
        for name in names:
            outcomes.append(one(name, visit))
    finally:
        outcomes.append(tidied(visit))


def one(name: str, visit: Visit) -> Outcome:
    """One contract, measured."""
    check = CONTRACTS[name]
    outcome = Outcome(name, " ".join((check.__doc__ or "").split()))
    if name == "other-team-404" and visit.other is None:
        outcome.skipped = "needs --other-key, a key of another team"
    elif name == "existing-resolve" and visit.existing < 1:
        outcome.skipped = "--existing 0"
    else:
        measure(outcome, visit.door, lambda: check(visit))
    return outcome


def measure(outcome: Outcome, door: Door, check: Callable[[], None]) -> None:
    """Run a check, and note in its outcome what broke and how long it took."""
    began, first = time.monotonic(), len(door.spent)
    try:
        check()
    except Broken as broken:
        outcome.broken.append(broken)
    except _ODD as why:
        at = door.last.request if door.last else "the first request"
        got = f"{type(why).__name__}: {why}" + (f" in {door.last.shown()}" if door.last else "")
        outcome.broken.append(Broken(at, expected="an answer of the documented shape", got=got))
    finally:
        outcome.seconds, outcome.spent = time.monotonic() - began, door.spent[first:]


def tidied(visit: Visit) -> Outcome:
    """Everything that was made is deleted."""
    outcome = Outcome(TIDY, "What the checks made is deleted; only tombstones are left.")
    try:
        measure(outcome, visit.door, lambda: outcome.broken.extend(visit.tidy()))
    except KeyboardInterrupt:
        got = f"stopped; what has contract-{visit.run} in its id may be left"
        outcome.broken.append(Broken("DELETE of what was made", expected="an end", got=got))
    return outcome
