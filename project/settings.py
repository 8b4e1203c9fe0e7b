"""Django settings, read from environment variables. docs/settings.md describes every variable; a test compares the lists."""

from __future__ import annotations

import sys

from project.command_line import makes_key
from project.cors import cors_policy
from project.env import (
    MIN_TOKEN_LENGTH,
    check_database_url,
    check_time_zone,
    check_token,
    database,
    envbool,
    envchoice,
    envduration,
    envint,
    envlist,
    envshare,
    envstr,
    replica_database,
)
from project.file_storage import check_package, file_storage
from project.model_limits import parse_limits, parse_prices
from project.tls import cookie_name, proxy_header, trusted_proxies
from responses_app.installation.addresses import (
    check_allowed_hosts,
    check_embeddings,
    check_http_url,
    check_sandbox_url,
    check_trusted_origins,
)
from responses_app.installation.data_dir import TEMPLATE_DIR, data_dir
from responses_app.installation.database_url import default_url
from responses_app.installation.secret_key import check_secret_key, secret_key
from responses_app.tools.code_interpreter.setting import DEMO_STARTUP, read_startup_code
from responses_app.tools.file_search.setting import TEXT_SEARCH_LANGUAGES
from responses_app.tools.mcp.setting import parse_mcp_servers, parse_private_hosts, with_demo_server
from responses_app.tools.web_search.setting import DEMO_PAGES, parse_web_search
from responses_app.web.oidc.setting import OidcSettings, check_provider, parse_roles, provider_app

envstr("RESPONSES_DATA_DIR", ".data")
DATA_DIR = data_dir()

DEBUG = envbool("DEBUG")
SECRET_KEY = check_secret_key(envstr("SECRET_KEY")) or secret_key(DATA_DIR, is_stored=makes_key(sys.argv))
SECRET_KEY_FALLBACKS = envstr("SECRET_KEY_FALLBACKS").split()
ALLOWED_HOSTS = check_allowed_hosts(envlist("ALLOWED_HOSTS", "*"))
CSRF_TRUSTED_ORIGINS = check_trusted_origins(envlist("CSRF_TRUSTED_ORIGINS"))
# Origins of browser apps that may call the API, and nothing else.
RESPONSES_CORS_POLICY = cors_policy(envlist("RESPONSES_CORS_ORIGINS"))
RESPONSES_TLS = envbool("RESPONSES_TLS")
SECURE_PROXY_SSL_HEADER = proxy_header(envstr("RESPONSES_TLS_HEADER"), RESPONSES_TLS)
# Proxies whose X-Forwarded-For and RESPONSES_TLS_HEADER count.
RESPONSES_TRUSTED_PROXIES = trusted_proxies(envlist("RESPONSES_TRUSTED_PROXIES"), envstr("RESPONSES_TLS_HEADER"))
HSTS_SECONDS = envint("RESPONSES_HSTS_SECONDS", 31_536_000)
SECURE_HSTS_SECONDS = HSTS_SECONDS if RESPONSES_TLS else 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = RESPONSES_TLS
COOKIE_SUFFIX = envstr("RESPONSES_COOKIE_SUFFIX")
SESSION_COOKIE_NAME = cookie_name("sessionid", COOKIE_SUFFIX)
CSRF_COOKIE_NAME = cookie_name("csrftoken", COOKIE_SUFFIX)

DATABASES = {"default": database(envstr("DATABASE_URL") or default_url(DATA_DIR))}
# Of connections that LISTEN and NOTIFY, where a pooler stands in front of DATABASE_URL.
RESPONSES_LISTEN_DATABASE_URL = envstr("RESPONSES_LISTEN_DATABASE_URL")
if RESPONSES_LISTEN_DATABASE_URL:
    check_database_url("RESPONSES_LISTEN_DATABASE_URL", RESPONSES_LISTEN_DATABASE_URL)
# A standby of the database, which answers lists, searches, the overview and the usage.
if REPLICA_URL := envstr("RESPONSES_REPLICA_DATABASE_URL"):
    DATABASES["replica"] = replica_database(REPLICA_URL)
    DATABASE_ROUTERS = ["responses_app.store.replica.ReplicaRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Sign-in by OpenID Connect. Without an issuer it is off.
OIDC_ISSUER = envstr("RESPONSES_OIDC_ISSUER").strip()
OIDC_CLIENT_ID, OIDC_CLIENT_SECRET = envstr("RESPONSES_OIDC_CLIENT_ID"), envstr("RESPONSES_OIDC_CLIENT_SECRET")
RESPONSES_OIDC = OidcSettings(
    issuer=OIDC_ISSUER,
    name=envstr("RESPONSES_OIDC_NAME", "single sign-on"),
    groups_claim=envstr("RESPONSES_OIDC_GROUPS_CLAIM", "groups"),
    roles=parse_roles(envstr("RESPONSES_OIDC_ROLES").strip()),
    superuser_groups=frozenset(envlist("RESPONSES_OIDC_SUPERUSER_GROUPS")),
    session_age=envduration("RESPONSES_OIDC_SESSION", "12h"),
)
RESPONSES_LOCAL_SIGN_IN = envbool("RESPONSES_LOCAL_SIGN_IN", True)
OIDC_NEEDED_BY = {
    "RESPONSES_OIDC_CLIENT_ID": OIDC_CLIENT_ID,
    "RESPONSES_OIDC_CLIENT_SECRET": OIDC_CLIENT_SECRET,
    "RESPONSES_OIDC_ROLES": RESPONSES_OIDC.roles,
    "RESPONSES_OIDC_SUPERUSER_GROUPS": RESPONSES_OIDC.superuser_groups,
    "RESPONSES_LOCAL_SIGN_IN=0": not RESPONSES_LOCAL_SIGN_IN,
}
check_provider(OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_NEEDED_BY)
OIDC_SCOPES = envlist("RESPONSES_OIDC_SCOPES", "profile email")
SOCIALACCOUNT_PROVIDERS = provider_app(OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_SCOPES)
SOCIALACCOUNT_ADAPTER = "responses_app.web.oidc.adapter.Adapter"
# A link begins a sign-in: the policy of the pages lets no form lead to another site.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_EMAIL_VERIFICATION = ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    # Before the admin pages of our own, which remove those of django-allauth.
    "allauth.account",
    "allauth.socialaccount",
    "responses_app.web.oidc",
    "responses_app",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "responses_app.api.unknown_urls.answer_without_version",
    # Before every middleware that reads or changes the content.
    "responses_app.web.delivery.compression.PageCompression",
    "responses_app.web.delivery.csp.middleware",
    "responses_app.web.error_pages.DatabaseWait",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    # After CommonMiddleware, which sets the Content-Length header.
    "responses_app.web.error_pages.not_allowed_middleware",
    "responses_app.web.render.visible_pages.middleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "responses_app.web.accounts.ended_session.EndedSession",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
CSRF_FAILURE_VIEW = "responses_app.web.accounts.ended_session.expired_form"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
ROOT_URLCONF = "project.urls"
# Pages only: a redirected POST loses its body, so no path of the API redirects.
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [TEMPLATE_DIR],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ASGI_APPLICATION = "project.asgi.application"
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
# Files of the Files API, and the folder in which uploads are collected. Both are on the same file system, so that a file is moved.
RESPONSES_UPLOAD_DIR = DATA_DIR / "uploads"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": check_package(file_storage(envstr("RESPONSES_FILE_STORAGE"), DATA_DIR / "files")),
}
RESPONSES_FILE_MIB = envint("RESPONSES_FILE_MIB", 512, minimum=1)
RESPONSES_FILES_PER_PROJECT = envint("RESPONSES_FILES_PER_PROJECT", 10_000, minimum=0)
RESPONSES_FILES_MIB_PER_PROJECT = envint("RESPONSES_FILES_MIB_PER_PROJECT", 10_240, minimum=0)
RESPONSES_CONTAINERS_PER_PROJECT = envint("RESPONSES_CONTAINERS_PER_PROJECT", 10_000, minimum=0)
RESPONSES_MIN_FREE_MIB = envint("RESPONSES_MIN_FREE_MIB", 1024, minimum=0)
RESPONSES_KEEP_FILES = envduration("RESPONSES_KEEP_FILES", "")
# Containers that have expired, with the files that the model's code has written.
RESPONSES_KEEP_CONTAINERS = envduration("RESPONSES_KEEP_CONTAINERS", "7d")
USE_TZ = True
FORMAT_MODULE_PATH = "project.formats"
TIME_ZONE = check_time_zone(envstr("TZ", "UTC") or "UTC")
# In bytes: request bodies may have 64 MiB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024 * 1024
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]

# Served models as `name=engine-url`, separated by white space (docs/settings.md).
RESPONSES_MODELS = envstr("RESPONSES_MODELS")
# Used by engines/registry.py, which reads the environment itself; read here for the check and for the docs.
RESPONSES_ENGINE_START_WAIT = envint("RESPONSES_ENGINE_START_WAIT", 5, minimum=0)
RESPONSES_ALIASES = envstr("RESPONSES_ALIASES")
RESPONSES_DEFAULT_MODEL = envstr("RESPONSES_DEFAULT_MODEL").strip()
RESPONSES_INACTIVE_TOOLS = frozenset(envlist("RESPONSES_INACTIVE_TOOLS"))
RESPONSES_JSON_WHITESPACE = envchoice("RESPONSES_JSON_WHITESPACE", "compact", ("compact", "spaced", "any"))
RESPONSES_REASONING_SUMMARY = envchoice("RESPONSES_REASONING_SUMMARY", "copy", ("copy", "none"))
RESPONSES_STORE_DEFAULT = envbool("RESPONSES_STORE_DEFAULT", True)
RESPONSES_STORE_API_FORMATS = envbool("RESPONSES_STORE_API_FORMATS", False)
RESPONSES_RESUME_API_FORMATS = envbool("RESPONSES_RESUME_API_FORMATS", True)
RESPONSES_LOG_MCP = envbool("RESPONSES_LOG_MCP")
RESPONSES_FINISH_ON_DISCONNECT = envbool("RESPONSES_FINISH_ON_DISCONNECT")
RESPONSES_DURABILITY = envchoice("RESPONSES_DURABILITY", "visible", ("disk", "visible", "terminal"))
RESPONSES_COALESCE_DELTAS = envbool("RESPONSES_COALESCE_DELTAS", True)
RESPONSES_SHARED_PREFIX_CACHE = envbool("RESPONSES_SHARED_PREFIX_CACHE")
# Limits by model, of output tokens and of seconds.
RESPONSES_MAX_OUTPUT_TOKENS = parse_limits("RESPONSES_MAX_OUTPUT_TOKENS", envstr("RESPONSES_MAX_OUTPUT_TOKENS"), 16)
RESPONSES_DEFAULT_OUTPUT_TOKENS = parse_limits("RESPONSES_DEFAULT_OUTPUT_TOKENS", envstr("RESPONSES_DEFAULT_OUTPUT_TOKENS"), 16)
RESPONSES_MAX_RUN_SECONDS = parse_limits("RESPONSES_MAX_RUN_SECONDS", envstr("RESPONSES_MAX_RUN_SECONDS"), 1)
RESPONSES_PRICES = parse_prices("RESPONSES_PRICES", envstr("RESPONSES_PRICES"))
RESPONSES_CURRENCY = envstr("RESPONSES_CURRENCY", "USD").strip()
RESPONSES_MAX_CONCURRENT = envint("RESPONSES_MAX_CONCURRENT", 512, minimum=1)
RESPONSES_MAX_SOCKETS = envint("RESPONSES_MAX_SOCKETS", 1024, minimum=1)
# At least the largest request body, 64 MiB.
RESPONSES_MAX_UNFINISHED_MIB = envint("RESPONSES_MAX_UNFINISHED_MIB", 512, minimum=64)
RESPONSES_MAX_UNFINISHED_MIB_PER_KEY = envint("RESPONSES_MAX_UNFINISHED_MIB_PER_KEY", 128, minimum=64)
RESPONSES_MAX_CONNECTIONS = envint("RESPONSES_MAX_CONNECTIONS", 4096, minimum=1)
RESPONSES_SOCKET_AGE = envint("RESPONSES_SOCKET_AGE", 3600, minimum=1)
RESPONSES_MAX_BACKGROUND = envint("RESPONSES_MAX_BACKGROUND", 64, minimum=1)
RESPONSES_MAX_QUEUED = envint("RESPONSES_MAX_QUEUED", 1000, minimum=1)
RESPONSES_ENGINE_WAIT = envint("RESPONSES_ENGINE_WAIT", 180)
RESPONSES_DRAIN_DELAY = envint("RESPONSES_DRAIN_DELAY", 1)
RESPONSES_STRICT_COMPAT = envbool("RESPONSES_STRICT_COMPAT")
RESPONSES_SSE_DONE = envbool("RESPONSES_SSE_DONE", True)
RESPONSES_HEARTBEAT = envint("RESPONSES_HEARTBEAT", 10, minimum=1)
RESPONSES_SEAL_AFTER = envduration("RESPONSES_SEAL_AFTER", "30", unit="s")
RESPONSES_KEEP_DELTAS = envduration("RESPONSES_KEEP_DELTAS", "")
RESPONSES_KEEP_RESPONSES = envduration("RESPONSES_KEEP_RESPONSES", "")
RESPONSES_KEEP_AUDIT = envduration("RESPONSES_KEEP_AUDIT", "365d")
RESPONSES_DELETE_CONVERSATION_ITEMS = envbool("RESPONSES_DELETE_CONVERSATION_ITEMS")
RESPONSES_IMAGE_URLS = envchoice("RESPONSES_IMAGE_URLS", "https", ("https", "http", "none"))
RESPONSES_IMAGE_HOSTS = parse_private_hosts("RESPONSES_IMAGE_HOSTS", envlist("RESPONSES_IMAGE_HOSTS"))
# Tools that the server runs. Timeouts are in seconds.
RESPONSES_DEMO_TOOLS = envbool("RESPONSES_DEMO_TOOLS")
RESPONSES_SERVE_COMMAND = envstr("RESPONSES_SERVE_COMMAND")
RESPONSES_MCP_SERVERS = parse_mcp_servers(envstr("RESPONSES_MCP_SERVERS"))
if RESPONSES_DEMO_TOOLS:
    RESPONSES_MCP_SERVERS = with_demo_server(RESPONSES_MCP_SERVERS)
RESPONSES_MCP_PRIVATE_HOSTS = parse_private_hosts("RESPONSES_MCP_PRIVATE_HOSTS", envlist("RESPONSES_MCP_PRIVATE_HOSTS"))
RESPONSES_MCP_LIST_PAGES = envint("RESPONSES_MCP_LIST_PAGES", 32, minimum=1)
RESPONSES_MCP_START_TIMEOUT = envint("RESPONSES_MCP_START_TIMEOUT", 60, minimum=1)
RESPONSES_MCP_TOOLS = envint("RESPONSES_MCP_TOOLS", 128, minimum=1)
RESPONSES_TOOL_CONNECT_TIMEOUT = envint("RESPONSES_TOOL_CONNECT_TIMEOUT", 10, minimum=1)
RESPONSES_TOOL_IDLE_TIMEOUT = envint("RESPONSES_TOOL_IDLE_TIMEOUT", 60, minimum=1)
RESPONSES_TOOL_CALL_TIMEOUT = envint("RESPONSES_TOOL_CALL_TIMEOUT", 300, minimum=1)
RESPONSES_TOOL_RESULT_PROMPT_BYTES = envint("RESPONSES_TOOL_RESULT_PROMPT_BYTES", 100_000, minimum=1000)
RESPONSES_TOOL_RESULT_BYTES = envint("RESPONSES_TOOL_RESULT_BYTES", 1_000_000, minimum=1000)
RESPONSES_TOOL_PARALLEL_CALLS = envint("RESPONSES_TOOL_PARALLEL_CALLS", 8, minimum=1)
RESPONSES_TOOL_CALLS = envint("RESPONSES_TOOL_CALLS", 64, minimum=1)
RESPONSES_TRUNCATION_STEP = envshare("RESPONSES_TRUNCATION_STEP", 0.125)
RESPONSES_TOOL_ROUNDS = envint("RESPONSES_TOOL_ROUNDS", 32, minimum=1)
# The sandbox. bin/serve sets RESPONSES_SANDBOX_URL to the runner that bin/serve starts.
RESPONSES_CODE_INTERPRETER = envchoice("RESPONSES_CODE_INTERPRETER", "auto", ("auto", "on", "off"))
RESPONSES_SANDBOX_PACKAGES = envbool("RESPONSES_SANDBOX_PACKAGES", True)
RESPONSES_SANDBOX_TOKEN = check_token("RESPONSES_SANDBOX_TOKEN", envstr("RESPONSES_SANDBOX_TOKEN"))
RESPONSES_SANDBOX_URL = check_sandbox_url("RESPONSES_SANDBOX_URL", envstr("RESPONSES_SANDBOX_URL"), RESPONSES_SANDBOX_TOKEN)
RESPONSES_SANDBOX_READER_URL = check_sandbox_url(
    "RESPONSES_SANDBOX_READER_URL", envstr("RESPONSES_SANDBOX_READER_URL"), RESPONSES_SANDBOX_TOKEN
)
RESPONSES_SANDBOX_RUN_TIMEOUT = envint("RESPONSES_SANDBOX_RUN_TIMEOUT", 120, minimum=1)
RESPONSES_SANDBOX_OUTPUT_BYTES = envint("RESPONSES_SANDBOX_OUTPUT_BYTES", 1_000_000, minimum=1000)
RESPONSES_SANDBOX_MEMORY_MIB = envint("RESPONSES_SANDBOX_MEMORY_MIB", 4096, minimum=256)
RESPONSES_SANDBOX_DISK_MIB = envint("RESPONSES_SANDBOX_DISK_MIB", 512, minimum=16)
RESPONSES_SANDBOX_CONTAINERS = envint("RESPONSES_SANDBOX_CONTAINERS", 16, minimum=1)
RESPONSES_CONTAINER_STARTUP = read_startup_code(envstr("RESPONSES_CONTAINER_STARTUP"))
RESPONSES_WEB_SEARCH = parse_web_search(envstr("RESPONSES_WEB_SEARCH"))
if RESPONSES_DEMO_TOOLS:
    RESPONSES_CONTAINER_STARTUP = RESPONSES_CONTAINER_STARTUP or read_startup_code(DEMO_STARTUP)
    RESPONSES_WEB_SEARCH = RESPONSES_WEB_SEARCH or DEMO_PAGES
# Vector stores and file search.
RESPONSES_FILE_SEARCH_LANGUAGE = envchoice("RESPONSES_FILE_SEARCH_LANGUAGE", "english", TEXT_SEARCH_LANGUAGES)
RESPONSES_EMBEDDINGS_MODEL = envstr("RESPONSES_EMBEDDINGS_MODEL")
RESPONSES_EMBEDDINGS_KEY = check_token("RESPONSES_EMBEDDINGS_KEY", envstr("RESPONSES_EMBEDDINGS_KEY"))
RESPONSES_EMBEDDINGS_URL = check_embeddings(
    envstr("RESPONSES_EMBEDDINGS_URL"), RESPONSES_EMBEDDINGS_MODEL, RESPONSES_EMBEDDINGS_KEY
)
RESPONSES_VECTOR_STORES_PER_PROJECT = envint("RESPONSES_VECTOR_STORES_PER_PROJECT", 1000, minimum=1)
RESPONSES_VECTOR_STORE_FILES = envint("RESPONSES_VECTOR_STORE_FILES", 10_000, minimum=1)
RESPONSES_RESOURCE_PARALLEL = envint("RESPONSES_RESOURCE_PARALLEL", 2, minimum=1)
RESPONSES_SEARCH_PARALLEL = envint("RESPONSES_SEARCH_PARALLEL", 2, minimum=1)
RESPONSES_INGESTION_PARALLEL = envint("RESPONSES_INGESTION_PARALLEL", 3, minimum=1)
RESPONSES_WEBHOOKS_PARALLEL = envint("RESPONSES_WEBHOOKS_PARALLEL", 16, minimum=1)
RESPONSES_WEBHOOK_PRIVATE_HOSTS = parse_private_hosts(
    "RESPONSES_WEBHOOK_PRIVATE_HOSTS", envlist("RESPONSES_WEBHOOK_PRIVATE_HOSTS")
)
RESPONSES_KEEP_WEBHOOK_DELIVERIES = envduration("RESPONSES_KEEP_WEBHOOK_DELIVERIES", "30d")
# Metrics for Prometheus, in files of all processes of this host.
RESPONSES_METRICS_PORT = envint("RESPONSES_METRICS_PORT", 0, maximum=65_535)
RESPONSES_METRICS_HOST = envstr("RESPONSES_METRICS_HOST", "127.0.0.1")
RESPONSES_METRICS_TOKEN = check_token("RESPONSES_METRICS_TOKEN", envstr("RESPONSES_METRICS_TOKEN"), MIN_TOKEN_LENGTH)
# Traces for a collector of OpenTelemetry, whose SDK reads further variables OTEL_….
RESPONSES_OTEL_ENDPOINT = check_http_url(
    "OTEL_EXPORTER_OTLP_ENDPOINT", envstr("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://127.0.0.1:4318"
)
RESPONSES_OTEL_CONTENT = envbool("RESPONSES_OTEL_CONTENT")
RESPONSES_METRICS_DIR = DATA_DIR / "metrics"

LOG_LEVEL = envchoice("RESPONSES_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
envchoice("RESPONSES_LOG_FORMAT", "text", ("text", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "responses_app.utils.log_format.make_formatter"}},
    "filters": {"refusals": {"()": "responses_app.wire.refusal_filter.RefusalFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refusals"]}},
    # Daphne, Twisted and other libraries. Without a root handler Python writes warnings to stderr, not escaped.
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "responses": {"handlers": ["stderr"], "level": LOG_LEVEL, "propagate": False},
        "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        # psycopg logs every failed attempt while the database is not reachable; `responses.signals` logs it once a second.
        "psycopg.pool": {"handlers": ["stderr"], "level": "ERROR", "propagate": False},
    },
}
