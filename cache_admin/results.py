"""Stored results: the full text is kept, a summary fit for its kind is given, and the whole is fetched by parts."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import re2  # type: ignore[import-untyped]
from django.db.models import F, Sum
from django.utils import timezone

from cache_admin import contents, policies
from cache_admin.models import Content, Result
from cache_admin.summaries import summarise, unwrapped
from cache_admin.summaries.fit import rows_of
from memory import redact, tokens
from memory.problems import Problem, not_found
from memory.tenants.access import Actor
from memory.tenants.models import Tenant

LIFE: Final = timedelta(days=30)
MAX_MATCHES: Final = 1000
MAX_PATTERN: Final = 500
# Lines around a match, as grep -C gives them.
MAX_CONTEXT: Final = 20


@dataclass(frozen=True)
class Draft:
    """A result that is to be kept."""

    text: str
    is_json: bool
    tool: str
    summariser: str = "auto"
    kind: str = ""
    redactions: int = 0
    ttl_s: int | None = None


def offload(tenant: Tenant, draft: Draft, *, by: Actor, is_private: bool, project_pk: str | None) -> tuple[Result, str]:
    """Keep a result that an agent wants out of its context; gives what is shown of it. Raises Problem 507.

    Secrets are taken out first.
    """
    fit = redact.clean_text(draft.text)
    cleaned = Draft(fit.value, draft.is_json, draft.tool, draft.summariser, draft.kind, fit.redactions, draft.ttl_s)
    used = Content.objects.filter(tenant=tenant).aggregate(total=Sum("size"))["total"] or 0
    quota = policies.settings_of(tenant).quota_bytes
    if used + len(fit.value.encode()) > quota:
        raise Problem(
            507,
            "over_quota",
            f"The team's stored results fill {used} of {quota} bytes. Wait for the cleaner, which drops what was not"
            " used longest, or raise the quota.",
            used_bytes=used,
            quota_bytes=quota,
        )
    kept = keep(tenant, cleaned, by=by, is_private=is_private, project_pk=project_pk)
    return kept, kept.summary or cleaned.text


def keep(tenant: Tenant, draft: Draft, *, by: Actor, is_private: bool, project_pk: str | None) -> Result:
    """The stored result with its summary; an empty summary means that the whole is as short."""
    short = summarise(draft.text, draft.summariser, kind=draft.kind, tool=draft.tool)
    whole = tokens.count(draft.text)
    said = redact.sanitize(short.text)[0] if short.is_shorter else ""
    return Result.objects.create(
        tenant=tenant,
        tool=draft.tool,
        sha256=contents.keep(str(tenant.pk), draft.text.encode()),
        is_json=draft.is_json,
        summary=said,
        summariser=short.summariser,
        chars=len(draft.text),
        tokens=whole,
        summary_tokens=tokens.count(said) if said else whole,
        redactions=draft.redactions,
        owner_id=by.member_pk,
        is_private=is_private,
        project_id=project_pk,
        writer_key_id=by.key_pk,
        expires_at=timezone.now() + (timedelta(seconds=draft.ttl_s) if draft.ttl_s else LIFE),
    )


def readable(tenant: Tenant, result_id: str, *, by: Actor) -> tuple[Result, str]:
    """The result and its full text, for who may read it. Raises Problem 404 or 410."""
    result = tenant.results.filter(public_id=result_id).select_related("project").first()
    if result is None or is_closed(result, by):
        raise not_found(result_id)
    text = contents.text_of(str(tenant.pk), bytes(result.sha256))
    if text is None or (result.expires_at is not None and result.expires_at <= timezone.now()):
        raise Problem(
            410,
            "result_expired",
            "The full text of this result is gone: its time ran out, or the team's quota needed the room. Run the"
            " tool again.",
            id=result_id,
        )
    return result, text.decode()


def is_closed(result: Result, by: Actor) -> bool:
    """Whether the result is another member's own. One of a project that is hidden from them is not there at all."""
    return result.is_private and str(result.owner_id) != by.member_pk


def shown_text(result: Result, text: str) -> str:
    """The text that a summary's line numbers count: what a harness wrapped in JSON is taken out of it."""
    return unwrapped(text)[0] if result.is_json else text


def expanded(result: Result) -> None:
    """Count that the summary did not do: many of these mean a bad summariser."""
    Result.objects.filter(pk=result.pk).update(expansions=F("expansions") + 1)


def lines_of(text: str, asked: str) -> str:
    """Lines `120-180`, `120-`, `-20` (the last) or `7`, numbered from 1. Raises Problem 400, 416."""
    first, dash, last = asked.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) <= 9 for part in (first, last) if part) or not (
        first or last
    ):
        raise Problem(400, "invalid_lines", "lines is 120-180, 120- (to the end), -20 (the last 20) or 7.")
    rows = rows_of(text)
    if not first:
        start, end = max(1, len(rows) - int(last) + 1), len(rows)
    else:
        start = int(first)
        end = int(last) if last else len(rows) if dash else start
    if not 1 <= start <= end or start > len(rows):
        raise Problem(416, "no_such_lines", f"The text has {len(rows)} lines.", lines=len(rows))
    return "\n".join(rows[start - 1 : end])


def grep(text: str, pattern: str, *, context: int = 0) -> str:
    """The lines that match, with their numbers, as grep -n gives them. Raises Problem 400.

    RE2: the time is linear in the text, whatever pattern an agent sends.
    """
    if len(pattern) > MAX_PATTERN:
        raise Problem(400, "invalid_pattern", f"The pattern is at most {MAX_PATTERN} characters long.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        matcher = re2.compile(pattern, options)
    except re2.error as wrong:
        raise Problem(400, "invalid_pattern", f"The pattern is not RE2 syntax: {wrong}"[:300]) from None
    rows = rows_of(text)
    found = [number for number, row in enumerate(rows) if matcher.search(row)]
    shown = {near for number in found[:MAX_MATCHES] for near in range(number - context, number + context + 1)}
    hits = set(found)
    lines = [
        f"{number + 1}{':' if number in hits else '-'}{rows[number]}"
        for number in sorted(shown)
        if 0 <= number < len(rows)
    ]
    if len(found) > MAX_MATCHES:
        lines.append(f"[{len(found) - MAX_MATCHES} more lines match; narrow the pattern or ask for lines]")
    return "\n".join(lines)
