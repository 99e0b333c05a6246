"""Addresses of finding, below /api/v1/."""

from django.urls import path

from memory.recall import api

api_patterns = [
    path("notes", api.list_notes, name="api-notes"),
    path("notes/block", api.notes_block, name="api-notes-block"),
    path("search", api.find, name="api-search"),
]
