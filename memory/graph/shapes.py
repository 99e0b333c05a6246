"""The graph's JSON in the OpenAPI file."""

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

PAGED: Final = [
    OpenApiParameter("limit", OpenApiTypes.INT, description="1 to 200; 50 where left out"),
    OpenApiParameter("cursor", OpenApiTypes.STR, description="A next_cursor as it was given"),
]


class ThreadIn(serializers.Serializer[Any]):
    id = serializers.CharField(required=False, help_text="Your own id, like thr_pr_412")
    key = serializers.CharField(required=False, help_text="Your own key, like github:acme/payments#412")
    title = serializers.CharField(required=False)
    state = serializers.CharField(required=False, help_text="One word; open where left out")
    summary = serializers.CharField(required=False)


class CountsOut(serializers.Serializer[Any]):
    triggers = serializers.IntegerField()
    workers = serializers.IntegerField()
    events = serializers.IntegerField()


class LinkOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    direction = serializers.ChoiceField(["to", "from"])
    thread_id = serializers.CharField(required=False, help_text="Missing while no thread has the key")
    key = serializers.CharField(required=False)
    made_by = serializers.CharField()
    because_of = serializers.CharField(required=False)


class ThreadRowOut(serializers.Serializer[Any]):
    thread_id = serializers.CharField()
    key = serializers.CharField(allow_null=True)
    title = serializers.CharField()
    state = serializers.CharField()
    summary = serializers.CharField()
    counts = CountsOut()
    created_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


class ThreadOut(ThreadRowOut):
    owner_workers = serializers.ListField(child=serializers.CharField())
    workers = serializers.ListField(child=serializers.CharField(), help_text="The latest twenty")
    links = LinkOut(many=True)


class IndexOut(serializers.Serializer[Any]):
    items = serializers.ListField(child=serializers.CharField())
    left_out = serializers.IntegerField()
    budget_tokens = serializers.IntegerField()


class OwnerIn(serializers.Serializer[Any]):
    worker_id = serializers.CharField()
    pass_through = serializers.BooleanField(required=False)


class LinkIn(serializers.Serializer[Any]):
    thread_id = serializers.CharField(required=False)
    key = serializers.CharField(required=False)
    kind = serializers.CharField(required=False)


class WorkerIn(serializers.Serializer[Any]):
    id = serializers.CharField(required=False, help_text="Your own id, like wkr_deploy_7")
    thread = serializers.CharField(required=False, help_text='An id, or {"id"?, "key"?, "title"?}')
    task = serializers.CharField(required=False)
    state = serializers.CharField(required=False, help_text="One word; running where left out")
    session_id = serializers.CharField(required=False, help_text="The hook session that it is")
    report = serializers.CharField(required=False, help_text="Markdown; ids written in it are cited")
    cites = serializers.ListField(child=serializers.CharField(), required=False)


class WorkerOut(serializers.Serializer[Any]):
    worker_id = serializers.CharField()
    thread_id = serializers.CharField(allow_null=True)
    task = serializers.CharField()
    state = serializers.CharField()
    session_id = serializers.CharField(allow_null=True)
    report = serializers.CharField(allow_null=True)
    report_head = serializers.CharField(required=False, help_text="Of a report over 16 KB")
    report_tail = serializers.CharField(required=False)
    cites = serializers.ListField(child=serializers.CharField())
    owns = serializers.ListField(child=serializers.CharField())
    spilled = serializers.DictField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    reported_at = serializers.DateTimeField(allow_null=True)


class InboxOut(serializers.Serializer[Any]):
    seq = serializers.IntegerField()
    trigger_id = serializers.CharField()
    thread_id = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment] # DRF takes declared fields off the class
    summary = serializers.CharField()
    is_deleted = serializers.BooleanField()
    at = serializers.DateTimeField()


class RecallItemOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    hop = serializers.IntegerField()
    via = serializers.CharField(allow_null=True)
    view = serializers.DictField()


class RecallPointerOut(serializers.Serializer[Any]):
    hop = serializers.IntegerField()
    line = serializers.CharField()
    get = serializers.CharField()


class RecallOut(serializers.Serializer[Any]):
    start = serializers.CharField()
    direction = serializers.CharField()
    hops = serializers.IntegerField()
    budget_tokens = serializers.IntegerField()
    items = RecallItemOut(many=True)
    pointers = RecallPointerOut(many=True)
    left_out = serializers.IntegerField()
    is_cut = serializers.BooleanField()


def page_of(name: str, items: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The shape of one page of a list."""
    fields = {
        "items": items(many=True),
        "next_cursor": serializers.CharField(),
        "has_more": serializers.BooleanField(),
    }
    return type(name, (serializers.Serializer,), fields)
