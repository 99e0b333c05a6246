"""Addresses of webhooks, below /api/v1/."""

from django.urls import path

from memory.graph.webhooks import api

api_patterns = [path("webhooks/<str:kind>/<str:endpoint_id>", api.webhook, name="api-webhook")]
