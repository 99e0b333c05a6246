"""Addresses of the agents' door, below /api/v1/, and of the script they install."""

from django.urls import path

from memory.hooks import api, script

api_patterns = [
    path("hooks/<str:client>", api.hook, name="api-hook"),
    path("events/batch", api.batch, name="api-events-batch"),
]
client_patterns = [
    path("clients/hook.py", script.hook_script, name="hook-script"),
    path("clients/hook.py.sha256", script.hook_digest, name="hook-digest"),
    path("clients/python/team_memory.py", script.cache_client, name="cache-client"),
    path("clients/python/team_memory.py.sha256", script.cache_client_digest, name="cache-client-digest"),
]
