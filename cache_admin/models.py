"""Stored tool results and file analyses."""

from django.db import models

from memory import ids
from memory.events.models import Project
from memory.tenants.models import Tenant, TenantOwned


def result_id() -> str:
    return ids.mint("result")


def analysis_id() -> str:
    return ids.mint("analysis")


class Result(TenantOwned):
    """A stored tool result; its full text is in the body store under `sha256`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="results")
    public_id = models.CharField(max_length=100, default=result_id)
    tool = models.CharField(max_length=200)
    sha256 = models.BinaryField()
    summary = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "public_id"], name="one_result_per_id")]

    def __str__(self) -> str:
        return self.public_id


class Analysis(TenantOwned):
    """A stored analysis of one file content."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="analyses")
    public_id = models.CharField(max_length=100, default=analysis_id)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="analyses")
    content_hash = models.CharField(max_length=100)
    analysis_type = models.CharField(max_length=100)
    version = models.CharField(max_length=100)
    parameters = models.CharField(max_length=64, blank=True)
    content = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_analysis_per_id"),
            models.UniqueConstraint(
                fields=["tenant", "content_hash", "analysis_type", "version", "parameters"],
                name="one_analysis_per_content_and_version",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id
