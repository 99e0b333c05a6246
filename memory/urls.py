"""Every address of the app."""

from typing import Any

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from cache_admin.urls import api_patterns as cache_api
from cache_admin.urls import page_patterns as cache_pages
from dream.urls import api_patterns as dream_api
from dream.urls import page_patterns as dream_pages
from memory import purge_doors, views
from memory.events.urls import api_patterns as event_api
from memory.events.urls import page_patterns as event_pages
from memory.graph.urls import api_patterns as graph_api
from memory.graph.urls import page_patterns as graph_pages
from memory.graph.webhooks.urls import api_patterns as webhook_api
from memory.hooks.urls import api_patterns as hook_api
from memory.hooks.urls import client_patterns
from memory.mcp.urls import mcp_patterns
from memory.notes.urls import api_patterns as note_api
from memory.notes.urls import page_patterns as note_pages
from memory.ops.urls import entry_patterns as ops_entry
from memory.ops.urls import page_patterns as ops_pages
from memory.recall.urls import api_patterns as recall_api
from memory.recall.urls import page_patterns as recall_pages
from memory.tenants.access import public
from memory.tenants.urls import entry_patterns
from memory.tenants.urls import page_patterns as tenant_pages

handler404 = "memory.tenants.middleware.page_not_found"

OPEN: dict[str, Any] = {"authentication_classes": [], "permission_classes": []}
schema = public(SpectacularAPIView.as_view(**OPEN))
# Split: its script is a file of its own, so that the page needs no inline script.
schema_page = public(SpectacularSwaggerSplitView.as_view(url_name="schema", **OPEN))

api: list[URLPattern | URLResolver] = [
    *hook_api,  # first, and above every page: each pattern passed over costs a hook 10 µs
    path("schema", schema, name="schema"),
    path("docs", schema_page, name="api-docs"),
    *graph_api,
    *webhook_api,
    *event_api,
    *recall_api,
    *note_api,
    *dream_api,
    *cache_api,
    path("purges", purge_doors.api_purge, name="api-purges"),
]

pages: list[URLPattern | URLResolver] = [
    path("", views.inbox, name="inbox"),
    path("find/", views.find, name="find"),
    path("purge/", purge_doors.page, name="purge"),
    path("guide/", views.docs, name="docs"),
    path("guide/<slug:page>/", views.docs, name="docs"),
    *recall_pages,
    *note_pages,
    *graph_pages,
    *dream_pages,
    *cache_pages,
    *event_pages,
    *ops_pages,
    *tenant_pages,
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include(api)),
    *mcp_patterns,
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    *ops_entry,
    *entry_patterns,
    *client_patterns,
    path("t/<slug:slug>/", include(pages)),
]
