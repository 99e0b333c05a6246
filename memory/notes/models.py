"""What was learnt: notes, their immutable revisions, and proposals that wait for a decision."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory import ids
from memory.events.models import Event, Project
from memory.tenants.models import Member, Tenant, TenantOwned


def note_id() -> str:
    return ids.mint("note")


def revision_id() -> str:
    return ids.mint("revision")


def proposal_id() -> str:
    return ids.mint("proposal")


def rule_id() -> str:
    return ids.mint("rule")


def report_id() -> str:
    return ids.mint("report")


def finding_id() -> str:
    return ids.mint("finding")


def comment_id() -> str:
    return ids.mint("comment")


def draft_id() -> str:
    return ids.mint("draft")


class NoteQuerySet(models.QuerySet["Note"]):
    def present(self) -> "NoteQuerySet":
        """What people see: approved and not deleted, also where its time is over."""
        return self.filter(deleted_at__isnull=True, current__isnull=False)

    def live(self) -> "NoteQuerySet":
        """What agents are told and find."""
        return self.present().filter(Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))


class Note(TenantOwned):
    """A markdown document at a path. `current` is what is approved; a note without one has only proposals."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="notes")
    public_id = models.CharField(max_length=100, default=note_id)
    # Null is the team's space; else the private space of one member.
    member = models.ForeignKey(Member, models.CASCADE, null=True, db_constraint=False, related_name="notes")
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="notes")
    path = models.CharField(max_length=255)
    path_key = models.CharField(max_length=255)
    current = models.ForeignKey("Revision", models.SET_NULL, null=True, db_constraint=False, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)
    # Locked: nobody changes it before a person unlocks it. Pinned: told before its neighbours. Expired: told no more.
    is_locked = models.BooleanField(default=False)
    is_pinned = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True)

    objects = NoteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_note_per_id"),
            models.UniqueConstraint(
                fields=["tenant", "member", "path_key"], name="one_note_per_path", nulls_distinct=False
            ),
        ]
        indexes = [models.Index(fields=["tenant", "path_key"], name="notes_note_path")]

    def __str__(self) -> str:
        return self.path

    @property
    def space(self) -> str:
        return f"members/{self.member.handle}" if self.member else "team"


class Revision(TenantOwned):
    """One version of a note's text, never changed."""

    public_id = models.CharField(max_length=100, default=revision_id)
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="revisions")
    number = models.IntegerField()
    text = models.TextField()
    sha256 = models.BinaryField()
    title = models.CharField(max_length=300, blank=True)
    description = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=40, blank=True)
    tier = models.SmallIntegerField()
    reason = models.TextField(blank=True)
    # Who wrote it (a member, an agent key, a dream run: its public id) and who let it in.
    author_kind = models.CharField(max_length=10)
    author_id = models.CharField(max_length=100)
    author_label = models.CharField(max_length=200)
    approved_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # Its words were taken out of the history; number, hash and sources stay.
    blanked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_revision_per_id"),
            models.UniqueConstraint(fields=["note", "number"], name="one_revision_per_number"),
        ]

    def __str__(self) -> str:
        return self.public_id


class ProposalQuerySet(models.QuerySet["Proposal"]):
    def open(self) -> "ProposalQuerySet":
        return self.filter(state="open")


class Proposal(TenantOwned):
    """A change to a note that waits for a decision. One open proposal a path and maker: a new one replaces it."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="proposals")
    public_id = models.CharField(max_length=100, default=proposal_id)
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="proposals")
    operation = models.CharField(
        max_length=10, choices=[("write", "write"), ("delete", "delete"), ("move", "move")], default="write"
    )
    # Where a move goes.
    target = models.CharField(max_length=255, blank=True)
    base = models.ForeignKey(Revision, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    text = models.TextField(blank=True)
    sha256 = models.BinaryField(default=bytes)
    reason = models.TextField(blank=True)
    tier = models.SmallIntegerField(default=2)
    risks = models.JSONField(default=list)
    author_kind = models.CharField(max_length=10)
    author_id = models.CharField(max_length=100)
    author_label = models.CharField(max_length=200)
    state = models.CharField(max_length=12, default="open")
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    decision_reason = models.TextField(blank=True)
    # The first of two pairs of eyes, where the rule asks for two.
    seen_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    # Whose it is to look after. Others may decide too.
    assigned_to = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    assigned_by = models.CharField(max_length=200, blank=True)
    assigned_at = models.DateTimeField(null=True)

    objects = ProposalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_proposal_per_id"),
            models.UniqueConstraint(
                fields=["note", "author_kind"], condition=Q(state="open"), name="one_open_proposal_per_kind_of_author"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["open", "approved", "rejected", "superseded"]),
                name="a_proposal_has_a_known_state",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "state", "created_at"], name="notes_proposal_queue")]

    def __str__(self) -> str:
        return self.public_id


class Source(TenantOwned):
    """The event that one line of a proposal or of a revision rests on."""

    proposal = models.ForeignKey(Proposal, models.CASCADE, null=True, db_constraint=False, related_name="sources")
    revision = models.ForeignKey(Revision, models.CASCADE, null=True, db_constraint=False, related_name="sources")
    event = models.ForeignKey(Event, models.CASCADE, db_constraint=False, related_name="cited_by")
    line = models.TextField()
    position = models.IntegerField()
    tier = models.SmallIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(proposal__isnull=True) ^ Q(revision__isnull=True), name="a_source_backs_one_text"
            ),
        ]

    def __str__(self) -> str:
        return self.line[:60]


class Tombstone(TenantOwned):
    """A text that was rejected or a note that was deleted: the next dream must not bring it back."""

    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="tombstones")
    # Null: the path is closed to dreams; else one rejected line, compared without case and space.
    line = models.TextField(null=True)  # noqa: DJ001 - null and "" mean different things
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # The decision it came with, so that undoing that takes it away again.
    proposal = models.ForeignKey(Proposal, models.SET_NULL, null=True, db_constraint=False, related_name="tombstones")

    def __str__(self) -> str:
        return f"{self.note_id} {self.line or 'path'}"


class Redirect(TenantOwned):
    """A path at which a note stood before it was moved."""

    member = models.ForeignKey(Member, models.CASCADE, null=True, db_constraint=False, related_name="+")
    path_key = models.CharField(max_length=255)
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="redirects")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["path_key", "member", "tenant"], name="one_redirect_per_path", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.path_key


class Rule(TenantOwned):
    """How changes below a glob are let in. Of the rules that match a path the first one decides."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="note_rules")
    public_id = models.CharField(max_length=100, default=rule_id)
    position = models.IntegerField()
    glob = models.CharField(max_length=255)
    mode = models.CharField(max_length=6)
    four_eyes = models.BooleanField(default=False)
    # Roles and handles that may approve; empty is everyone who may.
    approvers = models.JSONField(default=list)
    changed_by = models.CharField(max_length=200, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_rule_per_id"),
            models.UniqueConstraint(fields=["glob", "tenant"], name="one_rule_per_glob"),
            models.CheckConstraint(condition=Q(mode__in=["auto", "review", "locked"]), name="a_rule_has_a_known_mode"),
        ]

    def __str__(self) -> str:
        return self.glob


class Autosaved(TenantOwned):
    """What a member has typed into one editor and not sent yet. Two editors of one note have a row each."""

    public_id = models.CharField(max_length=100, default=draft_id)
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, related_name="drafts")
    # Null: a note that is not there yet.
    note = models.ForeignKey(Note, models.CASCADE, null=True, db_constraint=False, related_name="+")
    path = models.CharField(max_length=300, blank=True)
    is_private = models.BooleanField(default=False)
    text = models.TextField()
    message = models.CharField(max_length=200, blank=True)
    # The number of the revision that was on the screen when this was begun.
    base = models.IntegerField(null=True)
    # Counts the saves: an editor that did not see the last one saves beside it, never over it.
    version = models.IntegerField(default=1)
    saved_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_draft_per_id")]
        indexes = [models.Index(fields=["member", "note", "saved_at"], name="notes_draft_of_member")]

    def __str__(self) -> str:
        return self.public_id


class NoteReport(TenantOwned):
    """Somebody says that a note is wrong; it waits for a person."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="note_reports")
    public_id = models.CharField(max_length=100, default=report_id)
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="reports")
    revision = models.ForeignKey(Revision, models.CASCADE, db_constraint=False, related_name="+")
    reason = models.TextField()
    author_kind = models.CharField(max_length=10)
    author_id = models.CharField(max_length=100)
    author_label = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    answer = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_report_per_id"),
            models.UniqueConstraint(
                fields=["note", "author_id"], condition=Q(closed_at__isnull=True), name="one_open_report_a_voice"
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Comment(TenantOwned):
    """What a person says about a proposal. It stays with the note's later proposals until one is decided."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="comments")
    public_id = models.CharField(max_length=100, default=comment_id)
    proposal = models.ForeignKey(Proposal, models.CASCADE, db_constraint=False, related_name="comments")
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    # Taken back: the words are gone, the place stays.
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_comment_per_id")]

    def __str__(self) -> str:
        return self.public_id


class NewsChoice(TenantOwned):
    """What a member wants to be told by one way, and how often; without a row the default holds."""

    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, related_name="+")
    kind = models.CharField(max_length=10)
    channel = models.CharField(max_length=8)
    pace = models.CharField(max_length=8)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["member", "kind", "channel"], name="one_choice_per_kind_and_way")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.channel} {self.pace}"


class Notice(TenantOwned):
    """One piece of news for one member by one way: waits for its time, then goes into a message, once."""

    class State(models.TextChoices):
        WAITING = "waiting"
        TOLD = "told"
        # Its time came, and it was no news any more: decided, taken back, not for them.
        DROPPED = "dropped"

    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    channel = models.CharField(max_length=8)
    kind = models.CharField(max_length=10)
    occasion = models.CharField(max_length=120)
    proposal = models.ForeignKey(Proposal, models.CASCADE, db_constraint=False, related_name="+")
    comment = models.ForeignKey(Comment, models.CASCADE, null=True, db_constraint=False, related_name="+")
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    created_at = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["member", "channel", "occasion"], name="one_notice_per_occasion_and_way")
        ]
        indexes = [
            models.Index(
                fields=["channel", "member", "due_at"], condition=Q(state="waiting"), name="notes_notice_waiting"
            )
        ]

    def __str__(self) -> str:
        return self.occasion


class FindingQuerySet(models.QuerySet["Finding"]):
    def standing(self) -> "FindingQuerySet":
        """What holds now and nobody has answered."""
        present = Q(note__deleted_at__isnull=True, note__current__isnull=False)
        return self.filter(present, state="open").exclude(proposal__state="rejected")


class Finding(TenantOwned):
    """What the gardener noticed about a note: a label, or the reason of a proposal. The same is found once."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="findings")
    public_id = models.CharField(max_length=100, default=finding_id)
    kind = models.CharField(max_length=16)
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="findings")
    other = models.ForeignKey(Note, models.CASCADE, null=True, db_constraint=False, related_name="+")
    # SHA-256 of what was found in which texts: another text may be found anew, the same never.
    fingerprint = models.CharField(max_length=64)
    words = models.CharField(max_length=500)
    # The lines that it is about, of the note first.
    lines = models.JSONField(default=list)
    # open; dismissed: a person said to leave it; gone: it no longer holds.
    state = models.CharField(max_length=10, default="open")
    proposal = models.ForeignKey(Proposal, models.SET_NULL, null=True, db_constraint=False, related_name="findings")
    found_by = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    answer = models.TextField(blank=True)

    objects = FindingQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_finding_per_id"),
            models.UniqueConstraint(fields=["note", "kind", "fingerprint"], name="the_same_is_found_once"),
            models.CheckConstraint(
                condition=Q(state__in=["open", "dismissed", "gone"]), name="a_finding_has_a_known_state"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "kind"], condition=Q(state="open"), name="notes_finding_open")]

    def __str__(self) -> str:
        return f"{self.kind} {self.words}"
