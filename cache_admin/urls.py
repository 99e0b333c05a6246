"""Addresses of the caches, below /api/v1/."""

from django.urls import path

from cache_admin import api, described, rest  # noqa: F401 - what the API's description holds

api_patterns = [
    path("cache/tools/lookup", api.tool_lookup, name="api-cache-lookup"),
    path("cache/tools/<str:key>", api.tool_store, name="api-cache-store"),
    path("cache/analyses/lookup", rest.analyses_lookup, name="api-analyses-lookup"),
    path("cache/analyses/<str:content_hash>/<str:analysis_type>", rest.analysis_store, name="api-analysis-store"),
    path("cache/semantic/lookup", rest.semantic_lookup, name="api-semantic-lookup"),
    path("cache/invalidate", rest.invalidate, name="api-cache-invalidate"),
    path("cache/incidents", rest.incident_list, name="api-cache-incidents"),
    path("cache/metrics", rest.metric_list, name="api-cache-metrics"),
    path("results", rest.result_list, name="api-results"),
    path("results/<str:result_id>", rest.result, name="api-result"),
    path("usage", rest.usage_list, name="api-usage"),
]
