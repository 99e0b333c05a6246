"""Contracts of the 404: an id is the one that was asked for, or none; never the nearest."""

import json
import secrets
from typing import Any, Final

from memory.management.contracts.client import Answer, Door, encoded
from memory.management.contracts.visit import Visit, door_of, minted

_KINDS: Final = {"thr": "thread", "trg": "trigger", "wkr": "worker"}
_READS: Final = {
    "thr": ("threads/{}", "threads/{}/events", "recall/{}"),
    "trg": ("triggers/{}", "triggers/{}/payload", "recall/{}"),
    "wkr": ("workers/{}", "workers/{}/inbox", "recall/{}"),
}
_FOREIGN: Final = (
    "abc", "99999999999999999999999", "0", "-1", "null", "abc\0def", "thr_", "trg_", "wkr_", "thr_%", "*",
    "' OR 1=1 --", "01890a5d-ac96-774b-bcce-b302099a8057", "тhr_1", "thr_🙂", "ten_1", "x" * 5000,
)  # fmt: skip


def is_problem(answer: Answer, status: int, public_id: str | None = None) -> dict[str, Any]:
    """The problem that an answer is: JSON with status, code and a detail, and the id. Raises Broken."""
    answer.must(status)
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("application/problem+json"):
        raise answer.broken("application/problem+json", kind or "no Content-Type")
    said = answer.object()
    for name in ("type", "title", "code", "detail"):
        if not isinstance(said.get(name), str) or not said[name].strip():
            raise answer.broken(f"a problem with {name}")
    if said.get("status") != status:
        raise answer.broken(f"status {status} in the body")
    if public_id is not None and said.get("id") != public_id:
        raise answer.broken(f"id {public_id} in the body")
    return said


def is_unknown(answer: Answer, public_id: str | None = None) -> bytes:
    """The body of a 404 with the asked id masked. Raises Broken."""
    said = is_problem(answer, 404, public_id)
    if said["code"] != "not_found":
        raise answer.broken("code not_found")
    masked = said | {name: "…" for name in ("id", "request_id", "instance") if name in said}
    return json.dumps(masked, ensure_ascii=False).replace(public_id or "…", "…").encode()


def unknown_ids(visit: Visit) -> None:
    """Unknown threads, workers and triggers are 404 with a clear body, the same for each of them."""
    for prefix, reads in _READS.items():
        asked = [f"{prefix}_contract-{visit.run}-none", f"{prefix}_{secrets.token_hex(4)}", minted(_KINDS[prefix])]
        for path in reads:
            _all_alike(visit.door, path, asked)


def _all_alike(door: Door, path: str, asked: list[str]) -> None:
    first: bytes | None = None
    for public_id in asked:
        answer = door.get(path.format(public_id))
        masked = is_unknown(answer, public_id)
        if first is not None and masked != first:
            raise answer.broken(f"the body of any unknown id, {first.decode()}")
        first = masked


def never_the_nearest(visit: Visit) -> None:
    """What looks like an id, or stands near one, is 404 too."""
    thread_id = visit.thread("near")
    made = [thread_id, visit.trigger(thread_id, "near"), visit.worker(thread_id, "near")]
    for public_id in made:
        path = door_of(public_id).rpartition("/")[0]
        others = [one for one in made if one != public_id]
        for asked in (*_near(public_id), *others, *_FOREIGN):
            is_unknown(visit.door.get(f"{path}/{encoded(asked)}"))
        visit.door.get(f"{path}/{public_id}").must(200)


def _near(public_id: str) -> list[str]:
    return [
        public_id[:-1],
        public_id + "x",
        public_id.upper(),
        public_id[4:],
        f" {public_id}",
        f"{public_id} ",
        f"{public_id}\n",
        public_id[:4] + public_id,
        public_id.replace("-", "_"),
        public_id[:-1] + "%",
    ]


def other_team(visit: Visit) -> None:
    """Another team's key gets for our ids what it gets for any unknown id."""
    if visit.other is None:
        return
    thread_id = visit.thread("ours")
    made = [thread_id, visit.trigger(thread_id, "ours"), visit.worker(thread_id, "ours")]
    for public_id in made:
        for path in _READS[public_id[:3]]:
            _all_alike(visit.other, path, [f"{public_id[:4]}contract-{visit.run}-none", public_id])
