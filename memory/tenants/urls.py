"""Addresses of getting in."""

from django.urls import path

from memory.tenants import account_views, audit_views, key_views, member_views, outbox_views, views

entry_patterns = [
    path("login/", views.login, name="login"),
    path("login/link/<str:token>/", views.link, name="link"),
    path("logout/", views.logout, name="logout"),
    path("password/", views.password, name="password"),
    path("teams/", views.choose, name="choose"),
    path("invite/<str:token>/", account_views.invitation, name="invitation"),
    path("prove/", account_views.prove, name="prove"),
    path("account/", account_views.account, name="account"),
    path("account/logout-everywhere/", account_views.logout_everywhere, name="logout_everywhere"),
]
page_patterns = [
    path("connect/", views.connect, name="connect"),
    path("members/", member_views.member_list, name="members"),
    path("members/<str:member_id>/role/", member_views.member_role, name="member_role"),
    path("members/<str:member_id>/remove/", member_views.member_remove, name="member_remove"),
    path("members/<str:member_id>/link/", member_views.member_link, name="member_link"),
    path("invitations/<str:invitation_id>/withdraw/", member_views.invitation_withdraw, name="invitation_withdraw"),
    path("roles/", member_views.roles, name="roles"),
    path("audit/", audit_views.audit_list, name="audit"),
    path("audit/export/", audit_views.audit_export, name="audit_export"),
    path("keys/", key_views.key_list, name="keys"),
    path("keys/<str:key_id>/rotate/", key_views.key_rotate, name="key_rotate"),
    path("keys/<str:key_id>/change/", key_views.key_change, name="key_change"),
    path("messages/", outbox_views.message_list, name="messages"),
    path("messages/try/", outbox_views.message_try, name="message_try"),
    path("messages/<str:message_id>/again/", outbox_views.message_again, name="message_again"),
    path("connect/keys/<str:key_id>/revoke/", key_views.key_revoke, name="key_revoke"),
]
