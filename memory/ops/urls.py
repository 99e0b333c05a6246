"""Addresses for operators."""

from django.urls import path

from memory.ops import operator_views, views

entry_patterns = [
    path("metrics", views.metrics, name="metrics"),
    path("operator/", operator_views.team_list, name="operator"),
    path("operator/new/", operator_views.team_new, name="operator_new"),
    path("operator/log/", operator_views.log, name="operator_log"),
    path("operator/teams/<slug:slug>/", operator_views.team_page, name="operator_team"),
    path("operator/teams/<slug:slug>/suspend/", operator_views.team_suspend, name="operator_suspend"),
    path("operator/teams/<slug:slug>/resume/", operator_views.team_resume, name="operator_resume"),
    path("operator/teams/<slug:slug>/export/", operator_views.team_export, name="operator_export"),
    path("operator/teams/<slug:slug>/delete/", operator_views.team_delete, name="operator_delete"),
    path("operator/teams/<slug:slug>/keep/", operator_views.team_keep, name="operator_keep"),
]
page_patterns = [
    path("settings/", views.team, name="settings"),
    path("settings/server/", views.server, name="settings_server"),
]
