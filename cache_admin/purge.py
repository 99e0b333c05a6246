"""Which stored answers a person wants gone, and how many that are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext, gettext_noop

from cache_admin import invalidate
from cache_admin.invalidate import Doomed
from memory.problems import Problem
from memory.tenants.access import Actor
from memory.tenants.models import AgentKey, Tenant

KINDS: Final = ("tool", "writer", "project", "content_hash", "key", "all")
_WORDS: Final = {
    "tool": gettext_noop("everything stored for the tool {}"),
    "writer": gettext_noop("everything that {} stored"),
    "project": gettext_noop("everything stored in the project {}"),
    "content_hash": gettext_noop("everything stored for the content {}"),
    "key": gettext_noop("the entry under the key {}"),
    "all": gettext_noop("every stored answer of the team, by a new salt"),
}


@dataclass(frozen=True)
class Purge:
    """One thing to drop, in words and as it is carried out; `doomed` is None where nothing fit was named."""

    kind: str = ""
    value: str = ""
    words: str = ""
    doomed: Doomed | None = None
    entries: int = 0
    analyses: int = 0
    problem: str = ""


def of(tenant: Tenant, said: Mapping[str, str], *, by: Actor) -> Purge:
    """What is asked to go, counted. Raises Refused.

    One kind at a time: of two, nobody would know whether both must fit.
    """
    given = [(kind, said[kind].replace("\0", "").strip()[:200]) for kind in KINDS if said.get(kind, "").strip()]
    if not given:
        return Purge()
    if len(given) > 1:
        return Purge(problem=gettext("Choose one: a tool, a writer, a project, a content hash or all."))
    [(kind, value)] = given
    try:
        doomed, name = _doomed(tenant, kind, value)
        entries, analyses = invalidate.would_go(tenant, doomed, by=by)
    except Problem:
        return Purge(
            kind, value, problem=gettext("Nothing has the name %(name)s. Choose from the lists.") % {"name": value}
        )
    return Purge(kind, value, gettext(_WORDS[kind]).format(name), doomed, entries, analyses)


def _doomed(tenant: Tenant, kind: str, value: str) -> tuple[Doomed, str]:
    """What to drop, and what it is called. Raises Problem 404."""
    if kind == "project":
        project = tenant.projects.current().filter(public_id=value).first()
        if project is None:
            raise Problem(404, "not_found", gettext("Unknown project."))
        return Doomed(project_pk=str(project.pk), whole_project=True), project.name
    if kind == "writer":
        member = tenant.members.filter(public_id=value).first()
        key = None if member else tenant.keys.filter(public_id=value).select_related("member").first()
        name = member.handle if member else _key_words(key) if key else value
        return Doomed(writer=value), name
    if kind == "key" and (len(value) != 64 or any(one not in "0123456789abcdef" for one in value)):
        raise Problem(404, "not_found", gettext("Unknown key."))
    if kind == "all":
        return Doomed(everything=True), ""
    return (
        (Doomed(tool=value), value)
        if kind == "tool"
        else ((Doomed(content_hash=value), value) if kind == "content_hash" else (Doomed(key=value), value))
    )


def _key_words(key: AgentKey) -> str:
    return gettext("the key %(name)s of %(member)s") % {"name": key.name, "member": key.member.handle}
