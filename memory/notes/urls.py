"""Addresses of notes and proposals: below /api/v1/, and pages."""

from django.urls import path, register_converter
from django.urls.converters import PathConverter

from memory.notes import api, change_api, discuss_views, edit_views, file_views, govern_views, space_views, views


class Address(PathConverter):
    """Any path, also one with a line break in it: what is wrong with it is said by the note's own rules."""

    regex = "(?s:.+)"


register_converter(Address, "address")

api_patterns = [
    # Before notes/<id>: a path may look like anything.
    path("notes/by-path/<address:address>", api.by_path, name="api-note-by-path"),
    path("notes/export", change_api.export, name="api-notes-export"),
    path("notes/import", change_api.take_in, name="api-notes-import"),
    path("notes/<str:note_id>/move", change_api.move, name="api-note-move"),
    path("notes/<str:note_id>/reports", change_api.report, name="api-note-reports"),
    path("notes/<str:note_id>", api.show_note, name="api-note"),
    path("notes/<str:note_id>/revisions", api.list_revisions, name="api-note-revisions"),
    path("proposals", api.list_proposals, name="api-proposals"),
    path("proposals/<str:proposal_id>", api.show_proposal, name="api-proposal"),
    path("proposals/<str:proposal_id>/approve", api.approve, name="api-proposal-approve"),
    path("proposals/<str:proposal_id>/reject", api.reject, name="api-proposal-reject"),
]
page_patterns = [
    path("rules/", govern_views.rule_list, name="rules"),
    path("rules/<str:public_id>/remove/", govern_views.rule_remove, name="rule_remove"),
    path("reports/<str:public_id>/close/", govern_views.report_close, name="report_close"),
    path("proposals/<str:public_id>/undo/", govern_views.proposal_undo, name="proposal_undo"),
    path("notes/<str:public_id>/keep/", govern_views.note_keep, name="note_keep"),
    path("notes/<str:public_id>/move/", govern_views.note_move, name="note_move"),
    path("notes/<str:public_id>/lines/", govern_views.note_blame, name="note_blame"),
    path("account/news/", discuss_views.choices, name="news"),
    path("proposals/<str:public_id>/comment/", discuss_views.proposal_comment, name="proposal_comment"),
    path("proposals/<str:public_id>/assign/", discuss_views.proposal_assign, name="proposal_assign"),
    path("comments/<str:public_id>/remove/", discuss_views.comment_remove, name="comment_remove"),
    path("proposals/<str:public_id>/", views.proposal, name="proposal"),
    path("proposals/<str:public_id>/approve/", views.proposal_approve, name="proposal_approve"),
    path("proposals/<str:public_id>/reject/", views.proposal_reject, name="proposal_reject"),
    path("proposals/<str:public_id>/edit/", views.proposal_edit, name="proposal_edit"),
    path("notes/", views.notes, name="notes"),
    path("notes/files/", file_views.note_files, name="note_files"),
    path("notes/export/", file_views.note_export, name="note_export"),
    path("spaces/<str:public_id>/", space_views.space, name="space"),
    # Before notes/<id>: none of these is an id.
    path("notes/new/", edit_views.note_new, name="note_new"),
    path("notes/deleted/", views.note_deleted, name="note_deleted"),
    path("notes/preview/", edit_views.note_preview, name="note_preview"),
    path("notes/drafts/", edit_views.note_draft, name="note_draft"),
    path("notes/drafts/<str:public_id>/discard/", edit_views.note_draft_discard, name="note_draft_discard"),
    path("notes/<str:public_id>/", views.note, name="note"),
    path("notes/<str:public_id>/edit/", edit_views.note_edit, name="note_edit"),
    path("notes/<str:public_id>/told/", views.note_told, name="note_told"),
    path("notes/<str:public_id>/history/", views.note_history, name="note_history"),
    path("notes/<str:public_id>/diff/", views.note_diff, name="note_diff"),
    path("notes/<str:public_id>/delete/", views.note_delete, name="note_delete"),
    path("notes/<str:public_id>/revert/", views.note_revert, name="note_revert"),
]
