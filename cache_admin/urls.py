"""Addresses of the caches: below /api/v1/, and pages."""

from django.urls import path

from cache_admin import api, described, money_views, rest, views  # noqa: F401 - described: what the API description holds

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
page_patterns = [
    path("caches/", views.overview, name="caches"),
    path("caches/tools/", views.tools, name="cache_tools"),
    path("caches/policy/", views.policy, name="cache_policy"),
    path("caches/policy/try/", views.try_call, name="cache_try"),
    path("caches/entries/", views.entries, name="cache_entries"),
    path("caches/entries/<str:key>/", views.entry, name="cache_entry"),
    path("caches/purge/", views.purge_page, name="cache_purge"),
    path("caches/similar/", views.similar, name="cache_pairs"),
    path("caches/similar/<str:pair_id>/", views.pair_decide, name="cache_pair_decide"),
    path("caches/analyses/", views.analyses, name="cache_analyses"),
    path("caches/analyses/<str:public_id>/", views.analysis, name="cache_analysis"),
    path("caches/incidents/", views.incidents, name="cache_incidents"),
    path("caches/incidents/<str:public_id>/", views.incident, name="cache_incident"),
    path("caches/repeats/", views.repeats, name="cache_repeats"),
    path("caches/prompts/", money_views.prompts, name="cache_prompts"),
    path("caches/settings/", money_views.settings, name="cache_settings"),
]
