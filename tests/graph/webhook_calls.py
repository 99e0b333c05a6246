"""Calls as GitHub, Slack and the others make them, with the right proof unless told otherwise."""

import base64
import hashlib
import hmac
import json
import lzma
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.test import Client

from memory.graph import endpoints
from memory.graph.models import Thread, Trigger
from memory.graph.webhooks.models import Delivery, Endpoint
from memory.tenants import rls
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant

DATA = Path(__file__).parents[1] / "data"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


def github_bodies() -> list[tuple[str, bytes]]:
    """Name and bytes of each of the 272 bodies."""
    lines = lzma.decompress((DATA / "webhooks" / "github.jsonl.xz").read_bytes()).decode().splitlines()
    return [(name, body.encode()) for name, body in map(json.loads, lines)]


@dataclass
class Sender:
    """A sender that knows the endpoint's secret."""

    endpoint: Endpoint
    secret: str
    client: Client = field(default_factory=Client)

    def post(self, raw: bytes, *, kind: str = "application/json", **headers: str) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic("POST", self.endpoint.path, raw, kind, headers=sent)

    def github(self, event: str, body: Any, *, delivery: str = "", raw: bytes | None = None) -> Any:
        raw = json.dumps(body).encode() if raw is None else raw
        named = {"X_GitHub_Delivery": delivery} if delivery else {}
        return self.post(raw, X_GitHub_Event=event, X_Hub_Signature_256=self.signed(raw), **named)

    def signed(self, raw: bytes) -> str:
        return "sha256=" + hmac.new(self.secret.encode(), raw, hashlib.sha256).hexdigest()

    def gitlab(self, body: Any, **headers: str) -> Any:
        return self.post(json.dumps(body).encode(), X_Gitlab_Token=self.secret, **headers)

    def slack(self, body: Any, *, raw: bytes | None = None, at: float | None = None, **headers: str) -> Any:
        raw = json.dumps(body).encode() if raw is None else raw
        stamp = str(int(time.time() if at is None else at))
        signed = hmac.new(self.secret.encode(), b"v0:" + stamp.encode() + b":" + raw, hashlib.sha256).hexdigest()
        proof = {"X_Slack_Request_Timestamp": stamp, "X_Slack_Signature": f"v0={signed}"}
        return self.post(raw, kind=headers.pop("kind", "application/json"), **proof, **headers)

    def bearer(self, raw: bytes, *, kind: str = "application/json", **headers: str) -> Any:
        return self.post(raw, kind=kind, Authorization=f"Bearer {self.secret}", **headers)

    def mail(self, raw: bytes) -> Any:
        return self.bearer(raw, kind="message/rfc822")

    def standard(self, raw: bytes, *, message_id: str = "msg_1", at: float | None = None) -> Any:
        stamp = str(int(time.time() if at is None else at))
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        signed = hmac.new(key, f"{message_id}.{stamp}.".encode() + raw, hashlib.sha256).digest()
        proof = {"webhook_timestamp": stamp, "webhook_signature": f"v1,{base64.b64encode(signed).decode()}"}
        return self.post(raw, webhook_id=message_id, **proof)

    def deliveries(self) -> list[Delivery]:
        with rls.tenant_scope(str(self.endpoint.tenant_id)):
            return list(endpoints.deliveries(Endpoint.objects.get(pk=self.endpoint.pk)))


def new_sender(tenant: Tenant, kind: str, name: str = "", **wanted: Any) -> Sender:
    """An endpoint of a tenant, and somebody who sends to it."""
    if kind == "slack":
        wanted.setdefault("secret", SLACK_SECRET)
    with rls.tenant_scope(str(tenant.pk)):
        by = command_actor(tenant, "tests")
        made, secret = endpoints.create(tenant, kind, name or kind, wanted=endpoints.Wanted(**wanted), by=by)
    return Sender(made, secret)


def triggers(tenant: Tenant) -> list[Trigger]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(Trigger.objects.select_related("thread").order_by("received_at", "pk"))


def threads(tenant: Tenant) -> dict[str | None, Thread]:
    with rls.tenant_scope(str(tenant.pk)):
        return {thread.key: thread for thread in Thread.objects.all()}
