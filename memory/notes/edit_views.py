"""The editor of a note: its fields or its raw text, a preview, a draft kept while one types, and no lost update."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from memory.notes import drafts, editing, fields, reading, review, rules, shown
from memory.notes.frontmatter import InvalidFrontmatter, Problem
from memory.notes.models import Autosaved, Note
from memory.notes.paths import FAMILIES, InvalidPath
from memory.notes.preview import Preview, preview
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs

MODES = {"form": gettext_lazy("Fields"), "raw": gettext_lazy("Raw text")}


@require_http_methods(["GET", "POST"])
@needs("note.propose")
def note_edit(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    return editor(request, get_object_or_404(reading.visible(request.actor), public_id=public_id))


@require_http_methods(["GET", "POST"])
@needs("note.propose")
def note_new(request: TenantRequest, slug: str) -> HttpResponse:
    return editor(request, None)


@dataclass(frozen=True)
class Sheet:
    """What the editor shows: the words, how they are edited, and what they were begun from."""

    note: Note | None
    text: str
    mode: str = "form"
    path: str = ""
    is_private: bool = False
    message: str = ""
    base: int | None = None
    draft: Autosaved | None = None
    is_restored: bool = False
    seen: drafts.Seen = drafts.NONE
    # What was typed and no text can hold, as a description of a thousand words, and what stands against it.
    typed: fields.Fields | None = None
    problems: tuple[Problem, ...] = ()


def editor(request: TenantRequest, edited: Note | None) -> HttpResponse:
    """Whoever may approve publishes; others propose. Without JavaScript every button works by a form."""
    if edited:
        rules.require_open(edited)
    if request.method == "GET":
        return show(request, opened(request, edited))
    try:
        sheet = sent(request, edited)
    except InvalidFrontmatter:
        raise Http404 from None  # no editor of ours sends such a head
    if sheet.problems:
        return show(request, sheet, errors=errors_of(sheet, sheet.problems), status=422)
    if request.POST.get("switch"):
        return switched(request, sheet)
    return save(request, sheet)


def opened(request: TenantRequest, edited: Note | None) -> Sheet:
    """The note as it is, or the draft that the reader asks for or left last."""
    current = edited.current if edited else None
    mode = "raw" if request.GET.get("mode") == "raw" else "form"
    asked = request.GET.get("draft", "")
    draft = drafts.found(asked, note=edited, by=request.actor) if asked else None
    if asked and draft is None:
        raise Http404
    if draft is None and edited and "fresh" not in request.GET:
        draft = drafts.of(request.actor, edited).first()
    if draft is None:
        text = current.text if current else editing.EMPTY
        path, base = (edited.path if edited else ""), (current.number if current else None)
        return Sheet(edited, text, mode, path, is_private=request.GET.get("space") == "own", base=base)
    path = edited.path if edited else draft.path
    seen = drafts.Seen(draft.public_id, draft.version)
    return Sheet(edited, draft.text, mode, path, draft.is_private, draft.message, draft.base, draft, True, seen)


def sent(request: TenantRequest, edited: Note | None) -> Sheet:
    """What the form holds. Raises InvalidFrontmatter."""
    said = request.POST
    base = number(said.get("revision", ""))
    typed: fields.Fields | None = None
    problems: list[Problem] = []
    if "head" in said:
        head, body = fields.sent(said["head"]), fields.sent(said.get("body", ""))
        parts = {name: said[name] for name in fields.KNOWN if name in said}
        try:
            text = fields.write(head, body, parts)
        except InvalidFrontmatter as error:
            text = head + body
            typed, problems = fields.unwritten(head, body, parts)
            problems = problems or [Problem("invalid_frontmatter", "", str(error))]
    else:
        text = fields.sent(said.get("text", ""))
    begun = editing.revision(edited, base)
    text = fields.with_ends_of(begun.text if begun else "", text)
    mode = "form" if "head" in said else "raw"
    path = edited.path if edited else said.get("path", "")
    is_private = bool(edited.member_id) if edited else said.get("space") == "own"
    seen = drafts.Seen(said.get("draft", "").replace("\0", ""), number(said.get("version", "")) or 0)
    message = said.get("message", "")
    return Sheet(edited, text, mode, path, is_private, message, base, seen=seen, typed=typed, problems=tuple(problems))


def number(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def switched(request: TenantRequest, sheet: Sheet) -> HttpResponse:
    """The same words, edited another way; nothing is saved."""
    wanted = request.POST["switch"]
    if wanted == "form":
        try:
            fields.read(sheet.text)
        except InvalidFrontmatter as error:
            problem = f"{reading.plain_words(str(error))} {gettext('Mend it here, then go to the fields.')}"
            return show(request, replace(sheet, mode="raw"), problem=problem, status=422)
    return show(request, replace(sheet, mode=wanted if wanted in MODES else sheet.mode))


def errors_of(sheet: Sheet, problems: Iterable[Problem]) -> dict[str, list[str]]:
    """What is wrong, by the input in which it is mended: of the raw text all of it, of a form each field by itself."""
    inputs = (sheet.typed or fields.read(sheet.text)).values if sheet.mode == "form" else {}
    whole = "body" if sheet.mode == "form" else "text"
    errors: dict[str, list[str]] = {}
    for problem in problems:
        where = problem.field if problem.field in inputs else whole
        errors.setdefault(where, []).append(reading.plain_words(problem.detail))
    return errors


def show(request: TenantRequest, sheet: Sheet, *, problem: str = "", status: int = 200, **more: Any) -> HttpResponse:
    edited = sheet.note
    try:
        parts = sheet.typed or fields.read(sheet.text)
    except InvalidFrontmatter as error:
        # Only the raw text can be mended; the fields would lose what can't be read.
        parts, sheet = None, replace(sheet, mode="raw")
        problem = problem or reading.plain_words(str(error))
    current = edited.current if edited else None
    context = {
        "note": edited,
        "sheet": sheet,
        "modes": MODES.items(),
        "parts": parts,
        "problem": problem,
        "publishes": editing.publishes(edited, is_private=sheet.is_private, by=request.actor),
        "publishes_own": editing.publishes(None, is_private=True, by=request.actor),
        "families": FAMILIES,
        "kinds": editing.kinds(request.tenant),
        "others": named(drafts.of(request.actor, edited).exclude(public_id=sheet.seen.public_id)),
        "newer": current if current and current.number != sheet.base else None,
        "preview": preview_of(request, sheet),
        **more,
    }
    return pages.answer(request, "notes/edit.html", "notes/_editor.html", context, status=status)


def named(found: Iterable[Autosaved]) -> list[Autosaved]:
    """Drafts, each with a `label`: where it shall stand, else what it calls itself."""
    rows = list(found)
    for row in rows:
        document, _ = editing.checked(row.text)
        row.label = row.path or document.field("title") or gettext("A note without a name")  # type: ignore[attr-defined]
    return rows


def save(request: TenantRequest, sheet: Sheet) -> HttpResponse:
    """Write or propose what the form holds, then go and look at it. Where somebody was quicker, show both."""
    edited = sheet.note
    if problem := editing.unresolved(sheet.text):
        return show(request, sheet, errors={"text" if sheet.mode == "raw" else "body": [problem]}, status=422)
    wanted = editing.Wanted(sheet.path, sheet.text, sheet.message, sheet.is_private, sheet.base)
    try:
        made = editing.save(request.tenant, edited, wanted, member=request.member, by=request.actor)
    except review.InvalidNote as exc:
        return show(request, sheet, errors=errors_of(sheet, exc.problems), status=422)
    except InvalidPath as exc:
        return show(request, sheet, errors={"path": [exc.advice]}, status=422)
    except review.LostUpdate:
        return both(request, sheet)
    drafts.done(sheet.seen, by=request.actor)
    if made.waits_for_two:
        messages.info(request, gettext("By the rule of this path others decide too, so your text waits as a proposal."))
    if made.proposal:
        return redirect("proposal", request.tenant.slug, made.proposal.public_id)
    if made.note:
        return redirect("note", request.tenant.slug, made.note.public_id)
    return redirect("notes", request.tenant.slug)


def both(request: TenantRequest, sheet: Sheet) -> HttpResponse:
    """Somebody saved meanwhile: their text and this one in one, to be looked at before it is saved."""
    if sheet.note is None:
        problem = gettext(
            "There is a note at this path already. Choose another path, or open that note and put your words there."
        )
        return show(request, sheet, errors={"path": [problem]}, status=409)
    found = editing.together(sheet.note, sheet.text, sheet.base)
    if found is None:
        problem = gettext("Somebody deleted the note meanwhile. Your text is below, and your draft of it stays.")
        return show(request, sheet, problem=problem, status=409)
    now = found.current
    merged = replace(sheet, text=found.text, base=now.number)
    change = shown.between(now.text, found.text)
    return show(request, merged, status=409, conflict=found, theirs=now, change=change)


@require_POST
@needs("note.propose")
def note_preview(request: TenantRequest, slug: str) -> HttpResponse:
    """How the words would read; nothing is kept."""
    try:
        sheet = sent(request, of_form(request))
    except InvalidFrontmatter:
        raise Http404 from None
    return render(request, "notes/_preview.html", {"preview": preview_of(request, sheet)})


@require_POST
@needs("note.propose")
def note_draft(request: TenantRequest, slug: str) -> HttpResponse:
    """Keep what is typed as a draft."""
    edited = of_form(request)
    try:
        sheet = sent(request, edited)
    except InvalidFrontmatter:
        raise Http404 from None
    if sheet.problems:
        # The words that can't stand in a note can't stand in a draft: they are on the screen, and that is said.
        problem = gettext("The fields on top are too long, so no draft is kept of this.")
        return render(request, "notes/_draft.html", {"sheet": sheet, "seen": sheet.seen, "problem": problem})
    begun = editing.revision(edited, sheet.base)
    context: dict[str, Any] = {"note": edited, "sheet": sheet, "seen": sheet.seen}
    current = edited.current if edited else None
    context["newer"] = current if current and current.number != sheet.base else None
    if not sheet.seen.public_id and sheet.text in (begun.text if begun else editing.EMPTY, ""):
        return render(request, "notes/_draft.html", context)
    typed = drafts.Typed(sheet.text, sheet.path, sheet.is_private, sheet.message, sheet.base)
    try:
        kept = drafts.keep(typed, note=edited, seen=sheet.seen, by=request.actor)
    except drafts.TooLong as exc:
        return render(request, "notes/_draft.html", {**context, "problem": str(exc)})
    context |= {"kept": kept, "seen": drafts.Seen(kept.draft.public_id, kept.draft.version)}
    return render(request, "notes/_draft.html", context)


def preview_of(request: TenantRequest, sheet: Sheet) -> Preview:
    member = sheet.note.member if sheet.note else None
    shown_as = preview(request.tenant, sheet.text, path=sheet.path, member=member, by=request.actor)
    return replace(shown_as, problems=[*(one.detail for one in sheet.problems), *shown_as.problems])


def of_form(request: TenantRequest) -> Note | None:
    """The note that the editor is about; none where it is not there yet."""
    asked = request.POST.get("note", "").replace("\0", "")
    return get_object_or_404(reading.visible(request.actor), public_id=asked) if asked else None


@require_POST
@needs("note.propose")
def note_draft_discard(request: TenantRequest, slug: str, public_id: str) -> HttpResponse:
    gone = drafts.one(public_id, by=request.actor)
    if gone is None:
        raise Http404
    note = gone.note
    gone.delete()
    messages.success(request, gettext("The draft is gone."))
    if note is None:
        return redirect("note_new", slug)
    return redirect("note_edit", slug, note.public_id)
