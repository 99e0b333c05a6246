"""What was learnt: notes, their immutable revisions, and proposals that wait for a decision."""

from django.db import models
from django.db.models import Q

from memory import ids
from memory.events.models import Event, Project
from memory.tenants.models import Member, Tenant, TenantOwned


def note_id() -> str:
    return ids.mint("note")


def revision_id() -> str:
    return ids.mint("revision")


def proposal_id() -> str:
    return ids.mint("proposal")


class NoteQuerySet(models.QuerySet["Note"]):
    def live(self) -> "NoteQuerySet":
        return self.filter(deleted_at__isnull=True, current__isnull=False)


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
    operation = models.CharField(max_length=10, choices=[("write", "write"), ("delete", "delete")], default="write")
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

    def __str__(self) -> str:
        return f"{self.note_id} {self.line or 'path'}"
