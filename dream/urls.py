"""Addresses of dreams below /api/v1/, and pages of runs and of the sessions they read."""

from django.urls import path

from dream import api, garden_views, run_views, views
from memory.events import api as events
from memory.graph.api import by_method

api_patterns = [
    path("sessions/<str:session_id>", by_method(GET=events.session, DELETE=api.session_delete), name="api-session"),
    path("dreams", api.dream_list, name="api-dreams"),
    path("dreams/<str:dream_id>", api.dream, name="api-dream"),
    path("dreams/<str:dream_id>/cancel", api.cancel, name="api-dream-cancel"),
    path("dreams/<str:dream_id>/undo", api.undo_dream, name="api-dream-undo"),
    path("dreams/<str:dream_id>/replay", api.replay_dream, name="api-dream-replay"),
]
page_patterns = [
    path("garden/", garden_views.page, name="garden"),
    path("garden/start/", garden_views.start, name="garden_start"),
    path("garden/<str:public_id>/leave/", garden_views.dismiss, name="finding_dismiss"),
    path("sessions/", views.sessions, name="sessions"),
    path("sessions/<str:public_id>/", views.session, name="session"),
    path("sessions/<str:public_id>/delete/", views.session_delete, name="session_delete"),
    path("events/<str:public_id>/", views.event, name="event"),
    path("dreams/", views.dreams, name="dreams"),
    path("dreams/start/", views.dream_start, name="dream_start"),
    path("dreams/budget/", run_views.dream_budget, name="dream_budget"),
    path("events/<str:public_id>/again/", run_views.event_again, name="event_again"),
    path("dreams/<str:public_id>/cancel/", run_views.dream_cancel, name="dream_cancel"),
    path("dreams/<str:public_id>/decide/", run_views.dream_decide, name="dream_decide"),
    path("dreams/<str:public_id>/undo/", run_views.dream_undo, name="dream_undo"),
    path("dreams/<str:public_id>/replay/", run_views.dream_replay, name="dream_replay"),
    path("dreams/<str:public_id>/", views.dream, name="dream"),
]
