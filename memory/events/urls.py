"""Addresses of projects, sessions and events: below /api/v1/, and pages."""

from django.urls import path

from memory.events import api, views

api_patterns = [
    path("projects", api.project_list, name="api-projects"),
    path("sessions", api.session_list, name="api-sessions"),
    path("sessions/<str:session_id>/events", api.session_events, name="api-session-events"),
    path("events/<str:event_id>", api.event, name="api-event"),
    path("events/<str:event_id>/payload", api.event_payload, name="api-event-payload"),
]
page_patterns = [
    path("events/<str:public_id>/payload/", views.event_payload, name="event_payload"),
    path("projects/", views.project_list, name="projects"),
    path("projects/<str:public_id>/merge/", views.project_merge, name="project_merge"),
    path("projects/<str:public_id>/limit/", views.project_limit, name="project_limit"),
    path("projects/<str:public_id>/map/", views.project_map, name="project_map"),
]
