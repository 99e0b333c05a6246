"""The id graph: threads, triggers, workers, their steps, and the content-addressed store of payload bodies."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory import ids
from memory.tenants.models import Tenant, TenantOwned


def thread_id() -> str:
    return ids.mint("thread")


def trigger_id() -> str:
    return ids.mint("trigger")


def worker_id() -> str:
    return ids.mint("worker")


def step_id() -> str:
    return ids.mint("event")


class Thread(TenantOwned):
    """A chain of related events. Its row lock gives its steps a dense `seq`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="threads")
    public_id = models.CharField(max_length=100, default=thread_id)
    key = models.CharField(max_length=300, null=True)  # noqa: DJ001 - no key is not the empty key; NULLs are distinct
    title = models.TextField(blank=True)
    state = models.CharField(max_length=20, default="open")
    summary = models.TextField(blank=True)
    # The project whose git remote the key names, put here by the database whenever the one or the other changes; null
    # is the team's. By its key, for projects live on a higher rung.
    project_pk = models.UUIDField(null=True, db_column="project_id", editable=False)
    last_seq = models.BigIntegerField(default=0)
    trigger_count = models.BigIntegerField(default=0)
    worker_count = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(default=timezone.now)
    # `last_at` to ten seconds, for the index: a column that changed with every trigger would make each of a busy
    # thread's updates write all its index entries anew.
    active_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_thread_per_id"),
            models.UniqueConstraint(fields=["key", "tenant"], name="one_thread_per_key"),
        ]
        indexes = [
            models.Index(fields=["tenant", "created_at", "id"], name="graph_thread_in_order"),
            models.Index(
                fields=["tenant", "-active_at"],
                condition=Q(state="open", deleted_at__isnull=True),
                name="graph_thread_open_latest",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Trigger(TenantOwned):
    """One thing that came in. Its parts hold what was sent with it."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="triggers")
    public_id = models.CharField(max_length=100, default=trigger_id)
    thread = models.ForeignKey(Thread, models.CASCADE, db_constraint=False, db_index=False, related_name="triggers")
    seq = models.BigIntegerField()
    source = models.CharField(max_length=100)
    external_id = models.CharField(max_length=300, null=True)  # noqa: DJ001 - as for a thread's key
    idempotency_key = models.CharField(max_length=300, null=True)  # noqa: DJ001 - as for a thread's key
    # What a repeat is compared with: a hash of all that the caller said.
    fingerprint = models.BinaryField(default=bytes)
    occurred_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(default=timezone.now)
    summary = models.TextField(blank=True)
    by = models.CharField(max_length=100, blank=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_trigger_per_id"),
            models.UniqueConstraint(
                fields=["external_id", "source", "tenant"],
                condition=Q(external_id__isnull=False),
                name="one_trigger_per_external_id",
            ),
            models.UniqueConstraint(
                fields=["idempotency_key", "tenant"],
                condition=Q(idempotency_key__isnull=False),
                name="one_trigger_per_idempotency_key",
            ),
            models.UniqueConstraint(fields=["thread", "seq"], name="one_trigger_per_position"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Worker(TenantOwned):
    """One agent doing one task. A report over 16 KB is in the body store under `report_sha256`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="workers")
    public_id = models.CharField(max_length=100, default=worker_id)
    thread = models.ForeignKey(Thread, models.SET_NULL, null=True, db_constraint=False, related_name="workers")
    task = models.TextField(blank=True)
    state = models.CharField(max_length=20, default="running")
    # The hook session it is, by its public id: sessions live on a higher rung.
    session_public_id = models.CharField(max_length=100, blank=True)
    report = models.TextField(blank=True)
    report_head = models.TextField(blank=True)
    report_tail = models.TextField(blank=True)
    report_size = models.BigIntegerField(default=0)
    report_sha256 = models.BinaryField(null=True)
    report_redactions = models.IntegerField(default=0)
    reported_at = models.DateTimeField(null=True)
    # What a dream made of its session, until it reports itself.
    draft_report = models.TextField(blank=True, db_default="")
    last_inbox_seq = models.BigIntegerField(default=0)
    by = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_worker_per_id")]
        indexes = [
            models.Index(
                fields=["session_public_id", "tenant"], condition=~Q(session_public_id=""), name="graph_worker_session"
            ),
            models.Index(
                fields=["report_sha256"], condition=Q(report_sha256__isnull=False), name="graph_worker_spilled"
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Step(models.Model):
    """What happened in a thread, in order: rows are only added. Ids stand here as text, for they never change."""

    pk = models.CompositePrimaryKey("thread_id", "seq")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="steps")
    thread = models.ForeignKey(Thread, models.CASCADE, db_constraint=False, db_index=False, related_name="steps")
    seq = models.BigIntegerField()
    public_id = models.CharField(max_length=100, default=step_id)
    kind = models.CharField(max_length=20)
    trigger_public_id = models.CharField(max_length=100, blank=True)
    worker_public_id = models.CharField(max_length=100, blank=True)
    other_public_id = models.CharField(max_length=100, blank=True)
    summary = models.TextField(blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_step_per_id")]

    def __str__(self) -> str:
        return self.public_id


class Part(models.Model):
    """One part of what came with a trigger: its payload, a full log, a diff. Up to 16 KB it lies here."""

    pk = models.CompositePrimaryKey("trigger_id", "name")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    trigger = models.ForeignKey(Trigger, models.CASCADE, db_constraint=False, db_index=False, related_name="parts")
    name = models.CharField(max_length=40)
    media_type = models.CharField(max_length=200)
    size = models.BigIntegerField()
    sha256 = models.BinaryField()
    redactions = models.IntegerField(default=0)
    sanitized = models.IntegerField(default=0)
    # NULL says: in the body store.
    content = models.BinaryField(null=True)
    stored_at = models.DateTimeField(default=timezone.now)
    # When retention removed the bytes; the rest of the row stays.
    dropped_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # Partial, so that no plan but retention's can be tempted by them.
            models.Index(fields=["tenant", "stored_at"], condition=Q(dropped_at__isnull=True), name="graph_part_kept"),
            models.Index(
                fields=["sha256"],
                condition=Q(content__isnull=True, dropped_at__isnull=True),
                name="graph_part_spilled",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Owner(models.Model):
    """A worker that owns a thread; with `pass_through` new triggers go straight into its inbox."""

    pk = models.CompositePrimaryKey("thread_id", "worker_id")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    thread = models.ForeignKey(Thread, models.CASCADE, db_constraint=False, db_index=False, related_name="owners")
    worker = models.ForeignKey(Worker, models.CASCADE, db_constraint=False, related_name="owned")
    pass_through = models.BooleanField(default=False)
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.thread_id} {self.worker_id}"


class InboxEntry(models.Model):
    """A trigger passed straight through to a worker; `seq` is dense in each worker's inbox."""

    pk = models.CompositePrimaryKey("worker_id", "seq")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    worker = models.ForeignKey(Worker, models.CASCADE, db_constraint=False, db_index=False, related_name="inbox")
    seq = models.BigIntegerField()
    trigger = models.ForeignKey(Trigger, models.CASCADE, db_constraint=False, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.worker_id} {self.seq}"


class Citation(models.Model):
    """A worker's report rests on this id: a trigger, a worker, an event."""

    ORIGINS: ClassVar = [("given", "given"), ("text", "text")]

    pk = models.CompositePrimaryKey("worker_id", "cited")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    worker = models.ForeignKey(Worker, models.CASCADE, db_constraint=False, db_index=False, related_name="citations")
    cited = models.CharField(max_length=100)
    position = models.IntegerField()
    origin = models.CharField(max_length=5, choices=ORIGINS)

    class Meta:
        indexes = [models.Index(fields=["cited", "tenant"], name="graph_citation_of")]

    def __str__(self) -> str:
        return self.cited


class Link(TenantOwned):
    """One thread refers to another; `to_thread` is empty while no thread has the key yet.

    A removed link stays as a row, so that no rule makes it again.
    """

    from_thread = models.ForeignKey(Thread, models.CASCADE, db_constraint=False, related_name="links")
    to_thread = models.ForeignKey(Thread, models.CASCADE, null=True, db_constraint=False, related_name="linked_from")
    to_key = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=40)
    made_by = models.CharField(max_length=100)
    # The trigger or worker that says so, where one does.
    because_of = models.CharField(max_length=100, blank=True)
    made_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["from_thread", "to_thread", "kind"],
                condition=Q(to_thread__isnull=False),
                name="one_link_of_a_kind",
            ),
            models.UniqueConstraint(
                fields=["from_thread", "to_key", "kind"],
                condition=Q(to_thread__isnull=True),
                name="one_pending_link_of_a_kind",
            ),
        ]
        indexes = [
            models.Index(fields=["to_key", "tenant"], condition=Q(to_thread__isnull=True), name="graph_link_pending")
        ]

    def __str__(self) -> str:
        return f"{self.from_thread_id} {self.kind} {self.to_thread_id or self.to_key}"


class Answer(TenantOwned):
    """What was answered under an Idempotency-Key, kept for a day."""

    door = models.CharField(max_length=200)
    key = models.CharField(max_length=300)
    asked = models.BinaryField()
    status = models.IntegerField()
    body = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "door", "tenant"], name="one_answer_per_key")]
        indexes = [models.Index(fields=["at"], name="graph_answer_at")]

    def __str__(self) -> str:
        return self.key


class Body(models.Model):
    """A payload too large for its row: addressed by SHA-256, compressed. The table is partitioned by `stored_on`
    (a month), so that retention can drop bodies without touching the rows that point at them.

    `codec` says how `content` is packed; `s3` that the bytes lie in the storage that settings name.
    """

    pk = models.CompositePrimaryKey("tenant_id", "sha256", "stored_on")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    sha256 = models.BinaryField()
    stored_on = models.DateField()
    size = models.BigIntegerField()
    codec = models.CharField(max_length=8)
    content = models.BinaryField()

    class Meta:
        managed = False
        db_table = "graph_body"

    def __str__(self) -> str:
        return bytes(self.sha256).hex()


from memory.graph.webhooks.models import Delivery, Endpoint, Mark  # noqa: E402, F401 - so that Django knows them
