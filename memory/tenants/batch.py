"""What every door that takes NDJSON shares: lines, chunks of them, and what became of each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from memory.problems import Problem
from memory.tenants.rest import refuse_too_many_values

Call = TypeVar("Call")

CHUNK_LINES: Final = 500
CHUNK_BYTES: Final = 4 * 1024 * 1024
MAX_LINES: Final = 50_000
# The whole of it: each line may hold as many as a body does, and 32 MB are room for many such lines.
MAX_VALUES: Final = 1_000_000
MOST_TOLD: Final = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a batch that was not stored, and why."""

    line: int
    code: str
    detail: str


@dataclass(slots=True)
class Tally:
    """What became of the lines."""

    accepted: int = 0
    repeated: int = 0
    refused: list[Refusal] = field(default_factory=list)

    def refuse(self, line: int, problem: Problem) -> None:
        """Count a line that was not stored."""
        self.refused.append(Refusal(line, problem.code, problem.detail))

    def told(self) -> dict[str, object]:
        """The answer of a batch. The refused lines in their order; of very many the first, and one that counts the
        others."""
        self.refused.sort(key=lambda refusal: refusal.line)
        shown, rest = self.refused[:MOST_TOLD], self.refused[MOST_TOLD:]
        if rest:
            more = f"{len(rest):,} lines from this one on were refused too."
            shown = [*shown, Refusal(rest[0].line, "more_refused", more)]
        refused = [{"line": one.line, "code": one.code, "detail": one.detail} for one in shown]
        return {"accepted": self.accepted, "repeated": self.repeated, "refused": refused}


def lines_of(raw: bytes) -> list[bytes]:
    """The lines of a batch's body. Raises Problem 413 too_many_lines, 400 too_many_values."""
    if raw.count(b"\n") > MAX_LINES:
        raise Problem(413, "too_many_lines", f"A batch holds {MAX_LINES:,} lines at most.", limit=MAX_LINES)
    refuse_too_many_values(raw, MAX_VALUES)
    return raw.split(b"\n")


def chunks(calls: Iterable[tuple[int, Call, int]]) -> Iterator[list[tuple[int, Call]]]:
    """Calls (line, what it says, bytes) in groups that go in together."""
    chunk: list[tuple[int, Call]] = []
    size = 0
    for number, call, length in calls:
        if chunk and (len(chunk) >= CHUNK_LINES or size + length > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((number, call))
        size += length
    if chunk:
        yield chunk
