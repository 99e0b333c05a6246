"""Dream runs, the windows they read, and how far each session has been dreamed."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from memory import ids
from memory.events.models import Project, Session
from memory.notes.models import Proposal
from memory.tenants.models import Tenant, TenantOwned

STATES = ["queued", "running", "succeeded", "no_change", "failed", "cancelled"]


def run_id() -> str:
    return ids.mint("dream")


def gardening_id() -> str:
    return ids.mint("gardening")


class RunQuerySet(models.QuerySet["Run"]):
    def unfinished(self) -> "RunQuerySet":
        return self.filter(state__in=["queued", "running"])

    def page(self, *, after: list[Any] | None, limit: int) -> list["Run"]:
        """The latest runs, or those before the position (created_at, key)."""
        rows = self.order_by("-created_at", "-id")
        if after:
            at, pk = datetime.fromisoformat(after[0]), after[1]
            rows = rows.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=pk))
        return list(rows[:limit])


class Run(TenantOwned):
    """One batch that reads events since the watermarks and proposes notes."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="dreams")
    public_id = models.CharField(max_length=100, default=run_id)
    state = models.CharField(max_length=10, default="queued")
    mind = models.CharField(max_length=10, default="distill")
    model = models.CharField(max_length=120, blank=True)
    prompt_version = models.CharField(max_length=20, blank=True)
    asked_by = models.CharField(max_length=200)
    # Asked for by a person: also what is not finished yet. Else only up to each session's last Stop.
    is_whole = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # When what failed is tried again.
    retry_at = models.DateTimeField(null=True)
    events_read = models.IntegerField(default=0)
    sessions_read = models.IntegerField(default=0)
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    tokens_cached = models.BigIntegerField(default=0)
    # US dollars, of the calls whose price is known.
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    unpriced_calls = models.IntegerField(default=0)
    error = models.TextField(blank=True)
    # A dry run reads again what another run read, and only shows what it would propose.
    replays = models.ForeignKey("self", models.CASCADE, null=True, db_constraint=False, related_name="replayed")
    # Which mind it is to have; empty: the one the settings name, and our own prompt.
    asked_model = models.CharField(max_length=120, blank=True)
    instructions = models.TextField(blank=True)
    undone_at = models.DateTimeField(null=True)
    undone_by = models.CharField(max_length=200, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_dream_per_id"),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(state__in=["queued", "running"]), name="one_dream_at_a_time"
            ),
            models.CheckConstraint(condition=Q(state__in=STATES), name="a_dream_has_a_known_state"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Window(TenantOwned):
    """The events of one session that a run read, and what became of them."""

    run = models.ForeignKey(Run, models.CASCADE, db_constraint=False, related_name="windows")
    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, related_name="windows")
    from_seq = models.BigIntegerField()
    to_seq = models.BigIntegerField()
    outcome = models.CharField(max_length=12)
    detail = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "session", "from_seq"], name="a_window_is_read_once_a_run")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.from_seq}-{self.to_seq}"


class Change(TenantOwned):
    """What a run did to one note: a proposal that it made, or, of a dry run, one that it would have made."""

    run = models.ForeignKey(Run, models.CASCADE, db_constraint=False, related_name="changes")
    proposal = models.ForeignKey(Proposal, models.CASCADE, null=True, db_constraint=False, related_name="changes")
    kind = models.CharField(max_length=16, default="rewrite")
    # The address as `team/PATH` or `members/HANDLE/PATH`, the text as it was proposed, and the one it was made from.
    path = models.CharField(max_length=320, blank=True)
    text = models.TextField(blank=True)
    old_text = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    # What undoing it came to: "", undone, withdrawn, proposed, conflict, kept.
    undo = models.CharField(max_length=10, blank=True)
    undo_detail = models.TextField(blank=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "proposal"], name="a_change_is_made_once_a_run")]

    @property
    def kind_name(self) -> str:
        return self.kind.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.run_id} {self.proposal_id}"


class Watermark(TenantOwned):
    """How far a session has been dreamed. It moves by compare-and-set, in the transaction that writes proposals."""

    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, db_index=False, related_name="watermarks")
    seq = models.BigIntegerField(default=0)
    failures = models.IntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session"], name="one_watermark_per_session")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.seq}"


class Quarantined(TenantOwned):
    """An event that made every dream fail; it waits for a person."""

    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, related_name="+")
    seq = models.BigIntegerField()
    error = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    # A person wants it tried again, by the next dream.
    is_again = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="an_event_is_quarantined_once")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.seq}"


class Digest(TenantOwned):
    """What the rules of `distill` remember of a project between runs: counts, never payloads."""

    project = models.ForeignKey(Project, models.CASCADE, null=True, db_constraint=False, related_name="+")
    version = models.IntegerField()
    state = models.JSONField(default=dict)
    # The state knows more than was proposed: a run ended between two batches.
    has_news = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project"], name="one_digest_per_project", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return str(self.project_id)


class SessionGist(TenantOwned):
    """What a session was about, in at most five lines: `[{"text", "events": [ids]}]`."""

    session = models.OneToOneField(Session, models.CASCADE, db_constraint=False, related_name="gist")
    run = models.ForeignKey(Run, models.SET_NULL, null=True, db_constraint=False, related_name="gists")
    lines = models.JSONField(default=list)
    mind = models.CharField(max_length=120, blank=True)
    made_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return "\n".join(line["text"] for line in self.lines)


class Budget(TenantOwned):
    """What a team's dreams may use a month. Null: what the settings say; 0: as much as they like."""

    tokens = models.BigIntegerField(null=True)
    dollars = models.DecimalField(max_digits=10, decimal_places=2, null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant"], name="one_budget_per_team")]

    def __str__(self) -> str:
        return f"{self.tokens} tokens, {self.dollars} dollars"


class Spent(TenantOwned):
    """What a team's dreams have used in a month, dry runs and failed calls included."""

    month = models.DateField()
    calls = models.IntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    dollars = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["month", "tenant"], name="one_account_a_month")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: {self.tokens}"


class Gardening(TenantOwned):
    """One go of the gardener through a team's notes."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="gardenings")
    public_id = models.CharField(max_length=100, default=gardening_id)
    asked_by = models.CharField(max_length=200)
    started_at = models.DateTimeField()
    # Null: a worker is at it, or whoever takes it over goes on.
    finished_at = models.DateTimeField(null=True)
    model = models.CharField(max_length=120, blank=True)
    notes_read = models.IntegerField(default=0)
    found = models.IntegerField(default=0)
    gone = models.IntegerField(default=0)
    proposed = models.IntegerField(default=0)
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    tokens_cached = models.BigIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    # What was left out and why, or what went wrong.
    told = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_gardening_per_id")]
        indexes = [models.Index(fields=["tenant", "-started_at"], name="dream_gardening_latest")]

    def __str__(self) -> str:
        return self.public_id


class Folder(TenantOwned):
    """A folder of notes that a model has read for contradictions, and what it said then."""

    path = models.CharField(max_length=300)
    fingerprint = models.CharField(max_length=64)
    read_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["path", "tenant"], name="one_reading_per_folder")]

    def __str__(self) -> str:
        return self.path
