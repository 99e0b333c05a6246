"""A team with one of everything in a project that only Mia sees, and the same in one that is open."""

import hashlib
from dataclasses import dataclass
from typing import Any

from cache_admin.models import Analysis, Entry, Incident, Pair
from memory.events import limits
from memory.events.models import Project, ProjectRoot
from memory.graph import workers
from memory.graph.record import Incoming, record_trigger
from memory.graph.workers import Said
from memory.tenants import rls
from memory.tenants.access import command_actor
from memory.tenants.models import Member, Tenant
from tests.cache import made as made_cache
from tests.pages import made

# In the words of each thing of the project, and in nothing else: where this is read, it leaked.
WORD = "zanzibar"


@dataclass(frozen=True)
class World:
    """The project, its session and event, and the ids of all that is in it, by what `tests/test_urls.py` calls them."""

    project: Project
    session: Any
    event: Any
    note: Any
    things: dict[str, str]


def project_at(tenant: Tenant, slug: str) -> Project:
    """A project known by the remote github.com/acme/SLUG and by the folder /src/SLUG."""
    project = made.project(tenant, slug, place=f"/src/{slug}")
    with rls.tenant_scope(str(tenant.pk)):
        ProjectRoot.objects.create(tenant=tenant, project=project, kind="remote", place=f"github.com/acme/{slug}")
    return project


def limit(project: Project, *members: Member, keys: tuple[Any, ...] = ()) -> limits.Change:
    with rls.tenant_scope(str(project.tenant_id)):
        return limits.limit(project, members, named_keys=keys, by=command_actor(project.tenant, "tests"))


def world(tenant: Tenant, project: Project, by: Member, *, word: str = WORD) -> World:
    """One of everything in the project, written by a member who sees it."""
    slug, text = project.slug, f"---\ntitle: {word} {project.slug}\n---\n# {word}\n\n- {word} is tried three times\n"
    session = made.session(tenant, f"s-{slug}", project=project, last_prompt=f"{word} words", cwd=f"/src/{slug}")
    event = made.event(session, body=f'{{"prompt": "{word} words"}}', summary=f"{word} words")
    note = made.note(tenant, by, path=f"project/{slug}/{word}.md", text=text)
    proposal = made.proposal(tenant, path=f"project/{slug}/more.md", text=text, rests_on=(event,))
    made.telling(event, note, why=word)
    graph = chain(tenant, f"github:acme/{slug}#1", session=session.public_id, word=word)
    shown = cached(tenant, by, project, word=word)
    things = {
        "session": session.public_id,
        "event": event.public_id,
        "note": note.public_id,
        "path": f"team/{note.path}",
        "address": f"team/{note.path}",
        "proposal": proposal.public_id,
        "shown": made.shown(proposal),
        "project": project.public_id,
        "finding": made.finding(note, f"{word}: too long").public_id,
        "comment": made.comment(proposal, by, f"{word}?").public_id,
        "report": made.report(note, by, f"{word} is wrong").public_id,
        "rule": made.rule(tenant, admin_of(tenant), f"project/{slug}/{word}/**").public_id,
        **graph,
        **shown,
    }
    return World(project, session, event, note, things)


def admin_of(tenant: Tenant) -> Member:
    with rls.tenant_scope(str(tenant.pk)):
        return Member.objects.select_related("tenant", "user").get(tenant=tenant, role="owner")


def chain(tenant: Tenant, key: str, *, session: str, word: str) -> dict[str, str]:
    """A thread of a repository with a trigger, and a worker that is the session."""
    with rls.tenant_scope(str(tenant.pk)):
        payload = f'{{"a": "{word}"}}'.encode()
        said = Incoming(source="made", external_id=key, thread_key=key, thread_title=f"{word} thread", payload=payload,
                        summary=f"{word} came in")  # fmt: skip
        stored = record_trigger(tenant, said).trigger
        report = workers.packed_report(f"{word} rests on {stored.public_id}")
        task = Said(task=f"{word} task", report=report, session_id=session)
        worker, _ = workers.start(tenant, None, stored.thread, task, by="tests")
    return {"trigger": stored.public_id, "thread": stored.thread.public_id, "worker": worker.public_id}


def cached(tenant: Tenant, member: Member, project: Project, *, word: str) -> dict[str, str]:
    """A stored answer, an analysis, an incident and a pair of questions of the project."""
    kept = made_cache.result(tenant, member, f"{word} output\n", project_pk=str(project.pk))
    with rls.tenant_scope(str(tenant.pk)):
        key = hashlib.sha256(f"{word} {project.slug}".encode()).digest()
        Entry.objects.create(
            tenant=tenant, key=key, identity=key, document="{}", tool=word, scope="team", result=kept, project=project
        )
        analysis = Analysis.objects.create(
            tenant=tenant, content_hash=f"sha256:{word}{project.slug}", analysis_type=word, version="1",
            content={"says": word}, project=project,
        )  # fmt: skip
        incident = Incident.objects.create(tenant=tenant, kind="report", tool=word, project=project)
        pair = Pair.objects.create(tenant=tenant, tool=word, asked=word, matched="b", score=0.9, project=project)
    return {
        "result": kept.public_id,
        "cache_key": key.hex(),
        "analysis": analysis.public_id,
        "incident": incident.public_id,
        "pair": str(pair.pk),
    }
