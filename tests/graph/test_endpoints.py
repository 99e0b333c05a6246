"""Endpoints: who makes them, secrets shown once, rotated with an overlap, and a list of deliveries that stays short."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memory.graph import endpoints
from memory.graph.endpoints import Wanted, WrongEndpoint
from memory.graph.webhooks.models import Delivery, Endpoint, Mark
from memory.graph.webhooks.proofs import Proof
from memory.tenants import rls
from memory.tenants.access import Refused, member_actor
from memory.tenants.models import AuditEntry, Member, Tenant
from tests.graph.webhook_calls import new_sender


@pytest.mark.parametrize("who", ["bob", "mia", "vera"])
def test_only_admins_manage_endpoints(acme: Tenant, request: Any, who: str) -> None:
    by = member_actor(request.getfixturevalue(who))
    sender = new_sender(acme, "github")
    with rls.tenant_scope(str(acme.pk)):
        for attempt in (
            lambda: endpoints.create(acme, "github", "more", by=by),
            lambda: endpoints.rotate(sender.endpoint, by=by),
            lambda: endpoints.pause(sender.endpoint, by=by),
            lambda: endpoints.change(sender.endpoint, name="x", by=by),
            lambda: endpoints.remove(sender.endpoint, by=by),
        ):
            with pytest.raises(Refused):
                attempt()


def test_what_is_done_is_audited_without_the_secret(acme: Tenant, alice: Member) -> None:
    by = member_actor(alice)
    with rls.tenant_scope(str(acme.pk)):
        made, secret = endpoints.create(acme, "github", " Our  hub ", by=by)
        fresh = endpoints.rotate(made, by=by)
        endpoints.pause(made, by=by)
        endpoints.change(made, name="Hub", by=by)
        endpoints.remove(made, by=by)
        entries = list(AuditEntry.objects.filter(target=made.public_id).order_by("seq"))
    assert [one.action.partition(".")[2] for one in entries] == ["create", "rotate", "pause", "change", "remove"]
    told = " ".join(one.after + one.before for one in entries)
    assert secret not in told and fresh not in told and "Our hub" in told


@pytest.mark.parametrize("kind", ["github", "gitlab", "slack", "mail", "generic"])
def test_no_secret_is_kept_readable(acme: Tenant, kind: str) -> None:
    sender = new_sender(acme, kind)
    with rls.tenant_scope(str(acme.pk)):
        row = Endpoint.objects.filter(pk=sender.endpoint.pk).values().get()
    assert sender.secret not in str(row) and sender.secret.encode() not in bytes(row["secret"])


def test_a_rotated_secret_is_good_until_the_overlap_has_passed(acme: Tenant, alice: Member) -> None:
    sender = new_sender(acme, "github")
    body = {"zen": "x", "hook": {}}
    old = sender.secret
    with rls.tenant_scope(str(acme.pk)):
        sender.secret = endpoints.rotate(sender.endpoint, by=member_actor(alice))
    fresh = sender.secret
    for secret in (old, fresh):
        sender.secret = secret
        assert sender.github("ping", body).status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        Endpoint.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    sender.secret = old
    assert sender.github("ping", body).status_code == 401
    with rls.tenant_scope(str(acme.pk)):
        sender.secret = endpoints.rotate(sender.endpoint, by=member_actor(alice), overlap=timedelta())
    assert sender.github("ping", body).status_code == 200
    sender.secret = fresh
    assert sender.github("ping", body).status_code == 401


@pytest.mark.parametrize(
    ("kind", "name", "wanted", "code"),
    [
        ("none", "x", {}, "unknown_kind"), ("github", " ", {}, "invalid_name"),
        ("github", "x" * 121, {}, "invalid_name"),
        ("slack", "x", {}, "no_secret"), ("github", "x", {"secret": "short"}, "weak_secret"),
        ("github", "x", {"secret": "ü" * 20}, "weak_secret"),
        ("github", "x", {"field_map": {"thread": "/a"}}, "no_field_map"),
        ("generic", "x", {"field_map": {"thread": "a"}}, "invalid_field_map"), ("generic", "→", {}, "invalid_source"),
        ("github", "x", {"proof": Proof("token", header="X-T")}, "invalid_proof"),
        ("generic", "x", {"proof": Proof("slack")}, "invalid_proof"),
    ],
)  # fmt: skip
def test_what_can_not_be_an_endpoint_is_refused(
    acme: Tenant, alice: Member, kind: str, name: str, wanted: dict[str, Any], code: str
) -> None:
    with rls.tenant_scope(str(acme.pk)):
        with pytest.raises(WrongEndpoint) as refusal:
            endpoints.create(acme, kind, name, wanted=Wanted(**wanted), by=member_actor(alice))
        assert refusal.value.code == code and Endpoint.objects.count() == 0


def test_two_endpoints_have_two_names(acme: Tenant, alice: Member) -> None:
    new_sender(acme, "github", "hub")
    with rls.tenant_scope(str(acme.pk)), pytest.raises(WrongEndpoint, match="name"), transaction.atomic():
        endpoints.create(acme, "slack", "hub", wanted=Wanted(secret="x" * 20), by=member_actor(alice))


def test_an_overlap_has_an_end(acme: Tenant, alice: Member) -> None:
    sender = new_sender(acme, "github")
    with rls.tenant_scope(str(acme.pk)), pytest.raises(WrongEndpoint, match="30 days"):
        endpoints.rotate(sender.endpoint, by=member_actor(alice), overlap=timedelta(days=31))


def test_a_flood_of_refused_calls_pushes_no_accepted_one_out(acme: Tenant) -> None:
    sender = new_sender(acme, "generic", "any")
    sender.bearer(b'{"event": "one"}')
    with rls.tenant_scope(str(acme.pk)):
        for place in range(endpoints.KEPT + 20):
            note = Delivery(status="refused", code=f"code{place}", size=1)
            endpoints.delivered(sender.endpoint, note)
        assert endpoints.deliveries(sender.endpoint, status="refused").count() == endpoints.KEPT
        assert endpoints.deliveries(sender.endpoint, status="accepted").count() == 1
    for _ in range(5):
        sender.post(b"{}")
    assert next((one.code, one.times) for one in sender.deliveries()) == ("no_token", 5)


def test_marks_that_nobody_uses_are_forgotten(acme: Tenant) -> None:
    hub = new_sender(acme, "github")
    hub.github("issues", {"action": "opened", "issue": {"number": 3}, "repository": {"id": 7, "full_name": "a/b"}})
    with rls.tenant_scope(str(acme.pk)):
        assert endpoints.forget_marks(acme) == 0
        Mark.objects.update(at=timezone.now() - endpoints.MARK_LIFE - timedelta(days=1))
        assert endpoints.forget_marks(acme) == 2 and not Mark.objects.exists()


def test_another_team_sees_no_endpoint_and_no_delivery(acme: Tenant, globex: Tenant) -> None:
    sender = new_sender(acme, "generic", "any")
    sender.bearer(b'{"event": "one"}')
    with rls.tenant_scope(str(globex.pk)):
        assert not Endpoint.objects.exists() and not Delivery.objects.exists()
    with rls.tenant_scope(str(acme.pk)):
        endpoints.remove(sender.endpoint, by=member_actor(Member.objects.get(handle="alice")))
        assert not Delivery.objects.exists()
    assert sender.bearer(b'{"event": "two"}').status_code == 404
