"""Stored tool results, file analyses and answered questions, and the record of how they were used."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from memory import ids
from memory.events.models import Project
from memory.tenants.models import AgentKey, Member, Tenant, TenantOwned


def result_id() -> str:
    return ids.mint("result")


def analysis_id() -> str:
    return ids.mint("analysis")


def incident_id() -> str:
    return ids.mint("incident")


class CacheSetting(TenantOwned):
    """What holds for all of a team's caches. A new salt makes everything stored before unreachable."""

    salt = models.IntegerField(default=0)
    quota_bytes = models.BigIntegerField(default=1024**3)
    analysis_days = models.IntegerField(default=30)
    prices = models.JSONField(default=dict)
    currency = models.CharField(max_length=3, default="USD", db_default="USD")
    started_on = models.DateField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="one_cache_setting_per_team"),
            models.CheckConstraint(condition=Q(analysis_days__range=(7, 30)), name="analyses_are_kept_7_to_30_days"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.salt}"


class ToolPolicy(TenantOwned):
    """A team's own decision on one tool; without a row the defaults of policy.py hold."""

    tenant = models.ForeignKey(
        Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="tool_policies"
    )
    tool = models.CharField(max_length=200)
    revision = models.IntegerField(default=1)
    salt = models.IntegerField(default=0)
    mode = models.CharField(max_length=8, default="off")
    scope = models.CharField(max_length=8, default="project")
    ttl_s = models.IntegerField(null=True)
    by_content = models.BooleanField(default=False)
    read_only = models.BooleanField(default=False)
    has_effects = models.BooleanField(default=False)
    rules = models.JSONField(default=dict)
    schema = models.JSONField(default=dict)
    summariser = models.CharField(max_length=10, default="auto")
    empty_ttl_s = models.IntegerField(default=0)
    lease_s = models.IntegerField(default=60)
    shadow_percent = models.IntegerField(default=0)
    semantic = models.BooleanField(default=False)
    threshold = models.FloatField(default=0.92)
    worst_outcome = models.CharField(max_length=10, blank=True)
    invalidates = models.BooleanField(default=False)
    updated_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "tenant"], name="one_policy_per_tool"),
            models.CheckConstraint(
                condition=Q(mode="off") | Q(by_content=True) | Q(ttl_s__isnull=False),
                name="what_has_no_content_hash_has_a_lifetime",
            ),
            models.CheckConstraint(
                condition=Q(mode="off") | Q(has_effects=False), name="side_effects_are_never_cached"
            ),
        ]

    def __str__(self) -> str:
        return self.tool


class Content(TenantOwned):
    """A full text, addressed by its SHA-256: equal results of a team are kept once."""

    sha256 = models.BinaryField()
    size = models.BigIntegerField()
    codec = models.CharField(max_length=8)
    content = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sha256", "tenant"], name="one_content_per_hash")]

    def __str__(self) -> str:
        return bytes(self.sha256).hex()


class Result(TenantOwned):
    """A stored tool result; its full text is the `Content` of its `sha256`."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="results")
    public_id = models.CharField(max_length=100, default=result_id)
    tool = models.CharField(max_length=200)
    sha256 = models.BinaryField()
    is_json = models.BooleanField(default=False)
    summary = models.TextField(blank=True)
    summariser = models.CharField(max_length=10, blank=True)
    chars = models.BigIntegerField(default=0)
    tokens = models.IntegerField(default=0)
    summary_tokens = models.IntegerField(default=0)
    redactions = models.IntegerField(default=0)
    owner = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    is_private = models.BooleanField(default=False)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    writer_key = models.ForeignKey(AgentKey, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    expansions = models.IntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_result_per_id")]
        indexes = [
            models.Index(fields=["sha256"], name="cache_results_of_content"),
            models.Index(fields=["expires_at"], name="cache_results_ending"),
        ]

    def __str__(self) -> str:
        return self.public_id


class Entry(TenantOwned):
    """One answer under one key. `document` is what the key was made of; it is compared on every hit."""

    tenant = models.ForeignKey(
        Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="cache_entries"
    )
    key = models.BinaryField()
    identity = models.BinaryField()
    document = models.TextField()
    tool = models.CharField(max_length=200)
    scope = models.CharField(max_length=1040)
    content_hash = models.CharField(max_length=200, blank=True)
    project = models.ForeignKey(Project, models.CASCADE, null=True, db_constraint=False, related_name="+")
    result = models.ForeignKey(Result, models.CASCADE, db_constraint=False, related_name="entries")
    writer = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    writer_key = models.ForeignKey(AgentKey, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    duration_ms = models.IntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_hit_at = models.DateTimeField(auto_now_add=True)
    # Those of days that are over: today's are still `Lookup`s, so that a hit need not write here.
    hits = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "tenant"], name="one_entry_per_key")]
        indexes = [
            models.Index(fields=["identity"], name="cache_entries_of_call"),
            models.Index(fields=["content_hash"], name="cache_entries_of_content"),
            models.Index(fields=["expires_at"], name="cache_entries_ending"),
            models.Index(fields=["last_hit_at"], name="cache_entries_idle"),
        ]

    def __str__(self) -> str:
        return bytes(self.key).hex()


class EntryPath(TenantOwned):
    """A path that an entry's call names, so that a write there drops it."""

    entry = models.ForeignKey(Entry, models.CASCADE, db_constraint=False, related_name="paths")
    path = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["path"], name="cache_entries_of_path")]

    def __str__(self) -> str:
        return self.path


class Flight(TenantOwned):
    """A call that somebody makes for all who ask: its lease, and what its key is made of."""

    key = models.BinaryField()
    lease = models.CharField(max_length=80)
    granted_at = models.DateTimeField()
    until = models.DateTimeField()
    inputs = models.JSONField()
    document = models.TextField()
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "tenant"], name="one_flight_per_key")]
        indexes = [models.Index(fields=["until"], name="cache_flights_ending")]

    def __str__(self) -> str:
        return bytes(self.key).hex()


class Shown(TenantOwned):
    """A session that was given a result needs only its id the next time."""

    session = models.CharField(max_length=200)
    result = models.ForeignKey(Result, models.CASCADE, db_constraint=False, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["result", "session"], name="a_result_is_shown_once")]

    def __str__(self) -> str:
        return self.session


class Lookup(TenantOwned):
    """A question put to a cache and what became of it. Rows are only added; days that are over become `ToolDay`s.

    Of a batch, one row stands for all that went the same way: `times` of them, with the sums of their tokens.
    """

    at = models.DateTimeField()
    tool = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    status = models.CharField(max_length=10)
    reason = models.CharField(max_length=30, blank=True)
    times = models.IntegerField(default=1, db_default=1)
    would_hit = models.BooleanField(default=False)
    result_pk = models.UUIDField(null=True)
    tokens_stored = models.IntegerField(default=0)
    tokens_returned = models.IntegerField(default=0)
    saved_ms = models.IntegerField(default=0)
    hash_us = models.IntegerField(default=0)
    lookup_us = models.IntegerField(default=0)
    embed_us = models.IntegerField(default=0)
    member = models.UUIDField(null=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="cache_lookups_by_time")]

    def __str__(self) -> str:
        return f"{self.tool} {self.status}"


class ToolDay(TenantOwned):
    """A tool's day, summed up: `counts` by status, and `reasons` by reason."""

    day = models.DateField()
    tool = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    counts = models.JSONField(default=dict)
    reasons = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["day", "tool", "kind", "tenant"], name="one_sum_per_tool_and_day")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.tool}"


class Incident(TenantOwned):
    """An answer from a cache that was not what the tool would have said."""

    tenant = models.ForeignKey(
        Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="cache_incidents"
    )
    public_id = models.CharField(max_length=100, default=incident_id)
    kind = models.CharField(max_length=20)
    tool = models.CharField(max_length=200)
    result_id_text = models.CharField(max_length=100, blank=True)
    detail = models.TextField(blank=True)
    document = models.TextField(blank=True)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    reporter = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["public_id", "tenant"], name="one_incident_per_id")]
        indexes = [models.Index(fields=["at"], name="cache_incidents_by_time")]

    def __str__(self) -> str:
        return self.public_id


class Alert(TenantOwned):
    """That a tool's cache went wrong, from the moment it did until it was well again: told once.

    `rate` and `usual` are hit rates, of a collapse alone.
    """

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="cache_alerts")
    kind = models.CharField(max_length=10)
    tool = models.CharField(max_length=200)
    call_kind = models.CharField(max_length=10, default="tool")
    rate = models.FloatField(null=True)
    usual = models.FloatField(null=True)
    raised_at = models.DateTimeField(auto_now_add=True)
    cleared_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tool", "kind", "call_kind", "tenant"],
                condition=Q(cleared_at__isnull=True),
                name="an_alert_is_raised_once",
            )
        ]
        indexes = [models.Index(fields=["raised_at"], name="cache_alerts_by_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.tool}"


class Analysis(TenantOwned):
    """A stored analysis of one file content. `bound_path` is empty unless the text speaks of its path."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="analyses")
    public_id = models.CharField(max_length=100, default=analysis_id)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="analyses")
    # Shared within its project only: it was limited, or the key that wrote it was.
    is_limited = models.BooleanField(default=False)
    content_hash = models.CharField(max_length=100)
    analysis_type = models.CharField(max_length=100)
    version = models.CharField(max_length=100)
    parameters = models.CharField(max_length=64, blank=True)
    bound_path = models.TextField(blank=True)
    content = models.JSONField()
    made_by = models.JSONField(default=dict)
    tokens = models.IntegerField(default=0)
    duration_ms = models.IntegerField(null=True)
    writer = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    writer_key = models.ForeignKey(AgentKey, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_analysis_per_id"),
            models.UniqueConstraint(
                fields=["content_hash", "analysis_type", "version", "parameters", "bound_path", "tenant"],
                condition=Q(is_limited=False),
                name="one_analysis_per_content_and_version",
            ),
            models.UniqueConstraint(
                fields=["content_hash", "analysis_type", "version", "parameters", "bound_path", "project", "tenant"],
                condition=Q(is_limited=True),
                name="one_analysis_per_limited_project",
            ),
        ]
        indexes = [
            models.Index(fields=["last_used_at"], name="cache_analyses_idle"),
            # The unique ones above are partial, and a lookup asks for both kinds.
            models.Index(fields=["content_hash"], name="cache_analyses_of_hash"),
        ]

    def __str__(self) -> str:
        return self.public_id


class AnalysisPath(TenantOwned):
    """A path at which an analysed content was seen; how often it was asked for makes a file hot."""

    analysis = models.ForeignKey(Analysis, models.CASCADE, db_constraint=False, related_name="seen_at")
    project = models.ForeignKey(Project, models.CASCADE, null=True, db_constraint=False, related_name="+")
    path = models.TextField()
    uses = models.IntegerField(default=1)
    last_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["analysis", "path"], name="a_path_is_seen_once")]

    def __str__(self) -> str:
        return self.path


class PathsSeen(TenantOwned):
    """The paths that one batch found analyses for, until a worker adds them up in `AnalysisPath`.

    Added up at once, a thousand rows took four fifths of a batch's time.
    """

    project = models.UUIDField(null=True)
    analyses = ArrayField(models.UUIDField())
    paths = ArrayField(models.TextField())
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{len(self.paths)} paths"


class Pair(TenantOwned):
    """Two questions that look alike, for a person to say whether they ask the same."""

    tenant = models.ForeignKey(
        Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="question_pairs"
    )
    tool = models.CharField(max_length=200)
    asked = models.TextField()
    matched = models.TextField()
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    score = models.FloatField()
    guard = models.CharField(max_length=20, blank=True)
    was_served = models.BooleanField(default=False)
    verdict = models.CharField(max_length=9, blank=True, choices=[("same", "same"), ("different", "different")])
    decided_by = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="cache_pairs_by_time")]

    def __str__(self) -> str:
        return f"{self.score:.3f} {self.asked[:40]}"


class Decision(TenantOwned):
    """What became of a question whose words nobody had asked before: the nearest one, how alike, and why (not) served.

    `score` is None, and `matched` empty, where the space held no question yet.
    """

    tenant = models.ForeignKey(
        Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="question_decisions"
    )
    tool = models.CharField(max_length=200)
    asked = models.TextField()
    matched = models.TextField(blank=True)
    project = models.ForeignKey(Project, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    score = models.FloatField(null=True)
    threshold = models.FloatField()
    outcome = models.CharField(max_length=30)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["at"], name="cache_decisions_by_time")]

    def __str__(self) -> str:
        return f"{self.outcome} {self.asked[:40]}"


class PairsWeek(TenantOwned):
    """A week, by its Monday, in which the inbox says that pairs wait."""

    week = models.DateField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "week"], name="pairs_are_told_of_once_a_week")]

    def __str__(self) -> str:
        return f"{self.week}"


class Usage(TenantOwned):
    """What a model call took, as its provider counted it."""

    message_id = models.CharField(max_length=200)
    model = models.CharField(max_length=120)
    provider = models.CharField(max_length=20)
    harness = models.CharField(max_length=40, blank=True)
    input_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["message_id", "tenant"], name="one_usage_per_message")]
        indexes = [models.Index(fields=["at"], name="cache_usage_by_time")]

    def __str__(self) -> str:
        return self.message_id


class Watermark(TenantOwned):
    """How far a session's events were read for writes to files, and for what its model calls took."""

    session = models.ForeignKey("events.Session", models.CASCADE, db_constraint=False, related_name="+")
    seq = models.BigIntegerField(default=0)
    usage_seq = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session"], name="one_cache_watermark_per_session")]

    def __str__(self) -> str:
        return f"{self.session_id} {self.seq}"
