"""What people say about a proposal, and whose it is to look after."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory import redact
from memory.notes import news, reach
from memory.notes.models import Comment, Note, Proposal
from memory.tenants import access, audit
from memory.tenants.access import WRITERS, Actor
from memory.tenants.models import Member

MAX_COMMENT: Final = 2_000
# Beyond that a discussion belongs into a chat; the page shows the latest.
MOST_SHOWN: Final = 200


class NoWords(ValueError):
    """A comment says something."""


class NotTheirs(ValueError):
    """The proposal can't be given to this person; the message says why."""


@dataclass(frozen=True)
class Said:
    """A comment as a page shows it. `is_earlier`: it was said about a text that a newer proposal replaced."""

    comment: Comment
    is_earlier: bool
    is_removable: bool


def comment(proposal: Proposal, text: str, *, by: Actor) -> Comment:
    """Say something about a proposal. Whom it concerns is told. Raises Refused, NoWords."""
    access.require(by, "note.comment")
    said = redact.clean_text(text.replace("\r\n", "\n").strip()).value[:MAX_COMMENT]
    if not said:
        raise NoWords(gettext("Write something first."))
    if by.member_pk is None or by.kind != "member":
        raise access.Refused("note.comment")
    with transaction.atomic():
        made = Comment.objects.create(
            tenant_id=proposal.tenant_id, proposal=proposal, member_id=by.member_pk, text=said
        )
        audit.record(by, "note.comment", proposal.public_id, after=made.public_id)
        news.tell(str(proposal.tenant_id), "comment", str(made.pk))
    return made


def remove(said: Comment, *, by: Actor) -> None:
    """Take a comment back: its words go. Its writer may, and an admin. Raises Refused."""
    if str(said.member_id) != by.member_pk:
        access.require(by, "member.manage")
    with transaction.atomic():
        if Comment.objects.filter(pk=said.pk, removed_at=None).update(text="", removed_at=timezone.now()):
            audit.record(by, "note.uncomment", said.proposal.public_id, before=said.public_id)


def about(proposal: Proposal) -> QuerySet[Comment]:
    """What was said about a proposal, and about those that it replaced since the last decision, in order."""
    same = Q(proposal__note=proposal.note_id, proposal__author_kind=proposal.author_kind)
    decided = Proposal.objects.filter(
        note=proposal.note_id, author_kind=proposal.author_kind, created_at__lt=proposal.created_at
    ).filter(state__in=("approved", "rejected"))
    since = decided.order_by("-created_at").values_list("created_at", flat=True).first()
    earlier = same & Q(proposal__state="superseded", proposal__created_at__lt=proposal.created_at)
    if since is not None:
        earlier &= Q(proposal__created_at__gt=since)
    found = Comment.objects.filter(Q(proposal=proposal) | earlier)
    return found.select_related("member__user", "proposal").order_by("created_at", "pk")


def shown(proposal: Proposal, *, by: Actor) -> list[Said]:
    """The same for a page, the latest `MOST_SHOWN`."""
    rows = list(about(proposal).reverse()[:MOST_SHOWN])[::-1]
    return [
        Said(one, one.proposal_id != proposal.pk, str(one.member_id) == by.member_pk or by.may("member.manage"))
        for one in rows
    ]


def candidates(note: Note) -> list[Member]:
    """To whom a proposal for this note can be given: who may work on it, those who may decide first."""
    rows = Member.objects.current().filter(tenant_id=note.tenant_id, role__in=WRITERS, user__is_active=True)
    if note.member_id is not None:
        rows = rows.filter(pk=note.member_id)
    people = list(rows.select_related("user").order_by("handle"))
    return sorted(people, key=lambda one: one.role not in access.REVIEWERS)


def assign(proposal: Proposal, handle: str, *, by: Actor) -> None:
    """Give a proposal to a member, or with "" to nobody. The member is told. Raises Refused, NotTheirs."""
    access.require(by, "note.assign")
    if handle:
        whose = next((one for one in candidates(proposal.note) if one.handle == handle), None)
        if whose is None or not reach.proposals(str(whose.pk)).filter(pk=proposal.pk).exists():
            raise NotTheirs(gettext("Choose somebody of the team who may work on this note."))
    else:
        whose = None
    with transaction.atomic():
        rows = Proposal.objects.open().filter(pk=proposal.pk).exclude(assigned_to=whose)
        if whose is None:
            rows = Proposal.objects.open().filter(pk=proposal.pk, assigned_to__isnull=False)
        before = proposal.assigned_to.handle if proposal.assigned_to else ""
        if not rows.update(assigned_to=whose, assigned_by=by.label[:200], assigned_at=timezone.now()):
            return
        audit.record(by, "note.assign", proposal.public_id, before=before, after=handle)
        if whose is not None and str(whose.pk) != by.member_pk:
            news.tell(str(proposal.tenant_id), "assigned", str(proposal.pk))


def given_to(member_pk: str | None) -> QuerySet[Proposal]:
    """The open proposals that are this member's to look after."""
    return reach.proposals(member_pk).open().filter(Q(assigned_to_id=member_pk), assigned_to__isnull=False)
