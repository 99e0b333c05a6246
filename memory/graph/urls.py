"""Addresses of the id graph: below /api/v1/, and pages."""

from django.urls import URLPattern, URLResolver, path

from memory.graph import api, chain_api, endpoint_views, payload_views, views

api_patterns: list[URLPattern | URLResolver] = [
    path("triggers", api.by_method(POST=api.post_trigger), name="api-triggers"),
    path("triggers/batch", api.by_method(POST=api.post_batch), name="api-triggers-batch"),
    path(
        "triggers/<str:trigger_id>",
        api.by_method(GET=api.read_trigger, DELETE=api.delete_trigger),
        name="api-trigger",
    ),
    path(
        "triggers/<str:trigger_id>/payload",
        api.by_method(GET=api.payload, PUT=api.put_payload),
        name="api-trigger-payload",
    ),
    path("threads", chain_api.thread_list, name="api-threads"),
    path("threads/index", chain_api.thread_index, name="api-thread-index"),
    path(
        "threads/<str:thread_id>",
        api.by_method(GET=api.read_thread, PUT=chain_api.change_thread, DELETE=api.delete_thread),
        name="api-thread",
    ),
    path("threads/<str:thread_id>/events", api.by_method(GET=api.read_steps), name="api-thread-events"),
    path("threads/<str:thread_id>/owners", chain_api.owners, name="api-thread-owners"),
    path("threads/<str:thread_id>/links", chain_api.thread_links, name="api-thread-links"),
    path("workers", chain_api.start_worker, name="api-workers"),
    path(
        "workers/<str:worker_id>",
        api.by_method(GET=chain_api.show_worker, PATCH=chain_api.change_worker, DELETE=api.delete_worker),
        name="api-worker",
    ),
    path("workers/<str:worker_id>/report", chain_api.worker_report, name="api-worker-report"),
    path("workers/<str:worker_id>/inbox", chain_api.inbox, name="api-worker-inbox"),
    path("recall/<str:public_id>", chain_api.recall, name="api-recall"),
]

page_patterns: list[URLPattern | URLResolver] = [
    path("threads/", views.threads, name="threads"),
    path("threads/unlinked/", views.unlinked, name="unlinked"),
    path("threads/<str:public_id>/", views.thread, name="thread"),
    path("threads/<str:public_id>/edit/", views.thread_edit, name="thread_edit"),
    path("threads/<str:public_id>/own/", views.thread_own, name="thread_own"),
    path("threads/<str:public_id>/disown/", views.thread_disown, name="thread_disown"),
    path("threads/<str:public_id>/link/", views.thread_link, name="thread_link"),
    path("threads/<str:public_id>/unlink/", views.thread_unlink, name="thread_unlink"),
    path("threads/<str:public_id>/map/", views.thread_map, name="thread_map"),
    path("triggers/<str:public_id>/", views.trigger, name="trigger"),
    path("triggers/<str:public_id>/payload/", payload_views.viewer, name="trigger_payload"),
    path("triggers/<str:public_id>/raw/", payload_views.raw, name="trigger_raw"),
    path("workers/<str:public_id>/", views.worker, name="worker"),
    path("workers/<str:public_id>/report/", views.worker_report, name="worker_report"),
    path("webhooks/", endpoint_views.endpoint_list, name="endpoints"),
    path("webhooks/<str:public_id>/", endpoint_views.endpoint, name="endpoint"),
    path("webhooks/<str:public_id>/rotate/", endpoint_views.endpoint_rotate, name="endpoint_rotate"),
    path("webhooks/<str:public_id>/pause/", endpoint_views.endpoint_pause, name="endpoint_pause"),
    path("webhooks/<str:public_id>/change/", endpoint_views.endpoint_change, name="endpoint_change"),
    path("webhooks/<str:public_id>/remove/", endpoint_views.endpoint_remove, name="endpoint_remove"),
]
