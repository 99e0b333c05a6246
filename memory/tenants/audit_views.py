"""The audit: read, filtered, taken away."""

import tempfile
from typing import Any, Final

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET, require_POST

from memory.tenants import audit, audited, pages
from memory.tenants.access import TenantRequest, needs
from memory.tenants.names import Names
from memory.tenants.proof import recently

ENTRIES: Final = 100
FILTERS: Final = ("action", "who", "target", "outcome")
FORMS: Final = {"csv": "text/csv", "ndjson": "application/x-ndjson"}


@require_GET
@needs("audit.read")
def audit_list(request: TenantRequest, slug: str) -> HttpResponse:
    words = {name: pages.asked(request, name) for name in FILTERS}
    after = pages.cursor_of(request, "audit")
    found = audit.asked(request.tenant, words)
    if after:
        found = found.filter(seq__lt=after[0])
    rows = list(found[: ENTRIES + 1])
    shown = rows[:ENTRIES]
    context = {
        **words,
        "entries": shown,
        "about": audited.named(request.tenant, shown, Names(request.tenant)),
        "saved": pages.saved(request, "audit"),
        "is_filtered": any(words.values()),
        "next_url": pages.next_url(request, "audit", [shown[-1].seq] if len(rows) > ENTRIES else None),
    }
    return pages.answer(request, "tenants/audit.html", "tenants/_audit.html", context, more="tenants/_audit_rows.html")


@require_POST
@needs("audit.read")
@recently
def audit_export(request: TenantRequest, slug: str) -> HttpResponseBase:
    """What the filter shows as a file, every entry with its hashes."""
    form = request.POST.get("form", "csv")
    form = form if form in FORMS else "csv"
    words: dict[str, str] = {name: request.POST.get(name, "").replace("\0", "")[:200] for name in FILTERS}
    # In a file, not streamed: a stream would read after the transaction that binds the team.
    file: Any = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115 - the response closes it
    count = audit.written(audit.asked(request.tenant, words), form, file)
    audit.record(request.actor, "audit.export", form, after=f"{count} entries")
    file.seek(0)
    name = f"audit-{request.tenant.slug}.{form}"
    return FileResponse(file, as_attachment=True, filename=name, content_type=FORMS[form])
