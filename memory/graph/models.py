"""The id graph: threads, triggers, workers, and the content-addressed store of payload bodies."""

from django.db import models

from memory import ids
from memory.tenants.models import Tenant, TenantOwned


def thread_id() -> str:
    return ids.mint("thread")


def trigger_id() -> str:
    return ids.mint("trigger")


def worker_id() -> str:
    return ids.mint("worker")


class Thread(TenantOwned):
    """A chain of related events. Its row lock gives its events a dense `seq`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="threads")
    public_id = models.CharField(max_length=100, default=thread_id)
    key = models.CharField(max_length=300, null=True)  # noqa: DJ001 - no key is not the empty key; NULLs are distinct
    title = models.TextField(blank=True)
    state = models.CharField(max_length=20, default="open")
    summary = models.TextField(blank=True)
    last_seq = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_thread_per_id"),
            models.UniqueConstraint(fields=["tenant", "key"], name="one_thread_per_key"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Trigger(TenantOwned):
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="triggers")
    public_id = models.CharField(max_length=100, default=trigger_id)
    thread = models.ForeignKey(Thread, models.CASCADE, db_constraint=False, related_name="triggers")
    seq = models.BigIntegerField()
    source = models.CharField(max_length=100)
    external_id = models.CharField(max_length=300, null=True)  # noqa: DJ001 - as for a thread's key
    occurred_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(auto_now_add=True)
    summary = models.TextField(blank=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_trigger_per_id"),
            models.UniqueConstraint(fields=["tenant", "source", "external_id"], name="one_trigger_per_external_id"),
            models.UniqueConstraint(fields=["thread", "seq"], name="one_trigger_per_position"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Worker(TenantOwned):
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="workers")
    public_id = models.CharField(max_length=100, default=worker_id)
    thread = models.ForeignKey(Thread, models.SET_NULL, null=True, db_constraint=False, related_name="workers")
    task = models.TextField(blank=True)
    state = models.CharField(max_length=20, default="running")
    report = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "public_id"], name="one_worker_per_id")]

    def __str__(self) -> str:
        return self.public_id


class Body(models.Model):
    """A payload too large for its row: addressed by SHA-256, compressed. The table is partitioned by `stored_on`
    (a month), so that retention can drop bodies without touching the rows that point at them.
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
