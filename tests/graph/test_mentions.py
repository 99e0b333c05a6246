"""Links by rule: from what triggers and reports name to the threads that are meant."""

import json
from typing import Any

import pytest

from memory.graph import links, mentions
from memory.graph.models import Link, Thread, Trigger
from memory.graph.record import Incoming, record_trigger
from memory.tenants import rls
from memory.tenants.models import Tenant
from tests.graph.test_webhooks_github import REPOSITORY, SHA, pull
from tests.graph.webhook_calls import new_sender, threads


def recorded(tenant: Tenant, key: str, text: str, **more: Any) -> Trigger:
    """A trigger of a thread, linked by rule."""
    with rls.tenant_scope(str(tenant.pk)):
        incoming = Incoming(source="chat", thread_key=key, payload=text.encode(), media_type="text/plain", **more)
        trigger = record_trigger(tenant, incoming).trigger
        mentions.link_trigger(trigger)
        return trigger


def linked(tenant: Tenant, key: str) -> set[str]:
    """Keys of what a thread is linked to, found or awaited."""
    with rls.tenant_scope(str(tenant.pk)):
        rows = Link.objects.filter(from_thread__key=key, removed_at__isnull=True).select_related("to_thread")
        return {row.to_thread.key or "" if row.to_thread else row.to_key for row in rows}


def test_a_key_that_comes_later_is_found_then(acme: Tenant) -> None:
    recorded(acme, "github:acme/payments#412", "Fixes #365, see PAY-12")
    assert linked(acme, "github:acme/payments#412") == {"github:acme/payments#365", "jira:PAY-12"}
    recorded(acme, "github:acme/payments#365", "It breaks")
    with rls.tenant_scope(str(acme.pk)):
        link = Link.objects.get(to_thread__key="github:acme/payments#365")
        assert (link.kind, link.made_by) == ("mentions", "rule:mention")


def test_ids_lead_to_their_threads(acme: Tenant) -> None:
    first = recorded(acme, "chat:1", "one")
    recorded(acme, "chat:2", f"as {first.public_id} says")
    recorded(acme, "chat:3", f"see {first.thread.public_id}")
    assert linked(acme, "chat:2") == linked(acme, "chat:3") == {"chat:1"}


def test_it_is_safe_twice_and_never_links_to_itself(acme: Tenant) -> None:
    trigger = recorded(acme, "github:acme/payments#1", "#1 and #2 and https://github.com/acme/payments/pull/2")
    with rls.tenant_scope(str(acme.pk)):
        before = list(Link.objects.values_list("pk", flat=True))
        mentions.link_trigger(trigger)
        assert list(Link.objects.values_list("pk", flat=True)) == before
    assert linked(acme, "github:acme/payments#1") == {"github:acme/payments#2"}


def test_a_link_that_people_removed_is_not_made_again(acme: Tenant) -> None:
    trigger = recorded(acme, "chat:1", "see PAY-7")
    with rls.tenant_scope(str(acme.pk)):
        thread = Thread.objects.get(pk=trigger.thread_id)
        links.remove(thread, links.target(acme, "jira:PAY-7"))
        mentions.link_trigger(trigger)
    assert linked(acme, "chat:1") == set()


def test_a_repository_is_known_in_any_case_and_after_a_rename(acme: Tenant) -> None:
    hub = new_sender(acme, "github")
    hub.github("pull_request", pull())
    hub.github("repository", {"action": "renamed", "repository": {"id": 7, "full_name": "acme/billing"}})
    recorded(acme, "chat:1", "see Acme/Payments#412 and ACME/billing#412")
    recorded(acme, "chat:2", "see Acme/Billing#500")
    assert linked(acme, "chat:1") == {"github:acme/payments#412"}
    assert linked(acme, "chat:2") == {"github:acme/billing#500"}


def test_commits_runs_and_deploys_lead_to_the_pull_request_they_were_seen_with(acme: Tenant) -> None:
    hub = new_sender(acme, "github")
    hub.github("pull_request", pull())
    run = {"id": 77, "head_sha": SHA, "pull_requests": [], "name": "ci"}
    hub.github("workflow_run", {"workflow_run": run, "action": "completed", "repository": REPOSITORY})
    deployment = {"id": 8, "sha": SHA, "ref": "fix", "environment": "preview"}
    status = {"state": "success", "environment_url": "https://pay-git-fix.vercel.app/"}
    hub.github("deployment_status", {"deployment": deployment, "deployment_status": status, "repository": REPOSITORY})
    recorded(acme, "chat:1", "https://github.com/acme/payments/actions/runs/77 is red")
    recorded(acme, "chat:2", "look at https://pay-git-fix.vercel.app/login")
    recorded(acme, "chat:3", "https://pay-other.vercel.app and https://github.com/acme/payments/actions/runs/78")
    recorded(acme, "github:acme/payments#9", f"broken by {SHA}")
    assert linked(acme, "chat:1") == linked(acme, "chat:2") == {"github:acme/payments#412"}
    assert linked(acme, "chat:3") == set()
    assert linked(acme, "github:acme/payments#9") == {"github:acme/payments#412"}


def test_a_ticket_is_looked_for_in_the_tracker_that_sends_here(acme: Tenant) -> None:
    linear = new_sender(acme, "generic", "Linear", field_map={"thread": "/key"})
    linear.bearer(b'{"key": "PAY-3", "title": "Retries"}')
    recorded(acme, "chat:1", "PAY-3 and PAY-4")
    assert linked(acme, "chat:1") == {"linear:PAY-3", "linear:PAY-4"}


def test_names_and_addresses_that_every_body_carries_are_no_mentions(acme: Tenant) -> None:
    body = pull(
        body="Closes #3", html_url="https://github.com/acme/payments/pull/412", user={"login": "a", "title": "X-9"}
    )
    body["repository"] = {**REPOSITORY, "description": "See OPS-1", "default_branch": "main"}
    assert "\n".join(mentions.words_of(json.dumps(body).encode(), "application/json")).count("OPS") == 0
    new_sender(acme, "github").github("pull_request", body)
    assert linked(acme, "github:acme/payments#412") == {"github:acme/payments#3"}
    assert set(threads(acme)) == {"github:acme/payments#412"}


def test_a_report_links_its_workers_thread(acme: Tenant) -> None:
    trigger = recorded(acme, "chat:1", "please look")
    with rls.tenant_scope(str(acme.pk)):
        worker = acme.workers.create(tenant=acme, thread=trigger.thread, report="Done in acme/payments#5, for OPS-2.")
        mentions.link_report(worker)
        mentions.link_report(worker)
    assert linked(acme, "chat:1") == {"github:acme/payments#5", "jira:OPS-2"}


@pytest.mark.parametrize(
    ("key", "home"),
    [
        ("github:acme/payments#412", "github:acme/payments"),
        ("github:acme/payments@refs/heads/main", "github:acme/payments"),
        ("github:acme/payments/releases/v1", "github:acme/payments"), ("gitlab:a/b/c!7", "gitlab:a/b/c"),
        ("github:acme", ""), ("slack:C1:1.2", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_threads_key_tells_its_repository(key: str, home: str) -> None:
    assert mentions.repository_of(key) == home
