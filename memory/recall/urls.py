"""Addresses of finding, below /api/v1/."""

from django.urls import path

from memory.recall import api

api_patterns = [
    path("notes", api.list_notes, name="api-notes"),
    path("search", api.find, name="api-search"),
]
