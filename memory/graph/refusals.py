"""What the graph refuses, each with a name, a status and what to do about it."""

from typing import Any

from memory.problems import Problem, not_found


class Invalid(Problem):
    """A field that can't be taken."""

    def __init__(self, code: str, detail: str, *, status: int = 400, **more: Any) -> None:
        super().__init__(status, code, detail, **more)


class Conflict(Problem):
    """The identity holds something else."""

    def __init__(self, code: str, detail: str, public_id: str | None) -> None:
        super().__init__(409, code, detail, id=public_id)


class UnknownThread(Problem):
    """A thread that a body names and nobody has."""

    def __init__(self, public_id: str | None) -> None:
        detail = f"There is no thread {public_id}. Give one that exists, an id of your own like thr_pr_412, or a key."
        super().__init__(422, "unknown_thread", detail, id=public_id)


class UnknownCitation(Problem):
    """A cited id that nobody has."""

    def __init__(self, public_id: str) -> None:
        detail = (
            f"There is no {public_id[:110]}. Cite ids of triggers, workers, threads, sessions or events that exist."
        )
        super().__init__(422, "unknown_citation", detail, id=public_id[:200])


class UnknownWorker(Problem):
    """A worker or session that a body names and nobody has."""

    def __init__(self, public_id: str, *, kind: str = "worker") -> None:
        super().__init__(422, f"unknown_{kind}", f"There is no {kind} {public_id[:110]}.", id=public_id[:200])


def gone(public_id: str, at: str | None = None) -> Problem:
    """410 for what was here and was deleted; its id is never used again."""
    when = f" at {at}" if at else ""
    return Problem(
        410, "gone", f"This was deleted{when}. Its id is never used again.", id=public_id[:200], deleted_at=at
    )


def of_outcome(outcome: str, public_id: str | None) -> Problem:
    """The refusal that an outcome of the graph's SQL stands for."""
    match outcome:
        case "conflict":
            detail = "This id, external_id or Idempotency-Key holds another trigger already. Send it with its own."
            return Conflict("conflict", detail, public_id)
        case "deleted":
            return Conflict("deleted", "What had this id, external_id or Idempotency-Key was deleted.", public_id)
        case "thread_conflict":
            detail = "The thread's id and key belong to two threads. Give one of them."
            return Conflict("thread_conflict", detail, public_id)
        case "thread_deleted":
            return Conflict("thread_deleted", "The thread was deleted. Give another id.", public_id)
        case "unknown_thread":
            return UnknownThread(public_id)
    return not_found(public_id or "")
