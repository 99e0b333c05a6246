"""What the pages of webhook endpoints show of them and of their last deliveries."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import OuterRef, Q, QuerySet, Subquery

from memory.graph.webhooks.models import Delivery, Endpoint
from memory.tenants.models import Tenant

if TYPE_CHECKING:
    Rows = QuerySet[Delivery]


def endpoints(tenant: Tenant) -> "QuerySet[Endpoint]":
    """The endpoints by name, each with its last delivery and its last refusal."""
    last = Delivery.objects.filter(endpoint=OuterRef("pk")).order_by("-at", "-pk")
    refused = last.filter(status=Delivery.Status.REFUSED)
    rows: QuerySet[Endpoint] = tenant.endpoints.annotate(
        last_at=Subquery(last.values("at")[:1]),
        last_status=Subquery(last.values("status")[:1]),
        refused_at=Subquery(refused.values("at")[:1]),
        refused_detail=Subquery(refused.values("detail")[:1]),
    )
    return rows.order_by("name", "pk")


def position(delivery: Delivery) -> list[str]:
    """Where a delivery stands, the newest first."""
    return [delivery.at.isoformat(), str(delivery.pk)]


def before(rows: "Rows", after: list[str]) -> "Rows":
    """The deliveries that follow a position."""
    at, pk = datetime.fromisoformat(after[0]), after[1]
    return rows.filter(Q(at__lt=at) | Q(at=at, pk__lt=pk))
