"""manage.py create_tenant."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from memory.tenants import keys
from memory.tenants.middleware import membership
from memory.tenants.models import Tenant, User
from memory.tenants.people import tenant_by_slug
from tests.pages import made

pytestmark = pytest.mark.usefixtures("committed")


def create(*arguments: str) -> Any:
    out = StringIO()
    call_command("create_tenant", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_it_makes_a_team_with_a_link_and_a_key() -> None:
    made = create("acme", "--owner", "alice@acme.test")
    assert made["tenant"] == "acme"
    assert made["tenant_id"].startswith("ten_")
    assert keys.is_well_formed(made["agent_key"])
    assert "/login/link/" in made["login_url"]
    assert membership(str(User.objects.get().pk), "acme") is not None


def test_it_shows_no_secret_a_second_time() -> None:
    first = create("acme", "--owner", "alice@acme.test")
    again = create("acme", "--owner", "alice@acme.test")
    assert again == {"tenant": "acme", "tenant_id": first["tenant_id"], "login_url": None, "agent_key": None}


def test_it_makes_new_secrets_when_asked() -> None:
    create("acme", "--owner", "alice@acme.test")
    assert create("acme", "--owner", "alice@acme.test", "--new-link")["login_url"]
    assert create("acme", "--owner", "alice@acme.test", "--new-key")["agent_key"]


@pytest.mark.parametrize("slug", ["", "Acme", "a/b", "-a", "a" * 61, "acme corp"])
def test_it_refuses_a_bad_slug(slug: str) -> None:
    with pytest.raises(CommandError, match="slug"):
        create(slug, "--owner", "alice@acme.test")


def test_it_refuses_what_is_no_address() -> None:
    with pytest.raises(CommandError, match="e-mail"):
        create("acme", "--owner", "alice")


def test_it_makes_a_key_for_what_is_asked() -> None:
    may = [
        Client(headers={"Authorization": f"Bearer {create(slug, '--owner', 'alice@acme.test', *more)['agent_key']}"})
        for slug, more in (("acme", ()), ("other", ("--scopes", "read")))
    ]
    assert [client.delete("/api/v1/workers/wkr_none").status_code for client in may] == [404, 403]
    with pytest.raises(CommandError, match="--scopes takes ingest, read"):
        create("acme", "--owner", "alice@acme.test", "--new-key", "--scopes", "everything")


def test_it_does_not_let_a_second_owner_in() -> None:
    create("acme", "--owner", "alice@acme.test")
    with pytest.raises(CommandError, match=r"exists.*add_member"):
        create("acme", "--owner", "mallory@evil.test")


def test_a_link_opens_once() -> None:
    link = create("acme", "--owner", "alice@acme.test")["login_url"].rstrip("/").rsplit("/", 1)[1]
    assert keys.peek_link(link) is not None
    assert keys.claim_link(link) is not None
    assert keys.claim_link(link) is None
    assert keys.peek_link(link) is None


def test_it_makes_a_key_for_some_projects_only() -> None:
    create("acme", "--owner", "alice@acme.test")
    tenant = Tenant(pk=tenant_by_slug("acme"))
    shop, _ = made.project(tenant, "shop"), made.project(tenant, "other")
    key = create("acme", "--owner", "alice@acme.test", "--new-key", "--project", "shop")["agent_key"]
    listed = Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v1/projects").json()["items"]
    assert [one["id"] for one in listed] == [shop.public_id]
    with pytest.raises(CommandError, match="no project shops"):
        create("acme", "--owner", "alice@acme.test", "--new-key", "--project", "shops")
