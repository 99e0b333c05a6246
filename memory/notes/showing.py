"""What several views answer alike: the page of one proposal with its evidence, and a folder of notes."""

from collections.abc import Iterable

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext

from memory.notes import browsing, discussing, findings, reading, review, rules, shown, undoing
from memory.notes.browsing import Level
from memory.notes.models import Note, Proposal
from memory.tenants import pages
from memory.tenants.access import TenantRequest
from memory.tenants.models import Member


def the_proposal(request: TenantRequest, public_id: str) -> Proposal:
    """The proposal, where it is this team's and not another member's own."""
    with_it = ("note", "note__member", "note__project", "base", "decided_by", "seen_by", "assigned_to")
    found = request.tenant.proposals.select_related(*with_it)
    proposal = get_object_or_404(found, public_id=public_id)
    if proposal.note.member_id and str(proposal.note.member_id) != request.actor.member_pk:
        raise Http404
    return proposal


def show_proposal(request: TenantRequest, seen: Proposal, *, problem: str = "", status: int = 200) -> HttpResponse:
    """One proposal: the change, the evidence, and the way to the next. An edited one as it was let in."""
    place = reading.place_of(seen, by=request.actor)
    seen.title = reading.title(seen.text, seen.note)  # type: ignore[attr-defined]
    revision = shown.let_in(seen)
    is_edited = shown.is_edited(seen, revision)
    text = revision.text if revision and is_edited else seen.text
    deletes = seen.operation == "delete" and not is_edited
    base = seen.base.text if seen.base else ""
    context = {
        "proposal": seen,
        "made_from": reading.made_from(seen),
        "revision": revision,
        "is_edited": is_edited,
        "is_closed": seen.state == "rejected" and seen.note.tombstones.filter(line__isnull=True).exists(),
        "deletes": deletes,
        "successor": reading.successor(seen),
        "decides": review.may_decide(request.actor, seen.note, seen.target),
        "undoes": undoing.may_undo(seen, by=request.actor),
        "verdict": rules.verdict(seen.note, seen.target),
        "is_first": seen.state == "open" and str(seen.seen_by_id) == request.actor.member_pk,
        "change": shown.between(base, "" if deletes else text),
        "evidence": shown.evidence(seen, text=text, base="" if deletes else base),
        "position": place.position,
        "total": place.total,
        "previous": place.previous,
        "next": place.next,
        "others": reading.titled(reading.queue(request.actor).filter(note=seen.note_id).exclude(pk=seen.pk)),
        "comments": discussing.shown(seen, by=request.actor),
        "people": discussing.candidates(seen.note) if seen.state == "open" and request.actor.may("note.assign") else [],
        "problem": problem,
    }
    return pages.answer(request, "review/proposal.html", "review/_proposal.html", context, status=status)


def proposed_instead(request: TenantRequest, draft: review.Draft) -> HttpResponse:
    """What one person may not do alone here waits as a proposal, and that is what the reader sees next."""
    made = review.propose(request.tenant, draft, by=request.actor)
    messages.info(request, gettext("By the rule of this path others decide too, so this waits as a proposal."))
    return redirect("proposal", request.tenant.slug, made.public_id) if made else redirect("notes", request.tenant.slug)


def decided(request: TenantRequest, public_id: str) -> HttpResponse:
    """After a decision: the piece, or the page for a browser without JavaScript."""
    if request.htmx:
        return show_proposal(request, the_proposal(request, public_id))
    return redirect("proposal", request.tenant.slug, public_id)


def conflict(request: TenantRequest, public_id: str, exc: Exception) -> HttpResponse:
    """A decision that came too late, said where the reviewer looks."""
    now = the_proposal(request, public_id)
    if isinstance(exc, review.AlreadyDecided):
        problem = gettext("Someone decided this before you. Nothing was changed by your click.")
    elif now.state == "superseded":
        problem = gettext("A newer proposal took the place of this one meanwhile. Nothing was changed by your click.")
    else:
        problem = gettext(
            "The text changed since you opened this page. This is how it reads now; look again, then decide."
        )
    return show_proposal(request, now, problem=problem, status=409)


def one_folder(request: TenantRequest, level: Level, folder: str, *, owner: Member | None = None) -> HttpResponse:
    """What stands in a folder: a piece for the tree it is opened in, else a page. `owner`: of whose own space."""
    more = f"?{pages.query(folder=folder, after=level.after)}" if level.after else ""
    context = {
        "folder": folder,
        "above": browsing.above(folder),
        "folders": level.folders,
        "notes": labelled(request, level.notes),
        "more": more,
        "top": request.path,
        "owner": owner,
        "now": timezone.now(),
    }
    return pages.answer(request, "notes/folder.html", "notes/_level.html", context)


def labelled(request: TenantRequest, rows: Iterable[Note]) -> list[Note]:
    """The notes, each with the labels that the gardener gave it."""
    notes = list(rows)
    labels = findings.labels(request.actor, notes)
    for one in notes:
        kinds = dict.fromkeys(row.kind for row in labels.get(str(one.pk), ()))
        one.labels = [gettext(findings.LABELS[kind][0]) for kind in kinds]  # type: ignore[attr-defined]
    return notes
