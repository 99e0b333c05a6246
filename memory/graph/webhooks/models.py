"""Where the world may send, what it sent last, and by which marks a delivery finds its thread."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy

from memory import ids
from memory.tenants.models import Tenant, TenantOwned


def endpoint_id() -> str:
    return ids.mint("endpoint")


class Endpoint(TenantOwned):
    """One address that takes webhooks. Its id stands in the address; the secret proves who sends."""

    class Kind(models.TextChoices):
        GITHUB = "github", "GitHub"
        GITLAB = "gitlab", "GitLab"
        SLACK = "slack", "Slack"
        MAIL = "mail", gettext_lazy("Mail")
        GENERIC = "generic", gettext_lazy("Any other")

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="endpoints")
    public_id = models.CharField(max_length=100, default=endpoint_id)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=120)
    # What the triggers say as their source, and what their threads' keys begin with.
    source = models.CharField(max_length=60)
    # How a sender proves itself, and for `generic` which header says it and how: see proofs.Proof.
    proof = models.JSONField(default=dict)
    field_map = models.JSONField(default=dict)
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    rotated_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_endpoint_per_id"),
            models.UniqueConstraint(fields=["name", "tenant"], name="one_endpoint_per_name"),
            models.CheckConstraint(
                condition=Q(kind__in=["github", "gitlab", "slack", "mail", "generic"]),
                name="an_endpoint_has_a_known_kind",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> str:
        """The address below the app's own."""
        return f"/api/v1/webhooks/{self.kind}/{self.public_id}"


class Delivery(TenantOwned):
    """One of the last calls of an endpoint, without its body: what became of it and why."""

    class Status(models.TextChoices):
        ACCEPTED = "accepted"
        REPEATED = "repeated"
        IGNORED = "ignored"
        REFUSED = "refused"

    endpoint = models.ForeignKey(
        Endpoint, models.CASCADE, db_constraint=False, db_index=False, related_name="deliveries"
    )
    at = models.DateTimeField(default=timezone.now)
    status = models.CharField(max_length=10, choices=Status.choices)
    # Why it was refused or ignored: the problem's code, and its words.
    code = models.CharField(max_length=60, blank=True)
    detail = models.CharField(max_length=300, blank=True)
    delivery_id = models.CharField(max_length=300, blank=True)
    event = models.CharField(max_length=100, blank=True)
    size = models.BigIntegerField(default=0)
    trigger_public_id = models.CharField(max_length=100, blank=True)
    thread_public_id = models.CharField(max_length=100, blank=True)
    # A flood of the same refusal is one row that counts.
    times = models.IntegerField(default=1)

    class Meta:
        indexes = [models.Index(fields=["endpoint", "status", "-at"], name="graph_delivery_latest")]

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S} {self.status}"


class Mark(TenantOwned):
    """Something by which later deliveries know a thread: a PR's number, branch and commits; a mail's id."""

    mark = models.CharField(max_length=400)
    key = models.CharField(max_length=300)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mark", "tenant"], name="one_thread_per_mark")]

    def __str__(self) -> str:
        return f"{self.mark} {self.key}"
