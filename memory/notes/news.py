"""News for members: what waits for their review, what is given to them, what is said about a proposal.

What happened is put down as a due row in its own transaction. A worker spreads it: one notice for each member and way
that wants it, each with its time. When a time comes, a worker puts all notices that are due for one member (by mail),
or for the team's channel (by Slack), into one message. Notices are marked in the transaction that puts the message into
the outbox, so a worker may die anywhere and nothing is told twice; what SMTP itself can't promise, `outbox` says.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from memory.notes import news_words, reach, rules
from memory.notes.holding import may
from memory.notes.models import Comment, NewsChoice, Notice, Proposal
from memory.tenants import access, audit, choices, due, outbox, outgoing
from memory.tenants.access import Actor, member_actor
from memory.tenants.models import Member, Setting, Tenant
from memory.tenants.rls import Sight, as_seen_by, tenant_scope

TASK: Final = "news"
MAIL, SLACK = "mail", "slack"
CHANNELS: Final = (MAIL, SLACK)
PACES: Final = ("now", "hourly", "daily", "never")
# Kind -> pace by mail and by Slack where the member chose nothing.
KINDS: Final = {"review": ("daily", "never"), "assigned": ("now", "never"), "comment": ("now", "never")}
# "At once" waits so long, so that what one dream proposes comes as one message.
GATHER: Final = timedelta(minutes=1)
# A dream that puts a new text in the place of the one it told of is no news again for so long.
QUIET: Final = timedelta(hours=24)
MOST_IN_ONE: Final = 50
KEPT: Final = timedelta(days=30)
MENTION: Final = re.compile(r"(?<![\w@])@([a-z0-9][a-z0-9-]{0,59})", re.I)
SLACK_HOOK: Final = outbox.Hook(url_setting="slack_url")


class InvalidChoice(ValueError):
    """There is no such kind, way or pace."""


@dataclass(frozen=True)
class Row:
    """One kind of news on the page of choices."""

    kind: str
    mail: str
    slack: str


def has_slack(tenant_pk: str) -> bool:
    return Setting.objects.filter(tenant_id=tenant_pk, name="slack_url").exists()


def tell(tenant_pk: str, kind: str, pk: str) -> None:
    """Something happened to a proposal (or, for `comment`, to the comment of this key): put it down to be spread.

    Inside the bound transaction of what happened; nothing where no message could leave the server.
    """
    if outgoing.has_mail() or has_slack(tenant_pk):
        due.put(tenant_pk, TASK, f"{kind}:{pk}")


def chosen(member: Member) -> list[Row]:
    """What a member chose, with the defaults filled in. The tenant must be bound."""
    own = {(row.kind, row.channel): row.pace for row in NewsChoice.objects.filter(member=member)}
    return [Row(kind, *(own.get((kind, way), _default(kind, way)) for way in CHANNELS)) for kind in KINDS]


def _default(kind: str, channel: str) -> str:
    return KINDS[kind][CHANNELS.index(channel)]


def choose(member: Member, wanted: dict[tuple[str, str], str], *, by: Actor) -> None:
    """Keep what a member wants: (kind, channel) -> pace. What waits follows the new choice. Raises Refused,
    InvalidChoice.
    """
    access.require(by, "news.choose")
    if str(member.pk) != by.member_pk:
        raise access.Refused("news.choose")
    if any(kind not in KINDS or way not in CHANNELS or pace not in PACES for (kind, way), pace in wanted.items()):
        raise InvalidChoice(gettext("Choose one of the paces that the page offers."))
    before = {(row.kind, way): getattr(row, way) for row in chosen(member) for way in CHANNELS}
    changed = {key: pace for key, pace in wanted.items() if before[key] != pace}
    for (kind, way), pace in changed.items():
        NewsChoice.objects.update_or_create(
            tenant_id=member.tenant_id, member=member, kind=kind, channel=way, defaults={"pace": pace}
        )
        _follow(member, kind, way, pace)
        audit.record(by, "news.choose", f"{kind} by {way}", before=before[kind, way], after=pace)


def _follow(member: Member, kind: str, channel: str, pace: str) -> None:
    waiting = Notice.objects.filter(member=member, kind=kind, channel=channel, state="waiting")
    if pace == "never":
        waiting.update(state="dropped")
    elif waiting.update(due_at=due_at(pace, timezone.now(), hour(member.tenant))):
        _make_due(str(member.tenant_id), channel, str(member.pk))


def due_at(pace: str, now: datetime, hour: int) -> datetime:
    """When news that comes now is told. Digests go out at the full hour, and at `hour` UTC."""
    if pace == "hourly":
        return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if pace == "daily":
        today = now.replace(hour=hour, minute=0, second=0, microsecond=0)
        return today if today > now else today + timedelta(days=1)
    return now + GATHER


def hour(tenant: Tenant) -> int:
    return choices.number(tenant, "digest_hour")


def perform(claim: due.Claim) -> None:
    """Do one piece: spread what happened, or tell what is due."""
    what, _, rest = claim.argument.partition(":")
    with due.heartbeat(claim), tenant_scope(claim.tenant_pk):
        due.hold(claim)
        if what == "send":
            channel, _, member_pk = rest.partition(":")
            later = _send(claim.tenant_pk, channel, member_pk)
            if later is not None:
                due.postpone(claim, later - timezone.now())
                return
        else:
            _spread(claim.tenant_pk, what, rest)
        due.done(claim)


def _spread(tenant_pk: str, kind: str, pk: str) -> None:
    """A notice for each member and way that wants this; none where it is no news any more."""
    comment = Comment.objects.filter(pk=pk, removed_at=None).first() if kind == "comment" else None
    found = Proposal.objects.filter(pk=comment.proposal_id if comment else pk).select_related("note").first()
    if found is None or (comment is None and found.state != "open"):
        return
    people = _people(tenant_pk)
    at = f":{found.assigned_at.timestamp():.3f}" if kind == "assigned" and found.assigned_at else ""
    if comment is not None:
        members = _for_comment(comment, found, people)
    else:
        members = _for_review(found, people) if kind == "review" else _for_assigned(found, people)
    news = Notice(kind=kind, occasion=f"{kind}:{pk}{at}", proposal=found, comment=comment)
    _put(Tenant.objects.get(pk=tenant_pk), members, news)


def _people(tenant_pk: str) -> list[Member]:
    rows = Member.objects.current().filter(tenant_id=tenant_pk, user__is_active=True)
    return list(rows.select_related("user"))


def _for_review(proposal: Proposal, people: Sequence[Member]) -> list[Member]:
    note = proposal.note
    verdict = rules.verdict(note)
    return [
        one
        for one in people
        if one.public_id != proposal.author_id
        and may(actor := member_actor(one), "note.approve", note)
        and verdict.lets_decide(actor)
    ]


def _for_assigned(proposal: Proposal, people: Sequence[Member]) -> list[Member]:
    return [one for one in people if one.pk == proposal.assigned_to_id]


def _for_comment(comment: Comment, proposal: Proposal, people: Sequence[Member]) -> list[Member]:
    """Who proposed it, whose it is, who spoke before, and who is named; not who says it."""
    spoke = Comment.objects.filter(proposal__note=proposal.note_id, created_at__lt=comment.created_at)
    pks = {*spoke.values_list("member_id", flat=True), proposal.assigned_to_id}
    named = {handle.lower() for handle in MENTION.findall(comment.text)}
    return [
        one
        for one in people
        if one.pk != comment.member_id
        and (one.pk in pks or one.handle in named or one.public_id == proposal.author_id)
        and (proposal.note.member_id is None or proposal.note.member_id == one.pk)
    ]


def _put(tenant: Tenant, members: Iterable[Member], news: Notice) -> None:
    now, at = timezone.now(), hour(tenant)
    ways = [way for way, is_open in ((MAIL, outgoing.has_mail()), (SLACK, has_slack(str(tenant.pk)))) if is_open]
    members = list(members)
    picked = NewsChoice.objects.filter(member__in=members, kind=news.kind)
    own = {(str(row.member_id), row.channel): row.pace for row in picked}
    quiet = _told_lately(news) if news.kind == "review" else set()
    rows: list[Notice] = []
    for one in members:
        for way in ways:
            pace = own.get((str(one.pk), way), _default(news.kind, way))
            # A channel is read by more than the member: what is private is never posted there.
            note = news.proposal.note
            is_private = way == SLACK and (note.member_id is not None or reach.is_limited(note))
            if pace == "never" or is_private or (str(one.pk), way) in quiet:
                continue
            said = {"kind": news.kind, "occasion": news.occasion, "proposal": news.proposal, "comment": news.comment}
            rows.append(Notice(tenant=tenant, member=one, channel=way, due_at=due_at(pace, now, at), **said))
    Notice.objects.bulk_create(rows, ignore_conflicts=True)
    for row in rows:
        _make_due(str(tenant.pk), row.channel, str(row.member_id), at=row.due_at)


def _told_lately(news: Notice) -> set[tuple[str, str]]:
    """Who had news of an earlier proposal for the note by this kind of author that nobody has decided since."""
    same = Proposal.objects.filter(note=news.proposal.note_id, author_kind=news.proposal.author_kind)
    decided = same.filter(state__in=("approved", "rejected")).order_by("-decided_at")
    since = max(filter(None, [decided.values_list("decided_at", flat=True).first(), timezone.now() - QUIET]))
    told = Notice.objects.filter(kind="review", proposal__in=same, created_at__gt=since).exclude(state="dropped")
    return {(str(member), way) for member, way in told.values_list("member_id", "channel")}


def _make_due(tenant_pk: str, channel: str, member_pk: str, *, at: datetime | None = None) -> None:
    argument = f"send:{MAIL}:{member_pk}" if channel == MAIL else f"send:{SLACK}"
    if at is None:
        rows = _waiting(channel, member_pk)
        at = rows.order_by("due_at").values_list("due_at", flat=True).first()
    if at is not None:
        due.put(tenant_pk, TASK, argument, at=at)


def _waiting(channel: str, member_pk: str) -> "QuerySet[Notice]":
    rows = Notice.objects.filter(channel=channel, state="waiting")
    return rows.filter(member_id=member_pk) if channel == MAIL else rows


def _send(tenant_pk: str, channel: str, member_pk: str) -> datetime | None:
    """Put what is due into one message; gives when the next is due, or None."""
    tenant = Tenant.objects.get(pk=tenant_pk)
    rows = _waiting(channel, member_pk).filter(due_at__lte=timezone.now()).select_for_update(of=("self",))
    with_it = ("member__user", "member__tenant", "proposal__note__member", "proposal__assigned_to", "comment__member")
    notices = list(rows.select_related(*with_it).order_by("created_at", "pk"))
    told = _still_news(notices)
    known = {one.pk for one in told} if told and _tell(tenant, channel, told) else set()
    for one in notices:
        one.state = "told" if one.pk in known else "dropped"
    Notice.objects.bulk_update(notices, ["state"])
    return _waiting(channel, member_pk).order_by("due_at").values_list("due_at", flat=True).first()


def _tell(tenant: Tenant, channel: str, told: list[Notice]) -> bool:
    """Put the message into the outbox. False where mail was taken away meanwhile: nothing is kept for its return."""
    occasion = f"news:{told[0].pk}"
    if channel == SLACK:
        post = news_words.slack(tenant, told, most=MOST_IN_ONE)
        outbox.slack(tenant, SLACK_HOOK, post.text, about=post.subject, occasion=occasion)
        return True
    member = told[0].member
    mail = news_words.mail(tenant, member, told, most=MOST_IN_ONE)
    try:
        outbox.mail(tenant, member.user.email, mail.subject, mail.text, occasion=occasion, page=mail.page)
    except outbox.NoMail:
        return False
    return True


def _still_news(notices: Sequence[Notice]) -> list[Notice]:
    """Those that still say something to their member, who still may see it."""
    seen: dict[str, set[str]] = {}
    for member_pk in {str(one.member_id) for one in notices}:
        mine = [one for one in notices if str(one.member_id) == member_pk]
        asked = [one.proposal_id for one in mine]
        # By what they see of the team's projects now: a project may have been limited since.
        with as_seen_by(Sight(member_pk), str(mine[0].tenant_id)):
            seen[member_pk] = {
                str(pk) for pk in reach.proposals(member_pk).filter(pk__in=asked).values_list("pk", flat=True)
            }
    return [one for one in notices if str(one.proposal_id) in seen[str(one.member_id)] and _is_news(one)]


def _is_news(one: Notice) -> bool:
    member, proposal = one.member, one.proposal
    if member.removed_at is not None or not member.user.is_active:
        return False
    if one.channel == SLACK and reach.is_limited(proposal.note):
        return False
    if one.kind == "comment":
        return one.comment is not None and one.comment.removed_at is None
    if proposal.state != "open":
        return False
    if one.kind == "assigned":
        return proposal.assigned_to_id == member.pk
    return may(member_actor(member), "note.approve", proposal.note)


def forget(tenant: Tenant) -> int:
    """Take away notices that are over and more than a month old; gives how many. The tenant must be bound."""
    over = ~Q(state="waiting")
    return Notice.objects.filter(over, tenant=tenant, created_at__lt=timezone.now() - KEPT).delete()[0]
