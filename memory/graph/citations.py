"""What a report rests on: the ids its worker names, and those that stand in its text."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from memory.graph import kinds
from memory.graph.models import Citation, Worker
from memory.graph.refusals import Invalid, UnknownCitation
from memory.tenants.models import Tenant

MOST: Final = 500
_ID = re.compile(r"(?<![a-z0-9_])(?:trg|thr|wkr|evt|ses)_[a-z0-9][a-z0-9_.-]{0,95}")


def given(value: object) -> list[str]:
    """The ids of a `cites` field, each once. Raises Invalid."""
    if not isinstance(value, list) or len(value) > MOST or not all(isinstance(one, str) for one in value):
        raise Invalid("invalid_field", f"cites is a list of up to {MOST} ids.", field="cites")
    return list(dict.fromkeys(value))


def require(tenant: Tenant, cited: Iterable[str]) -> None:
    """Raises UnknownCitation for the first id that is nobody's in this tenant."""
    for public_id in cited:
        if not _ID.fullmatch(public_id) or kinds.find(tenant, public_id) is None:
            raise UnknownCitation(public_id)


def in_text(tenant: Tenant, text: str) -> list[str]:
    """The ids that stand in a text and exist. A dot or dash behind one may be the sentence's."""
    found: dict[str, None] = {}
    for match in _ID.finditer(text):
        if len(found) >= MOST:
            break
        spellings = dict.fromkeys((match[0], match[0].rstrip(".-_")))
        known = next((one for one in spellings if kinds.find(tenant, one) is not None), None)
        if known:
            found[known] = None
    return list(found)


def replace(worker: Worker, *, given: Sequence[str] | None, text: str | None) -> None:
    """Set what the worker cites: the given ids, and those of its report; None leaves that half as it was."""
    tenant = Tenant(pk=worker.tenant_id)
    old = _by_origin(worker)
    named = list(old["given"]) if given is None else list(given)
    written = old["text"] if text is None else in_text(tenant, text)
    require(tenant, given or ())
    Citation.objects.filter(worker=worker).delete()
    rows = [(one, "given") for one in named]
    rows += [(one, "text") for one in written if one not in named and one != worker.public_id]
    Citation.objects.bulk_create(
        Citation(worker=worker, tenant_id=worker.tenant_id, cited=cited, position=place, origin=origin)
        for place, (cited, origin) in enumerate(rows)
    )


def _by_origin(worker: Worker) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"given": [], "text": []}
    for cited, origin in worker.citations.order_by("position").values_list("cited", "origin"):
        found[origin].append(cited)
    return found


def of(worker: Worker) -> list[str]:
    """The ids a worker cites, in its order."""
    return list(worker.citations.order_by("position").values_list("cited", flat=True))
