"""What agents did: projects, sessions and their events, one row a hook call."""

from typing import Final

from django.db import models
from django.db.models import Q

from memory import ids
from memory.graph.models import Worker
from memory.tenants.models import AgentKey, Member, Tenant, TenantOwned

# The kind of an event whose session was deleted.
DELETED: Final = "deleted"


def project_id() -> str:
    return ids.mint("project")


def session_id() -> str:
    return ids.mint("session")


def event_id() -> str:
    return ids.mint("event")


class ProjectQuerySet(models.QuerySet["Project"]):
    def current(self) -> "ProjectQuerySet":
        return self.filter(merged_into__isnull=True)


class Project(TenantOwned):
    """One body of work, across people, machines and harnesses."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="projects")
    public_id = models.CharField(max_length=100, default=project_id)
    slug = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    merged_into = models.ForeignKey("self", models.SET_NULL, null=True, db_constraint=False, related_name="merged")
    # Only who has a row in `access` sees it, and owners and admins.
    is_limited = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_project_per_id"),
            models.UniqueConstraint(fields=["tenant", "slug"], name="one_project_per_slug"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def label(self) -> str:
        """Its name among others: with the short name, where that says more. Two checkouts share a name."""
        return self.name if self.slug == self.name else f"{self.name} ({self.slug})"


class ProjectAccess(TenantOwned):
    """A member who sees a limited project, by all of their keys; with `key`, by that key only."""

    project = models.ForeignKey(Project, models.CASCADE, db_constraint=False, related_name="access")
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, related_name="+")
    key = models.ForeignKey(AgentKey, models.CASCADE, null=True, db_constraint=False, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "member", "key"], name="access_is_given_once", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.project_id} {self.member_id} {self.key_id or 'all keys'}"


class ProjectRoot(TenantOwned):
    """Where a project was seen: its git remote (normalised) or a workspace root."""

    project = models.ForeignKey(Project, models.CASCADE, db_constraint=False, related_name="roots")
    kind = models.CharField(max_length=6, choices=[("remote", "remote"), ("root", "root")])
    place = models.TextField()
    first_seen_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "place"], name="a_place_is_in_one_project")]

    def __str__(self) -> str:
        return self.place


class Live(models.Manager["Session"]):
    """Sessions that are there. The row of a deleted one stays, without words, so that nobody opens it again."""

    def get_queryset(self) -> "models.QuerySet[Session]":
        return super().get_queryset().filter(deleted_at__isnull=True)


class Kept(models.Manager["Event"]):
    """Events that are there. The row of a deleted one stays, without words, for notes that cite it."""

    def get_queryset(self) -> "models.QuerySet[Event]":
        return super().get_queryset().exclude(kind=DELETED)


class Session(TenantOwned):
    """One run of a coding agent as its hooks report it. Its row lock gives its events a dense `seq`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="sessions")
    public_id = models.CharField(max_length=100, default=session_id)
    client = models.CharField(max_length=40)
    key = models.CharField(max_length=300)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="sessions")
    member = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="sessions")
    worker = models.ForeignKey(Worker, models.SET_NULL, null=True, db_constraint=False, related_name="sessions")
    resumed_from = models.ForeignKey("self", models.SET_NULL, null=True, db_constraint=False, related_name="resumed_by")
    is_internal = models.BooleanField(default=False)
    state = models.CharField(max_length=10, default="open")
    source = models.CharField(max_length=20, blank=True)
    cwd = models.TextField(blank=True)
    model = models.CharField(max_length=120, blank=True)
    transcript_path = models.TextField(blank=True)
    last_prompt = models.TextField(blank=True)
    last_seq = models.BigIntegerField(default=0)
    last_stop_seq = models.BigIntegerField(default=0)
    generation = models.IntegerField(default=0)
    first_received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    objects = Live()
    with_deleted = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_session_per_id"),
            models.UniqueConstraint(fields=["tenant", "client", "key"], name="one_session_per_client_and_key"),
        ]
        indexes = [
            models.Index(fields=["tenant", "-last_received_at", "-id"], name="events_session_latest"),
            models.Index(fields=["project", "-last_received_at"], name="events_session_of_project"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Reading(TenantOwned):
    """How far a session was read for what it works on, and what of it later events need."""

    session = models.OneToOneField(Session, models.CASCADE, db_constraint=False, related_name="reading")
    seq = models.BigIntegerField(default=0)
    # Up to where its workers know of it.
    settled_seq = models.BigIntegerField(default=0)
    # Its repository, as `github:acme/payments`, and where its last words stand.
    home = models.CharField(max_length=300, blank=True)
    said_seq = models.BigIntegerField(default=0)
    named = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.session_id} to {self.seq}"


class Claim(TenantOwned):
    """What a session works on. It waits for its thread, and is settled by the worker that it became there."""

    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, db_index=False, related_name="claims")
    what = models.CharField(max_length=300)
    why = models.CharField(max_length=100)
    # The key of the thread it waits for; a branch's comes with the pull request that it is seen with.
    key = models.CharField(max_length=300, blank=True)
    worker = models.ForeignKey(Worker, models.SET_NULL, null=True, db_constraint=False, related_name="claims")
    is_settled = models.BooleanField(default=False)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "what"], name="one_claim_of_a_session")]
        indexes = [
            models.Index(fields=["key", "tenant"], condition=Q(is_settled=False), name="events_claim_waits"),
            models.Index(fields=["tenant"], condition=Q(is_settled=False), name="events_claim_open"),
        ]

    def __str__(self) -> str:
        return self.what


class Event(TenantOwned):
    """One hook call. `body` is the stored payload up to 16 KB; a larger one is in the body store under `sha256`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="events")
    public_id = models.CharField(max_length=100, default=event_id)
    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, db_index=False, related_name="events")
    seq = models.BigIntegerField()
    client = models.CharField(max_length=40)
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=20)
    key = models.CharField(max_length=300)
    key_is_given = models.BooleanField(default=False)
    occurred_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField()
    agent_key = models.ForeignKey(
        AgentKey, models.SET_NULL, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    member = models.ForeignKey(
        Member, models.SET_NULL, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    agent_id = models.CharField(max_length=200, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    tool_use_id = models.CharField(max_length=200, blank=True)
    summary = models.CharField(max_length=300, blank=True)
    sha256 = models.BinaryField()
    size = models.BigIntegerField()
    body = models.TextField(null=True)  # noqa: DJ001 - null says: spilled
    head = models.TextField(blank=True)
    tail = models.TextField(blank=True)
    redactions = models.IntegerField(default=0)
    sanitized = models.IntegerField(default=0)
    # When retention removed the payload; id, summary and place in the session stay.
    dropped_at = models.DateTimeField(null=True)

    objects = Kept()
    with_deleted = models.Manager()

    class Meta:
        indexes = [
            # Partial, so that no plan but retention's can be tempted by them.
            models.Index(
                fields=["tenant", "received_at"], condition=Q(dropped_at__isnull=True), name="events_event_kept"
            ),
            models.Index(
                fields=["sha256"], condition=Q(body__isnull=True, dropped_at__isnull=True), name="events_event_spilled"
            ),
        ]
        constraints = [
            # The tenant stands last in every index here: before the first ANALYZE the planner takes any index that
            # begins with it, and reads all of a team's events to find one.
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_event_per_id"),
            models.UniqueConstraint(fields=["session", "seq"], name="one_event_per_position"),
            models.UniqueConstraint(fields=["key", "tenant"], name="one_event_per_key"),
            models.CheckConstraint(condition=Q(seq__gt=0), name="positions_start_at_one"),
        ]

    @property
    def is_deleted(self) -> bool:
        return self.kind == DELETED

    def __str__(self) -> str:
        return self.public_id
