"""Addresses of getting in."""

from django.urls import path

from memory.tenants import views

entry_patterns = [
    path("login/", views.login, name="login"),
    path("login/link/<str:token>/", views.link, name="link"),
    path("logout/", views.logout, name="logout"),
    path("password/", views.password, name="password"),
    path("teams/", views.choose, name="choose"),
]
page_patterns = [
    path("connect/", views.connect, name="connect"),
    path("connect/keys/<str:key_id>/revoke/", views.key_revoke, name="key_revoke"),
]
