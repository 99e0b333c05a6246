"""A team and what it owns: members, agent keys, login links, the audit and what is due."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy

from memory import ids
from memory.tenants.rls import NIL

RATE_LIMIT = 600_000


def tenant_id() -> str:
    return ids.mint("tenant")


def member_id() -> str:
    return ids.mint("member")


def key_id() -> str:
    return ids.mint("key")


def invitation_id() -> str:
    return ids.mint("invitation")


def filter_id() -> str:
    return ids.mint("filter")


def message_id() -> str:
    return ids.mint("message")


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=email.strip().lower(), **fields)
        if password:
            user.set_password(password)
        else:
            user.set_unusable_password()
        user.save()
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email__iexact=(username or "").strip())


class User(AbstractBaseUser):
    """A person. What they may do hangs on their membership in a tenant, never on the user."""

    id = models.UUIDField(primary_key=True, default=ids.new_key, editable=False)
    email = models.EmailField(max_length=254, unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    # Whoever runs the server: they make, suspend, export and delete teams, and are in none by it.
    is_operator = models.BooleanField(default=False, db_default=False)
    # What pages speak to this person; empty: what their browser asks for.
    language = models.CharField(max_length=10, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = UserManager()
    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"

    def __str__(self) -> str:
        return self.email


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=ids.new_key, editable=False)
    public_id = models.CharField(max_length=100, unique=True, default=tenant_id)
    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    suspended_at = models.DateTimeField(null=True)
    # When all that is the team's goes for good. It is suspended until then, and may be kept.
    delete_at = models.DateTimeField(null=True)
    # Whether any of its projects is limited. The database keeps it, so that nobody else has to ask who sees what.
    has_limits = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        constraints = [
            # The nil uuid means "no tenant bound"; a tenant with that id would be visible to every unbound query.
            models.CheckConstraint(condition=~Q(id=NIL), name="nil_is_no_tenant"),
            models.CheckConstraint(
                condition=Q(delete_at=None) | Q(suspended_at__isnull=False), name="what_is_to_be_deleted_is_suspended"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class TenantOwned(models.Model):
    """A row of one tenant. Its table has row level security; its foreign keys carry the tenant."""

    id = models.UUIDField(primary_key=True, default=ids.new_key, editable=False)
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")

    class Meta:
        abstract = True


class Role(models.TextChoices):
    OWNER = "owner"
    ADMIN = "admin"
    REVIEWER = "reviewer"
    MEMBER = "member"
    VIEWER = "viewer"


class MemberQuerySet(models.QuerySet["Member"]):
    def current(self) -> "MemberQuerySet":
        return self.filter(removed_at__isnull=True)


class Member(TenantOwned):
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="members")
    public_id = models.CharField(max_length=100, default=member_id)
    user = models.ForeignKey(User, models.PROTECT, related_name="memberships")
    handle = models.SlugField(max_length=60)
    role = models.CharField(max_length=12, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True)

    objects = MemberQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_member_per_id"),
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_user"),
            models.UniqueConstraint(fields=["tenant", "handle"], name="one_member_per_handle"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="a_member_has_a_known_role"),
        ]

    def __str__(self) -> str:
        return self.handle


class AgentKey(TenantOwned):
    """A secret an agent presents. Only its SHA-256 is kept."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="keys")
    public_id = models.CharField(max_length=100, default=key_id)
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, related_name="keys")
    name = models.CharField(max_length=120)
    hash = models.BinaryField(unique=True)
    display = models.CharField(max_length=30)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    # Calls a minute. The default is above what one machine serves: it stops a loop across machines, and no import.
    rate_limit = models.IntegerField(default=RATE_LIMIT, db_default=RATE_LIMIT)
    # The keys of the projects it works in; null is all that its member sees, empty is none. Projects live on a higher
    # rung, so no foreign key stands here, and a project that is gone opens nothing.
    only_projects = ArrayField(models.UUIDField(), null=True, blank=True)
    rotated_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, db_constraint=False, db_index=False, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_key_per_id"),
            models.CheckConstraint(condition=Q(rate_limit__gte=1), name="a_key_may_call_at_least_once_a_minute"),
        ]

    def __str__(self) -> str:
        return self.display


class KeySpend(models.Model):
    """How far a key has spent its calls in advance (GCRA): up to a minute from now."""

    key = models.OneToOneField(AgentKey, models.CASCADE, db_constraint=False, primary_key=True, related_name="+")
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    spent_until = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.key_id)


class KeyDay(TenantOwned):
    """What a key asked for on one day, by the first word of the address."""

    key = models.ForeignKey(AgentKey, models.CASCADE, db_constraint=False, db_index=False, related_name="days")
    day = models.DateField()
    door = models.CharField(max_length=24)
    calls = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "day", "door"], name="one_count_per_key_day_and_door")]

    def __str__(self) -> str:
        return f"{self.day} {self.door} {self.calls}"


class Invitation(TenantOwned):
    """A one-time way into a team, for one e-mail address. Only the token's SHA-256 is kept."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="invitations")
    public_id = models.CharField(max_length=100, default=invitation_id)
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=12, choices=Role.choices)
    invited_by = models.ForeignKey(Member, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    hash = models.BinaryField(unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_invitation_per_id"),
            models.UniqueConstraint(
                fields=["email", "tenant"],
                condition=Q(accepted_at=None, withdrawn_at=None),
                name="one_open_invitation_per_address",
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="an_invitation_has_a_known_role"),
        ]

    def __str__(self) -> str:
        return self.email


# What browsers call themselves, the narrower first: most say that they are Chrome and Safari too.
_PROGRAMS = (
    *(("Edg/", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox")),
    *(("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome"), ("Safari/", "Safari"), ("curl/", "curl")),
)
_SYSTEMS = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("CrOS", "ChromeOS")),
    *(("Windows", "Windows"), ("Mac OS X", "macOS"), ("Linux", "Linux")),
)


class Browser(models.Model):
    """A browser in which a user is logged in; it goes with its session."""

    id = models.UUIDField(primary_key=True, default=ids.new_key, editable=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="browsers")
    session_key = models.CharField(max_length=40, unique=True)
    ip = models.CharField(max_length=60, blank=True)
    agent = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id} {self.at}"

    @property
    def name(self) -> str:
        """What a person calls it: "Firefox on Windows"."""
        program = next((name for mark, name in _PROGRAMS if mark in self.agent), "")
        system = next((name for mark, name in _SYSTEMS if mark in self.agent), "")
        if program and system:
            return gettext("%(program)s on %(system)s") % {"program": program, "system": system}
        return program or self.agent or gettext("Unknown browser")


class LoginLink(TenantOwned):
    """A one-time way in for one user. Only the token's SHA-256 is kept."""

    user = models.ForeignKey(User, models.CASCADE, related_name="login_links")
    hash = models.BinaryField(unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.pk)


class KnownId(models.Model):
    """Given and deleted ids: a row here keeps the id from ever being used again."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    public_id = models.CharField(max_length=100)
    reason = models.CharField(max_length=10, choices=[("given", "given"), ("deleted", "deleted")])
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id", "reason"], name="an_id_is_given_and_deleted_once")
        ]

    def __str__(self) -> str:
        return self.public_id


class AuditHead(models.Model):
    """The end of a tenant's audit chain; its row lock orders the entries."""

    tenant = models.OneToOneField(Tenant, models.CASCADE, db_constraint=False, primary_key=True, related_name="+")
    seq = models.BigIntegerField(default=0)
    hash = models.BinaryField(default=bytes)

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.seq}"


class AuditEntry(TenantOwned):
    """Who did what, and what was refused. Hash-chained; the runtime role can only append."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="audit")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=10)
    actor_id = models.CharField(max_length=100)
    actor_label = models.CharField(max_length=200)
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=300, blank=True)
    before = models.CharField(max_length=200, blank=True)
    after = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=10, default="done")
    ip = models.CharField(max_length=60, blank=True)
    request_id = models.CharField(max_length=60, blank=True)
    previous_hash = models.BinaryField()
    hash = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "seq"], name="one_audit_entry_per_seq")]
        indexes = [
            # What a member is shown of who read their own notes: of millions of entries, a few.
            models.Index(
                fields=["before", "-seq"], condition=Q(action="note.read_private"), name="tenants_private_readings"
            )
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.action}"


class Due(TenantOwned):
    """Work that waits for a worker. The broker only carries; this row is what is true, and a sweeper re-sends it."""

    task = models.CharField(max_length=60)
    argument = models.CharField(max_length=200)
    due_at = models.DateTimeField()
    attempts = models.IntegerField(default=0)
    owner = models.CharField(max_length=80, blank=True)
    leased_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "task", "argument"], name="work_is_due_once")]
        indexes = [models.Index(fields=["due_at"], name="tenants_due_at")]

    def __str__(self) -> str:
        return f"{self.task} {self.argument}"


class Setting(TenantOwned):
    """What a team chose itself; without a row the server's default holds. A secret is encrypted, `value` is empty."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="settings")
    name = models.CharField(max_length=60)
    value = models.TextField(blank=True)
    secret = models.BinaryField(null=True)
    changed_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "tenant"], name="a_setting_is_set_once")]

    def __str__(self) -> str:
        return self.name


class SignOn(TenantOwned):
    """How a team's members come in by single sign-on: OpenID Connect or SAML. The client's secret is encrypted."""

    class Protocol(models.TextChoices):
        OIDC = "oidc", "OpenID Connect"
        SAML = "saml", "SAML 2.0"

    tenant = models.OneToOneField(Tenant, models.CASCADE, db_constraint=False, related_name="sign_on")
    protocol = models.CharField(max_length=4, choices=Protocol.choices, default=Protocol.OIDC)
    # Of SAML: the provider's entity id.
    issuer = models.CharField(max_length=500)
    # OpenID Connect only.
    client_id = models.CharField(max_length=300, blank=True)
    secret = models.BinaryField()
    # SAML only: where people are sent, and by which certificates (PEM) the provider signs.
    sso_url = models.CharField(max_length=2000, blank=True)
    certificates = models.JSONField(default=list, blank=True)
    # Only addresses of these domains come in, with spaces between them; empty: of any.
    domains = models.CharField(max_length=1000, blank=True)
    # What who comes for the first time becomes; empty: only members and who is invited come in.
    role = models.CharField(max_length=12, choices=Role.choices, blank=True)
    # Members come in by it alone; owners keep their other ways.
    is_required = models.BooleanField(default=False)
    # Whether an owner saved where it leads: whoever decides that could come in as anybody.
    is_for_owners = models.BooleanField(default=False)
    # Since when it leads where it does. A login before that proves nothing of it.
    connected_at = models.DateTimeField()
    changed_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(role__in=["", "reviewer", "member", "viewer"]), name="nobody_joins_by_sign_on_as_an_admin"
            ),
        ]

    def __str__(self) -> str:
        return self.issuer

    @property
    def authority(self) -> str:
        """Whose names for people they are. A provider that speaks both protocols may use one issuer, and two names."""
        return f"saml:{self.issuer}" if self.protocol == self.Protocol.SAML else self.issuer

    def needs(self, member: Member) -> bool:
        """Whether the member comes in by it alone."""
        return self.is_required and member.role != Role.OWNER


class Identity(TenantOwned):
    """Who a member is at the team's provider: its name for them, which no change of address changes."""

    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, db_index=False, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    linked_at = models.DateTimeField(auto_now_add=True)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject", "issuer", "tenant"], name="one_member_per_identity"),
            models.UniqueConstraint(fields=["member", "issuer"], name="one_identity_per_member_and_provider"),
        ]

    def __str__(self) -> str:
        return self.subject


class Arrival(TenantOwned):
    """An assertion of a SAML provider that was checked: it is taken once, and waits for the browser that asked.

    The provider's page posts it from another site, so that the browser sends no session with it.
    """

    # SHA-256 of the assertion's name, and of the question that it answers.
    assertion = models.BinaryField()
    asked = models.BinaryField()
    # What it says of the person, sealed; empty once that was used.
    claims = models.BinaryField(blank=True)
    at = models.DateTimeField()
    # A repeat after this is refused by its time.
    ends_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assertion", "tenant"], name="an_assertion_is_taken_once"),
        ]
        indexes = [models.Index(fields=["asked", "tenant"], name="tenants_arrival_asked")]

    def __str__(self) -> str:
        return f"arrived {self.at}"


class MessageQuerySet(models.QuerySet["Message"]):
    def troubled(self) -> "MessageQuerySet":
        """Those that did not arrive, or perhaps not, and that nobody has looked after yet."""
        return self.filter(state__in=("failed", "unknown"))


class Message(TenantOwned):
    """A mail or a webhook call that leaves the server. What it says is sealed, and forgotten once it was sent."""

    class Channel(models.TextChoices):
        MAIL = "mail", gettext_lazy("Mail")
        SLACK = "slack", "Slack"
        WEBHOOK = "webhook", "Webhook"

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        # Handed over just now. Who finds this on taking the work over can't know whether the other side has it.
        SENDING = "sending", gettext_lazy("Sending")
        SENT = "sent", gettext_lazy("Sent")
        FAILED = "failed", gettext_lazy("Not sent")
        UNKNOWN = "unknown", gettext_lazy("Not known")

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="messages")
    public_id = models.CharField(max_length=100, default=message_id)
    # What it is about, so that the same occasion makes one message, however often it is told.
    occasion = models.CharField(max_length=200)
    channel = models.CharField(max_length=8, choices=Channel.choices)
    # To whom, as an admin may see it: an address, or a webhook's host.
    recipient = models.CharField(max_length=300)
    about = models.CharField(max_length=200)
    sealed = models.BinaryField(null=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    attempts = models.IntegerField(default=0)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    tried_at = models.DateTimeField(null=True)
    # When it is tried again, where it waits after a failure.
    next_at = models.DateTimeField(null=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_message_per_id"),
            models.UniqueConstraint(fields=["occasion", "tenant"], name="one_message_per_occasion"),
        ]
        indexes = [models.Index(fields=["tenant", "created_at"], name="tenants_message_latest")]

    def __str__(self) -> str:
        return f"{self.channel} {self.about}"


class SavedFilterQuerySet(models.QuerySet["SavedFilter"]):
    def standing(self) -> "SavedFilterQuerySet":
        return self.filter(removed_at__isnull=True)


class SavedFilter(TenantOwned):
    """What a member filters a list by, under a name: theirs, or shown to the whole team."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="filters")
    public_id = models.CharField(max_length=100, default=filter_id)
    member = models.ForeignKey(Member, models.CASCADE, db_constraint=False, db_index=False, related_name="filters")
    # The name of the page's address, and of a page that is of one thing that thing's id.
    page = models.CharField(max_length=40)
    of = models.CharField(max_length=100, blank=True)
    name = models.CharField(max_length=60)
    # As the page's own form would send it: only what the page takes, never an address.
    query = models.CharField(max_length=1000)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    # It can be brought back for a while.
    removed_at = models.DateTimeField(null=True)

    objects = SavedFilterQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id", "tenant"], name="one_filter_per_id"),
            models.UniqueConstraint(
                fields=["member", "page", "of", "name"],
                condition=Q(removed_at__isnull=True),
                name="one_filter_per_name_and_list",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "page"],
                condition=Q(is_shared=True, removed_at__isnull=True),
                name="tenants_filter_all",
            )
        ]

    def __str__(self) -> str:
        return self.name


class OperatorEntry(models.Model):
    """What an operator did to a team. It outlives the team; the runtime role adds lines and can't read them."""

    id = models.UUIDField(primary_key=True, default=ids.new_key, editable=False)
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=10)
    actor_label = models.CharField(max_length=200)
    action = models.CharField(max_length=60)
    # The team, or the person who became an operator.
    target = models.CharField(max_length=254)
    target_id = models.CharField(max_length=100, blank=True)
    after = models.CharField(max_length=200, blank=True)
    ip = models.CharField(max_length=60, blank=True)
    request_id = models.CharField(max_length=60, blank=True)

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
