"""Public ids: minted TypeIDs and the ids a caller may give."""

import re
from typing import Final

import uuid_utils
from typeid import TypeID
from typeid.errors import TypeIDException

PREFIXES: Final = {
    "tenant": "ten",
    "member": "mem",
    "key": "key",
    "project": "prj",
    "trigger": "trg",
    "thread": "thr",
    "worker": "wkr",
    "session": "ses",
    "event": "evt",
    "note": "nte",
    "revision": "rev",
    "proposal": "prp",
    "dream": "drm",
    "result": "res",
    "analysis": "ana",
    "incident": "inc",
    "telling": "tel",
    "audit": "aud",
    "invitation": "inv",
    "endpoint": "whk",
    "rule": "rul",
    "report": "rpt",
    "message": "msg",
    "comment": "cmt",
    "finding": "fnd",
    "gardening": "grd",
    "draft": "dft",
    "filter": "flt",
}
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = [first + second for first in _LETTERS for second in _LETTERS]
_PLACES: Final = range(120, -1, -10)
GIVEN = re.compile(r"^(trg|thr|wkr)_[a-z0-9][a-z0-9_.-]{0,95}$")


class InvalidId(ValueError):
    """The given id does not follow the grammar; the message says what does."""


def mint(kind: str) -> str:
    """A new public id of `kind`, e.g. `evt_01kb…`: 30 characters, increasing with time in one process.

    Written here and not by the typeid package, which takes many times as long for the same letters.
    """
    # 130 bits of base32: thirteen pairs of letters, looked up by ten bits each.
    bits = uuid_utils.uuid7().int
    return "".join((PREFIXES[kind], "_", *[_PAIRS[bits >> place & 1023] for place in _PLACES]))


def new_key() -> str:
    """A new internal primary key (UUIDv7 as text). It never leaves the server."""
    return str(uuid_utils.uuid7())


def kind_of(public_id: str) -> str | None:
    """The kind an id's prefix names, or None where the prefix is not ours."""
    prefix = public_id.split("_", 1)[0]
    return next((kind for kind, known in PREFIXES.items() if known == prefix), None)


def is_typeid(public_id: str) -> bool:
    """True where the text parses as a TypeID, ours or not."""
    try:
        TypeID.from_string(public_id)
    except (TypeIDException, ValueError):
        return False
    return True


def check_given(public_id: str) -> str:
    """The id a caller chose, or InvalidId. A TypeID is refused: minted and given ids must never meet."""
    if not GIVEN.fullmatch(public_id):
        raise InvalidId("A given id is trg_, thr_ or wkr_ and up to 96 of a-z 0-9 _ . -, e.g. thr_pr_412.")
    if is_typeid(public_id):
        raise InvalidId("This id has the form of a minted one. Choose another, e.g. thr_pr_412.")
    return public_id
