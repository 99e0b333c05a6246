"""Addresses of finding notes, below /api/v1/."""

from django.urls import path

from memory.recall import api

api_patterns = [path("notes", api.list_notes, name="api-notes")]
