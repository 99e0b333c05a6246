"""The page that takes a space's notes out as files and in again."""

from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods

from memory.notes import bundle, exporting, importing, reach
from memory.notes.importing import Imported
from memory.notes.reading import plain_words
from memory.sentences import thousands
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs, require
from memory.tenants.proof import always_recently
from memory.tenants.rls import Work

LAYOUTS: Final = {
    "markdown": (gettext_lazy("Markdown"), gettext_lazy("One file a note, in the folders of its path")),
    "skills": (
        gettext_lazy("Skills"),
        gettext_lazy("A folder with a SKILL.md for each note, as Claude Code and Codex read them"),
    ),
    "memories": (gettext_lazy("Memory tool"), gettext_lazy("The /memories folder of Anthropic's memory tool")),
}
# What became of a file, the pressing ones first: the word on the page, and its colour.
OUTCOMES: Final = {
    "failed": (gettext_lazy("Not stored, bring it again"), "bad"),
    "refused": (gettext_lazy("Left out"), "bad"),
    "conflict": (gettext_lazy("Conflict, proposed"), "warn"),
    "proposed": (gettext_lazy("Proposed"), "accent"),
    "merged": (gettext_lazy("Merged"), "good"),
    "updated": (gettext_lazy("Updated"), "good"),
    "created": (gettext_lazy("New"), "good"),
    "unchanged": (gettext_lazy("As it was"), ""),
}
SIGNATURES: Final = {
    "valid": gettext_lazy("It was exported and signed here."),
    "other": gettext_lazy("It is signed by another installation's key."),
    "none": gettext_lazy("It is not signed."),
}
MOST_SHOWN: Final = 200


@require_http_methods(["GET", "POST"])
@needs("note.read")
def note_files(request: TenantRequest, slug: str) -> HttpResponse:
    """Take notes out, or (POST) bring files in and say what became of each."""
    if request.method == "GET":
        return shown(request, {})
    require(request.actor, "note.propose")
    files: list[UploadedFile] = request.FILES.getlist("files")
    if not files:
        return shown(request, {"problem": gettext("Choose a zip of notes, or markdown files.")}, status=422)
    if sum(file.size or 0 for file in files) > settings.MAX_BODY_BYTES:
        return shown(request, {"problem": gettext("That is more than 32 MB; bring it in by parts.")}, status=422)
    into = importing.Space(request.tenant, the_space(request, request.POST.get("space", "")).member, request.actor)
    try:
        items, signatures = brought(files, into, request.work)
    except bundle.InvalidBundle as refused:
        return shown(
            request, {"problem": gettext("Nothing was taken in. %(refused)s") % {"refused": refused}}, status=422
        )
    order = list(OUTCOMES)
    items.sort(key=lambda one: (order.index(one.outcome), one.path))
    counts = importing.counts(items)
    return shown(
        request,
        {
            "items": [(one, plain_words(one.detail), *OUTCOMES[one.outcome]) for one in items[:MOST_SHOWN]],
            "item_count": len(items),
            "more": max(0, len(items) - MOST_SHOWN),
            "counts": [(OUTCOMES[name][0], counts[name]) for name in order if name in counts],
            "signatures": signatures,
            "waits": counts.get("conflict", 0) + counts.get("proposed", 0),
        },
    )


def brought(files: list[UploadedFile], into: importing.Space, work: Work) -> tuple[list[Imported], list[str]]:
    """What became of every file, and what the archives' signatures are worth. Raises InvalidBundle."""
    read = [(file.name or "", file.read()) for file in files]
    archives = [bundle.read(raw) for name, raw in read if not importing.is_foreign(name)]
    if sum(len(archive.files) for archive in archives) > bundle.MAX_FILES:
        raise bundle.InvalidBundle(
            "too_many_files",
            gettext("Bring %(max_files)s notes at a time, not more.") % {"max_files": thousands(bundle.MAX_FILES)},
        )
    items = [one for archive in archives for one in importing.take(archive, into, work)]
    items += importing.take_all_foreign([one for one in read if importing.is_foreign(one[0])], into, work)
    return items, [str(SIGNATURES[archive.signature]) for archive in archives]


def shown(request: TenantRequest, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    handle = request.member.handle if request.member else ""
    spaces = [
        (reach.TEAM, gettext("The team's notes")),
        *([(f"{reach.PRIVATE}{handle}", gettext("Only my own notes"))] if handle else []),
    ]
    context |= {"spaces": spaces, "layouts": [(name, *words) for name, words in LAYOUTS.items()]}
    if pages.wants_piece(request):
        return render(request, "notes/_imported.html", context, status=status)
    return render(request, "notes/files.html", context, status=status)


@require_GET
@needs("note.read")
@always_recently
def note_export(request: TenantRequest, slug: str) -> HttpResponse:
    """A space as a zip."""
    space, layout = the_space(request, request.GET.get("space", reach.TEAM)), request.GET.get("layout", "markdown")
    if layout not in bundle.LAYOUTS:
        raise Http404
    raw = exporting.packed(request.tenant, space.member, layout=layout)
    name = f"{slug}-{space.name.replace('/', '-')}-{layout}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return HttpResponse(raw, content_type="application/zip", headers=headers)


def the_space(request: TenantRequest, name: str) -> reach.Space:
    try:
        return reach.space_of(name, by=request.actor)
    except reach.UnknownSpace:
        raise Http404 from None
