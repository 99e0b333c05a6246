"""The two pages of runs, whoever answers with them: as asked for, or with what was wrong with a form."""

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from dream import budget, deciding, prompt, reading
from memory.tenants import pages
from memory.tenants.access import TenantRequest

PAGE = 50


def show_dreams(request: TenantRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    """Runs, the latest first."""
    rows = reading.runs(request.tenant, by=request.actor)
    after = pages.cursor_of(request, "dreams")
    found = [reading.timed(row) for row in (reading.before(rows, after) if after else rows)[: PAGE + 1]]
    context = {
        "runs": found[:PAGE],
        "next_url": pages.next_url(request, "dreams", reading.position(found[PAGE - 1]) if len(found) > PAGE else None),
        "waiting_count": reading.waiting_events(request.tenant),
        "running": any(row.state in ("queued", "running") for row in found),
        "has_model": bool(settings.DREAM_MODEL),
        "budget": budget.month(),
        "problem": problem,
    }
    return pages.answer(request, "dream/runs.html", "dream/_runs.html", context, status=status)


def show_dream(request: TenantRequest, public_id: str, *, problem: str = "", status: int = 200) -> HttpResponse:
    """What a run read and what it proposes; of a dry run, how that differs from the run it replays."""
    read = reading.timed(get_object_or_404(reading.runs(request.tenant, by=request.actor), public_id=public_id))
    reading.measured(read, request.tenant)
    context = {
        "run": read,
        "changes": (changes := reading.changes(read, by=request.actor)),
        "decides": read.replays_id is None and bool(deciding.open_of(changes, by=request.actor)),
        "windows": reading.windows(read),
        "compared": [reading.timed(read.replays), read] if read.replays else [],
        "differences": reading.differences(read) if read.replays else [],
        "replays": read.replayed.order_by("-created_at", "-pk")[:20],
        "default_model": settings.DREAM_MODEL or "distill",
        "instructions": prompt.INSTRUCTIONS,
        "problem": problem,
    }
    return pages.answer(request, "dream/run.html", "dream/_run.html", context, status=status)
