"""Addresses of the agents' door, below /api/v1/."""

from django.urls import path

from memory.hooks import api

api_patterns = [
    path("hooks/<str:client>", api.hook, name="api-hook"),
    path("events/batch", api.batch, name="api-events-batch"),
]
