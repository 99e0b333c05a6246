"""Pages of notes, and of the proposals that become notes."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory.notes import browsing, findings, links, private, reach, reading, review, rules, shown
from memory.notes.markdown import render as to_html
from memory.notes.models import Note, Proposal, Revision
from memory.notes.preview import preview
from memory.notes.showing import (
    conflict,
    decided,
    labelled,
    one_folder,
    proposed_instead,
    show_proposal,
    the_proposal,
)
from memory.sentences import sentence
from memory.tenants import pages
from memory.tenants.access import Refused, TenantRequest, needs

GONE = Q(current__isnull=False, deleted_at__isnull=False)
TOLD_SHOWN = 5
TOLD_PAGE = 50


def the_note(request: TenantRequest, public_id: str) -> Note:
    """The live note, where it is the team's or the reader's own."""
    return get_object_or_404(reading.visible(request.actor), public_id=public_id)


def to_read(request: TenantRequest, public_id: str, page: str) -> Note:
    """The same, and by the team's rule another member's own, which is audited."""
    found = private.note(request.tenant, public_id.replace("\0", ""), by=request.actor, page=page)
    if found is None:
        raise Http404
    return found


def number(request: HttpRequest, name: str) -> int:
    """A revision number from the address or the form; anything else is 404."""
    value = request.POST.get(name) or request.GET.get(name) or ""
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise Http404
    return int(value)


@require_GET
@needs("note.read")
def proposal(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    return show_proposal(request, the_proposal(request, public_id))


# Who may decide depends on the space too: in their own, members decide, whatever their role. The verb checks both.
@require_POST
@needs("note.propose")
def proposal_approve(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    try:
        review.approve(the_proposal(request, public_id), by=request.actor, shown=request.POST.get("shown", ""))
    except (review.AlreadyDecided, review.StaleProposal) as exc:
        return conflict(request, public_id, exc)
    return decided(request, public_id)


@require_POST
@needs("note.propose")
def proposal_reject(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    reason = request.POST.get("reason", "").strip()
    rejected = the_proposal(request, public_id)
    if not reason and review.may_decide(request.actor, rejected.note):
        return show_proposal(
            request, rejected, problem=gettext("Say why: the next dream is told the reason."), status=422
        )
    try:
        review.reject(rejected, by=request.actor, reason=reason, close_path=bool(request.POST.get("close_path")))
    except (review.AlreadyDecided, review.StaleProposal) as exc:
        return conflict(request, public_id, exc)
    return decided(request, public_id)


@require_http_methods(["GET", "POST"])
@needs("note.propose")
def proposal_edit(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Change the text, then approve it."""
    edited = the_proposal(request, public_id)
    if not review.may_decide(request.actor, edited.note):
        raise Refused("note.approve")
    # A move has no words of its own: what is typed would be lost.
    if edited.operation == "move" or (request.method == "GET" and edited.state != "open"):
        return redirect("proposal", slug, public_id)
    text = request.POST.get("text", edited.text).replace("\r\n", "\n")
    if request.method == "GET" or "preview" in request.POST:
        return edit_page(request, edited, text)
    try:
        review.edit_and_approve(edited, text=text, by=request.actor, shown=request.POST.get("shown", ""))
    except review.InvalidNote as exc:
        errors = {"text": [reading.plain_words(problem.detail) for problem in exc.problems]}
        return edit_page(request, edited, text, errors=errors, status=422)
    except (review.AlreadyDecided, review.StaleProposal):
        problem = gettext(
            "Someone changed or decided this meanwhile. Your text is below: copy it, then open the proposal again."
        )
        return edit_page(request, edited, text, problem=problem, status=409)
    return redirect("proposal", slug, public_id)


def edit_page(
    request: TenantRequest,
    edited: Proposal,
    text: str,
    *,
    problem: str = "",
    errors: dict[str, list[str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    """A proposal's text, to be changed, beside how it would read. A note that is not there yet has only its path."""
    there = reading.visible(request.actor).filter(pk=edited.note_id).exists()
    how = preview(request.tenant, text, path=edited.note.path, member=edited.note.member, by=request.actor)
    context = {
        "proposal": edited,
        "text": text,
        "preview": how,
        "problem": problem,
        "errors": errors,
        "is_there": there,
    }
    return render(request, "review/edit.html", context, status=status)


@require_GET
@needs("note.read")
def notes(request: TenantRequest, slug: str) -> HttpResponse:
    """The tree of notes: whole, or a folder of it, or what holds the words asked for."""
    q, folder, after = (pages.asked(request, name) for name in ("q", "folder", "after"))
    if folder and not q:
        folder = folder.strip("/")
        return one_folder(request, browsing.level(request.actor, folder, after=after), folder)
    note_count = browsing.count(request.actor)
    context: dict[str, Any] = {
        "q": q,
        "saved": pages.saved(request, "notes"),
        "has_deleted": reach.notes(request.actor.member_pk).filter(GONE).exists(),
        "finding_count": findings.standing(request.actor).count(),
        "now": timezone.now(),
        "note_count": note_count,
        "are_many": note_count == browsing.MANY,
        "proposal_count": reading.waiting(request.actor).count(),
        "new_note_url": reverse("note_new", args=[slug]),
        "own_space": reverse("space", args=[slug, request.member.public_id]) if request.member else "",
    }
    if q:
        holding = browsing.holding(request.actor, q)
        context |= {"folders": browsing.tree(labelled(request, holding.notes)), "are_more": holding.are_more}
    elif note_count <= browsing.WHOLE:
        context["folders"] = browsing.tree(labelled(request, reading.visible(request.actor)))
    else:
        context["folders"] = browsing.level(request.actor, "").folders
    return pages.answer(request, "notes/tree.html", "notes/_tree.html", context)


@require_GET
@needs("note.read")
def note(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    return show_note(request, to_read(request, public_id, "note"))


def show_note(request: TenantRequest, read: Note, *, problem: str = "", status: int = 200) -> HttpResponse:
    """A note as it reads now or in an older revision, and where it comes from."""
    revision = read.current
    if "revision" in request.GET:
        revision = get_object_or_404(read.revisions.select_related("approved_by"), number=number(request, "revision"))
    if revision is None:
        raise Http404
    document = reading.document(revision.text)
    body = reading.below_title(document.body, read.current.title if read.current else "")
    linked = links.of_note(request.tenant, read, body, by=request.actor)
    context = {
        "note": read,
        "revision": revision,
        "note_html": to_html(body, link_for=linked.link_for, page_for=linked.page_for),
        "frontmatter": [
            (key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else value)
            for key, value in document.fields.items()
            if key not in ("title", "description")
        ],
        "sources": reading.evidence(revision.sources.all()),
        "told": reading.told(read),
        "told_sessions": reading.told_sessions(read, by=request.actor)[:TOLD_SHOWN],
        "proposals": reading.titled(reading.queue(request.actor).filter(note=read.pk)),
        "is_mine": is_mine(request, read),
        "is_locked": (verdict := rules.verdict(read)).mode == "locked",
        "locked_by": verdict.glob,
        "is_over": read.expires_at is not None and read.expires_at <= timezone.now(),
        "deletes": may_delete(request, read),
        "findings": [(one, gettext(findings.LABELS[one.kind][0])) for one in findings.about(read, by=request.actor)],
        "problem": problem,
    }
    return render(request, "notes/note.html", context, status=status)


@require_GET
@needs("note.read")
def note_told(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    """Every session that was told the note, whichever revision."""
    read = to_read(request, public_id, "told")
    name = f"told:{public_id}"
    after = pages.cursor_of(request, name)
    rows: list[Any] = list(reading.told_sessions(read, by=request.actor, after=after)[: TOLD_PAGE + 1])
    last = rows[TOLD_PAGE - 1] if len(rows) > TOLD_PAGE else None
    position = [last.last_told.isoformat(), str(last.pk)] if last else None
    context = {
        "note": read,
        "told": reading.told(read),
        "sessions": rows[:TOLD_PAGE],
        "next_url": pages.next_url(request, name, position),
    }
    return pages.answer(request, "notes/told.html", "notes/_told_rows.html", context, more="notes/_told_rows.html")


def in_history(request: TenantRequest, public_id: str, page: str) -> Note:
    """The note as `to_read` gives it, or one that was deleted: its history stays."""
    gone = reading.kept(request.actor).filter(public_id=public_id.replace("\0", ""), deleted_at__isnull=False).first()
    return gone or to_read(request, public_id, page)


@require_GET
@needs("note.read")
def note_deleted(request: TenantRequest, slug: str) -> HttpResponse:
    return render(request, "notes/deleted.html", {"notes": reading.deleted(request.actor)})


@require_GET
@needs("note.read")
def note_history(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    read = in_history(request, public_id, "history")
    revisions = shown.with_proposals(reading.history(read))
    return render(request, "notes/history.html", {"note": read, "revisions": revisions})


@require_GET
@needs("note.read")
def note_diff(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    read = in_history(request, public_id, "diff")
    revisions = list(reading.history(read))
    old, new = revision_of(revisions, number(request, "from")), revision_of(revisions, number(request, "to"))
    context = {
        "note": read,
        "old": old,
        "new": new,
        "change": shown.between(old.text, new.text),
        "revisions": revisions,
        "decides": review.may_decide(request.actor, read),
    }
    return render(request, "notes/diff.html", context)


def revision_of(revisions: list[Revision], asked: int) -> Revision:
    for revision in revisions:
        if revision.number == asked:
            return revision
    raise Http404


def is_mine(request: TenantRequest, seen: Note) -> bool:
    """True for the team's notes and one's own; false for those that a rule lets one read."""
    return seen.member_id is None or str(seen.member_id) == request.actor.member_pk


def may_delete(request: TenantRequest, seen: Note) -> bool:
    """True where the delete action is shown: for reviewers, and for members in their own space."""
    return is_mine(request, seen) and request.actor.may("note.propose" if seen.member_id else "note.delete")


# Whose note it is decides too: in their own space members delete, whatever their role. The verb checks both.
@require_POST
@needs("note.propose")
def note_delete(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    gone = the_note(request, public_id)
    reason = request.POST.get("reason", "").strip()
    if not reason and may_delete(request, gone):
        return show_note(
            request, gone, problem=gettext("Say why it is deleted: the history keeps the reason."), status=422
        )
    try:
        review.delete(gone, by=request.actor, reason=reason)
    except rules.NeedsTwo:
        draft = review.Draft(gone.path, "", reason=reason, member=gone.member, operation="delete")
        return proposed_instead(request, draft)
    messages.success(
        request,
        gettext("Deleted %(path)s. Agents are no longer told it; its history stays, under Deleted.")
        % {"path": gone.path},
    )
    return redirect("notes", slug)


@require_POST
@needs("note.propose")
def note_revert(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    read = get_object_or_404(reading.kept(request.actor), public_id=public_id)
    to = get_object_or_404(read.revisions.filter(blanked_at=None), number=number(request, "revision"))
    try:
        review.revert(read, to=to, by=request.actor)
    except rules.NeedsTwo:
        base = read.current.number if read.current and read.deleted_at is None else None
        why = sentence("Back to revision %(number)s.", number=to.number)
        return proposed_instead(request, review.Draft(read.path, to.text, reason=why, member=read.member, base=base))
    return redirect("note", slug, public_id)
