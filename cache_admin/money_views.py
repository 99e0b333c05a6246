"""Pages about tokens and what they cost: the providers' prompt caches, and the settings of the caches."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from cache_admin import charts, clean, forms, money, policies, price_forms, trends, usage
from memory.problems import Problem
from memory.tenants import pages
from memory.tenants.access import TenantRequest, needs, require


@require_GET
@needs("cache.read")
def prompts(request: TenantRequest, slug: str) -> HttpResponse:
    """How much of what went into models came out of the providers' prompt caches, and what it all cost."""
    days, since, until = trends.period(pages.asked(request, "days"))
    rows = usage.rates(request.tenant, since=since, until=until)
    fresh, read, written = (sum(row[name] for row in rows) for name in ("fresh", "read", "written"))
    kept = policies.settings_of(request.tenant)
    context = {
        "rows": [{**row, "cost": money.cost(row, kept.prices)} for row in rows],
        "fresh": fresh,
        "read": read,
        "written": written,
        "output": sum(row["output"] for row in rows),
        "message_count": sum(row["messages"] for row in rows),
        "rate": charts.percent(usage.hit_rate(fresh, read, written)),
        "bill": money.bill(rows, kept.prices),
        "currency": kept.currency,
        "latest": None if rows else usage.latest(request.tenant),
        "compared": usage.compared(request.tenant, today=timezone.now().date(), started_on=kept.started_on),
        "days": days,
        "periods": trends.PERIODS,
    }
    return pages.answer(request, "cache_admin/prompts.html", "cache_admin/_prompts.html", context)


@require_http_methods(["GET", "POST"])
@needs("cache.read")
def settings(request: TenantRequest, slug: str) -> HttpResponse:
    """How long and how much is kept, and what a million tokens of each model cost; admins change it."""
    kept = policies.settings_of(request.tenant)
    said = forms.typed(request.POST) if request.method == "POST" else None
    rows, form = price_forms.price_list(said, request.tenant), price_forms.money_form(said, kept)
    status = 200
    if said is not None:
        require(request.actor, "cache.manage")
        is_valid = rows.is_valid()
        if form.is_valid() and is_valid:
            try:
                money.save_prices(
                    request.tenant, rows.prices(), currency=form.cleaned_data["currency"], by=request.actor
                )
                money.mark_start(request.tenant, form.cleaned_data["started_on"], by=request.actor)
                room = {"analysis_days": form.cleaned_data["analysis_days"], "quota_bytes": form.quota_bytes}
                policies.save_room(request.tenant, **room, by=request.actor)
            except Problem as refused:
                field = refused.more.get("field")
                form.add_error(field if field in form.fields else None, refused.detail)
            else:
                messages.success(request, gettext("Saved. What was used and saved is counted anew by these prices."))
                return redirect("cache_settings", slug)
        status = 422
    context = {
        "rows": rows,
        "form": form,
        "kept": kept,
        "prices": sorted(kept.prices.items()),
        "used_bytes": clean.used(request.tenant),
    }
    return render(request, "cache_admin/settings.html", context, status=status)
