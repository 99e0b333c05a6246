"""What pages show, made in one line each: sessions, events, notes, proposals, tellings, dream runs."""

from typing import Any

from django.utils import timezone

from dream.models import Change, Run, Window
from memory import ids
from memory.events.models import Event, Project, ProjectRoot, Session
from memory.notes import discussing, drafts, reporting, review, rules
from memory.notes.models import Autosaved, Comment, Finding, Note, NoteReport, Proposal, Revision, Rule
from memory.notes.publish import digest
from memory.notes.review import Draft, Evidence
from memory.recall.models import Telling, ToldNote
from memory.tenants import filters, rls
from memory.tenants.access import Actor, dream_actor, member_actor
from memory.tenants.models import Member, Tenant

PATH = "project/payments/retries.md"
TEXT = (
    "---\ntitle: Retries\ndescription: How payments are tried again\n---\n"
    "# Retries\n\n- Try three times\n- Wait a second\n"
)


def project(tenant: Tenant, slug: str = "payments", *, name: str = "", place: str = "") -> Project:
    with rls.tenant_scope(str(tenant.pk)):
        made = Project.objects.create(tenant=tenant, slug=slug, name=name or slug)
        if place:
            ProjectRoot.objects.create(tenant=tenant, project=made, kind="root", place=place)
    return made


def session(tenant: Tenant, key: str = "one", **more: Any) -> Session:
    now = timezone.now()
    given = {"client": "claude_code", "first_received_at": now, "last_received_at": now, **more}
    with rls.tenant_scope(str(tenant.pk)):
        return Session.objects.create(tenant=tenant, key=key, **given)


def event(of: Session, seq: int = 1, **more: Any) -> Event:
    body = more.pop("body", "{}")
    given = {"name": "UserPromptSubmit", "kind": "prompt", "received_at": timezone.now(), "client": of.client, **more}
    with rls.tenant_scope(str(of.tenant_id)):
        made = Event.objects.create(
            tenant_id=of.tenant_id,
            session=of,
            seq=seq,
            key=ids.mint("event"),
            sha256=digest(body),
            size=len(body.encode()),
            body=body,
            **given,
        )
        Session.objects.filter(pk=of.pk, last_seq__lt=seq).update(last_seq=seq)
    return made


def changed(of: Session, **fields: Any) -> None:
    with rls.tenant_scope(str(of.tenant_id)):
        Session.objects.filter(pk=of.pk).update(**fields)


def note(tenant: Tenant, by: Member, *, path: str = PATH, text: str = TEXT, is_private: bool = False) -> Note:
    """A note that its member wrote: the team's, or their own."""
    with rls.tenant_scope(str(tenant.pk)):
        member = by if is_private else None
        return review.write(tenant, path=path, text=text, by=member_actor(by), member=member, base=None).note


def rule(tenant: Tenant, by: Member, glob: str = "general/acme-only/**", *, mode: str = "review") -> Rule:
    with rls.tenant_scope(str(tenant.pk)):
        return rules.save(tenant, rules.Wanted(glob, mode), by=member_actor(by))


def saved_filter(tenant: Tenant, by: Member, *, page: str = "threads", query: str = "q=acme-only", **said: Any) -> Any:
    """A filter that a member saved."""
    given = {"name": "acme-only filter", "is_shared": False, **said}
    with rls.tenant_scope(str(tenant.pk)):
        return filters.save(tenant, filters.place(page), query, by=member_actor(by), **given)


def report(of: Note, by: Member, reason: str = "acme-only: it is wrong") -> NoteReport:
    with rls.tenant_scope(str(of.tenant_id)):
        return reporting.report(of, reason=reason, by=member_actor(by))[0]


def draft(by: Member, text: str, *, of: Note | None = None) -> Autosaved:
    with rls.tenant_scope(str(by.tenant_id)):
        return drafts.keep(drafts.Typed(text), note=of, seen=drafts.NONE, by=member_actor(by)).draft


def rewritten(of: Note, by: Member, text: str) -> Revision:
    with rls.tenant_scope(str(of.tenant_id)):
        current = Note.objects.get(pk=of.pk).current
        number = current.number if current else None
        return review.write(by.tenant, path=of.path, text=text, by=member_actor(by), member=of.member, base=number)


def dreamer(tenant: Tenant, run_id: str = "drm_1") -> Actor:
    return dream_actor(tenant, run_id)


def proposal(
    tenant: Tenant,
    *,
    path: str = PATH,
    text: str = TEXT,
    by: Actor | None = None,
    rests_on: tuple[Event, ...] = (),
    reason: str = "",
    member: Member | None = None,
    operation: str = "write",
) -> Proposal:
    """What a dream proposes, every line of it resting on the events."""
    lines = [line for line in text.split("\n") if line.startswith("- ")]
    evidence = tuple(Evidence(line, str(seen.pk), 1) for seen in rests_on for line in lines)
    draft = Draft(path, text, evidence, reason=reason, member=member, operation=operation)
    with rls.tenant_scope(str(tenant.pk)):
        made = review.propose(tenant, draft, by=by or dreamer(tenant))
        assert made is not None
        return Proposal.objects.select_related("note").get(pk=made.pk)


def shown(of: Proposal) -> str:
    """What a page that shows the proposal sends back with the decision."""
    return digest(of.text).hex()


def approved(of: Proposal, by: Member) -> Revision:
    with rls.tenant_scope(str(of.tenant_id)):
        return review.approve(of, by=member_actor(by), shown=shown(of))


def telling(of: Event, told: Note, *, why: str = "It fits", member: Member | None = None) -> Telling:
    with rls.tenant_scope(str(of.tenant_id)):
        made = Telling.objects.create(
            tenant_id=of.tenant_id, session=of.session, event=of, member=member, kind="start", text="told"
        )
        current = Note.objects.get(pk=told.pk).current
        ToldNote.objects.create(tenant_id=of.tenant_id, telling=made, note=told, revision=current, position=0, why=why)
    return made


def run(
    tenant: Tenant, *, proposals: tuple[Proposal, ...] = (), sessions: tuple[Session, ...] = (), **more: Any
) -> Run:
    now = timezone.now()
    given = {"state": "succeeded", "asked_by": "alice", "started_at": now, "finished_at": now, **more}
    with rls.tenant_scope(str(tenant.pk)):
        made = Run.objects.create(tenant=tenant, **given)
        for change in proposals:
            Change.objects.create(tenant=tenant, run=made, proposal=change)
        for read in sessions:
            Window.objects.create(tenant=tenant, run=made, session=read, from_seq=1, to_seq=3, outcome="done")
    return made


def invitation(tenant: Any, by: Any) -> Any:
    """An open invitation."""
    from memory.tenants import invitations

    with rls.tenant_scope(str(tenant.pk)):
        return invitations.invite(tenant, "nina@acme-only.test", role="member", by=member_actor(by))[0]


def comment(of: Proposal, by: Member, text: str = "acme-only: is it so?") -> Comment:
    with rls.tenant_scope(str(of.tenant_id)):
        return discussing.comment(of, text, by=member_actor(by))


def finding(of: Note, words: str, *, kind: str = "too_long", other: Note | None = None) -> Finding:
    with rls.tenant_scope(str(of.tenant_id)):
        return Finding.objects.create(
            tenant_id=of.tenant_id, kind=kind, note=of, other=other, words=words, fingerprint=ids.new_key()
        )


def message(tenant: Tenant, *, state: str = "failed", about: str = "acme-only mail") -> Any:
    """A mail that could not be sent."""
    from memory.tenants import vault
    from memory.tenants.models import Message

    sealed = vault.sealed('{"to": "nina@acme-only.test", "subject": "Hello", "text": "Hello"}')
    with rls.tenant_scope(str(tenant.pk)):
        return Message.objects.create(
            tenant=tenant, channel="mail", occasion=ids.new_key(), recipient="nina@acme-only.test", about=about,
            sealed=sealed, state=state, error="refused",
        )  # fmt: skip
