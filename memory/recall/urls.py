"""Addresses of finding, below /api/v1/, and of what would have been told."""

from django.urls import path

from memory.recall import api, foretold_views

api_patterns = [
    path("notes", api.list_notes, name="api-notes"),
    path("notes/block", api.notes_block, name="api-notes-block"),
    path("search", api.find, name="api-search"),
]
page_patterns = [
    path("proposals/<str:public_id>/told/", foretold_views.proposal_foretold, name="proposal_foretold"),
]
