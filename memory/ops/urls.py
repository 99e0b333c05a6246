"""Addresses for operators."""

from django.urls import path

from memory.ops import views

entry_patterns = [path("metrics", views.metrics, name="metrics")]
page_patterns = [
    path("settings/", views.team, name="settings"),
    path("settings/server/", views.server, name="settings_server"),
]
