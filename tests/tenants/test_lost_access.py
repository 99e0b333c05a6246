"""What was taken away is gone at the next request: a key, a member, a role."""

from typing import Any

from django.test import Client
from django.utils import timezone

from memory.tenants import keys, rls
from memory.tenants.access import command_actor
from memory.tenants.models import AgentKey
from tests.conftest import Agent, new_agent

HOOK = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/src/x"}


def asks(agent: Agent) -> tuple[int, int]:
    """How the API at large and the hot door answer."""
    client = Client(headers=agent.headers)
    hot = client.post("/api/v1/hooks/claude-code", HOOK, content_type="application/json")
    return client.get("/api/v1/sessions").status_code, hot.status_code


def test_a_revoked_key_ends_at_once(acme: Any, agent: Agent) -> None:
    assert asks(agent) == (200, 200)
    with rls.tenant_scope(str(acme.pk)):
        keys.revoke_key(agent.key, by=command_actor(acme, "tests"))
    assert asks(agent) == (401, 401)


def test_an_expired_key_ends_at_once(acme: Any, agent: Agent) -> None:
    assert asks(agent) == (200, 200)
    with rls.tenant_scope(str(acme.pk)):
        AgentKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now())
    assert asks(agent) == (401, 401)


def test_a_removed_member_takes_their_keys_along(acme: Any, mia: Any) -> None:
    hers = new_agent(mia)
    assert asks(hers) == (200, 200)
    with rls.tenant_scope(str(acme.pk)):
        mia.removed_at = timezone.now()
        mia.save()
    assert asks(hers) == (401, 401)


def test_a_lowered_role_narrows_the_key(acme: Any, mia: Any) -> None:
    hers = new_agent(mia)
    with rls.tenant_scope(str(acme.pk)):
        mia.role = "viewer"
        mia.save()
    assert asks(hers) == (200, 403)


def test_a_key_does_no_more_than_its_scopes(alice: Any) -> None:
    assert asks(new_agent(alice, scopes=("read",))) == (200, 403)
    assert asks(new_agent(alice, scopes=("ingest",))) == (403, 200)
