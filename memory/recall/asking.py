"""What a search is asked for, read from the query of a request."""

from collections.abc import Mapping
from typing import Final

from memory.events.models import Project
from memory.graph.models import Thread
from memory.problems import Problem, not_found
from memory.recall.everywhere import Asked
from memory.recall.kinds import KINDS
from memory.recall.looks import reach_of

PARAMETERS: Final = ("q", "kinds", "project", "thread", "follow")


def read(query: Mapping[str, str], *, tenant_pk: str, member_pk: str | None) -> Asked:
    """Raises Problem 400 for what can not be meant, 404 for a project or thread that is not there."""
    if "q" not in query:
        raise Problem(400, "missing_parameter", "Say what to look for: ?q=WORDS.")
    follow = query.get("follow", "0")
    if follow not in ("0", "1"):
        raise Problem(400, "invalid_follow", "follow is 0 or 1.")
    project = _project(query.get("project"))
    reach = reach_of(
        tenant_pk,
        kinds=_kinds(query.get("kinds")),
        member_pk=member_pk,
        project=project,
        thread_pk=_thread(query.get("thread")),
    )
    return Asked(query["q"], reach, project, member_pk, follow == "1")


def _kinds(text: str | None) -> tuple[str, ...]:
    if text is None:
        return KINDS
    asked = [kind.strip().lower() for kind in text.split(",") if kind.strip()]
    known = {**{kind: kind for kind in KINDS}, **{f"{kind}s": kind for kind in KINDS}, "report": "worker"}
    known["reports"] = "worker"
    if not asked or any(kind not in known for kind in asked):
        raise Problem(400, "invalid_kinds", f"kinds are of {', '.join(KINDS)}, with commas between.")
    return tuple(dict.fromkeys(known[kind] for kind in asked))


def _project(name: str | None) -> Project | None:
    if name is None:
        return None
    clean = name.replace("\0", "\ufffd")
    found = Project.objects.filter(public_id=clean).first() or Project.objects.filter(slug=clean).first()
    if found is None:
        raise not_found(name)
    return found


def _thread(public_id: str | None) -> str | None:
    if public_id is None:
        return None
    clean = public_id.replace("\0", "\ufffd")
    found = Thread.objects.filter(public_id=clean, deleted_at__isnull=True).first()
    if found is None:
        raise not_found(public_id)
    return str(found.pk)
