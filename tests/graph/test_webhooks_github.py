"""GitHub's webhooks: proof, repeats, and one thread for all that belongs to a PR."""

import json
import lzma
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections
from django.test import Client

from memory.graph import endpoints
from memory.graph.models import Thread
from memory.tenants import rls
from memory.tenants.access import command_actor
from memory.tenants.models import Tenant
from tests.graph.webhook_calls import DATA, Sender, github_bodies, new_sender, threads, triggers

REPOSITORY = {"id": 7, "full_name": "acme/payments"}
SHA = "a" * 39 + "1"
NEXT = "b" * 39 + "2"
MERGE = "c" * 39 + "3"


@pytest.fixture
def hub(acme: Tenant) -> Sender:
    return new_sender(acme, "github")


def pull(action: str = "opened", number: int = 412, **more: Any) -> dict[str, Any]:
    head = {"ref": "fix/retries", "sha": SHA, "repo": {"id": 7}}
    item = {"number": number, "title": "Retry thrice", "body": "", "head": head, "base": {"repo": {"id": 7}}, **more}
    return {
        "action": action,
        "number": number,
        "pull_request": item,
        "repository": REPOSITORY,
        "sender": {"login": "alice"},
    }


def check(sha: str = SHA, *, pulls: Any = (), branch: str = "") -> dict[str, Any]:
    item = {"name": "build", "conclusion": "failure", "head_sha": sha, "pull_requests": list(pulls)}
    item["check_suite"] = {"head_branch": branch}
    return {"action": "completed", "check_run": item, "repository": REPOSITORY}


def push(after: str, ref: str = "refs/heads/fix/retries") -> dict[str, Any]:
    return {
        "ref": ref, "before": SHA, "after": after, "commits": [{"id": after, "message": "Retry once more"}],
        "head_commit": {"id": after, "message": "Retry once more"}, "repository": REPOSITORY, "pusher": {"name": "bob"},
    }  # fmt: skip


def threads_linked(thread: Thread) -> set[str]:
    """Keys of what a thread was linked to."""
    return {link.to_thread.key or "" if link.to_thread else link.to_key for link in thread.links.all()}


def keys(tenant: Tenant) -> list[str | None]:
    return [trigger.thread.key for trigger in triggers(tenant)]


def test_all_bodies_of_all_kinds_are_taken(hub: Sender, acme: Tenant) -> None:
    bodies = github_bodies()
    assert len(bodies) >= 272 and len({name.split("/")[0] for name, _ in bodies}) == 60
    for place, (name, raw) in enumerate(bodies):
        kind = name.split("/")[0]
        answer = hub.github(kind, None, raw=raw, delivery=f"d-{place}")
        assert answer.status_code == (200 if kind == "ping" else 201), (name, answer.content)
    found = triggers(acme)
    assert len(found) == len(bodies) - sum(name.startswith("ping/") for name, _ in bodies)
    assert all(0 < len(trigger.summary) <= 200 for trigger in found)


# What is grouped otherwise than people did, and why that is right.
JOINED = {
    # The commit is the head of PR 2, which the truth, looking at each body alone, can't know.
    "github:Codertocat/Hello-World#2": {("pull_request", 2), ("sha", "ec26c3e57ca3a959ca5aad62de7213c562f8c821")},
    # The body lists a PR of another repository (by its number there): it is not octo-repo's PR 2.
    "github:octo-org/octo-repo@3484a3fb816e0859fd6e1cea078d76385ff50625": {
        ("pull_request", 2),
        ("sha", "3484a3fb816e0859fd6e1cea078d76385ff50625"),
    },
}


def test_its_threads_agree_with_the_ones_people_grouped(hub: Sender, capsys: Any) -> None:
    bodies = dict(github_bodies())
    groups = json.loads((DATA / "threads" / "octokit.json").read_text())
    found: dict[str, set[Any]] = defaultdict(set)
    for group in groups:
        keys_of_group = set()
        for event in group["events"]:
            name = event["file"]
            answer = hub.github(name.split("/")[0], None, raw=bodies[name], delivery=name).json()
            keys_of_group.add(answer["thread_key"])
        assert len(keys_of_group) == 1, group["key"]
        found[keys_of_group.pop()].add((group["kind"], group["key"]))
    with capsys.disabled():
        agree = sum(len(places) == 1 for places in found.values())
        print(f"\nwebhook threads: {len(groups)} groups of bodies, {agree} threads hold one, {len(found) - agree} two")
    assert {key: places for key, places in found.items() if len(places) > 1} == JOINED


def test_all_of_a_pull_request_lands_in_one_thread(hub: Sender, acme: Tenant) -> None:
    review = {**pull("submitted"), "review": {"state": "approved", "user": {"login": "bob"}}}
    comment = {"action": "created", "issue": {"number": 412, "pull_request": {}}, "comment": {"body": "Why?"}}
    status = {"sha": NEXT, "state": "success", "context": "ci", "branches": [], "repository": REPOSITORY}
    merged = pull("closed", merged=True, merged_at="2026-01-01T00:00:00Z", merge_commit_sha=MERGE)
    deployed = {"deployment": {"id": 5, "sha": MERGE, "ref": "main", "environment": "prod"}, "repository": REPOSITORY}
    for event, body in (
        ("pull_request", pull()),
        ("check_run", check()),
        ("push", push(NEXT)),
        ("status", status),
        ("check_run", check(NEXT, branch="fix/retries")),
        ("check_run", check(NEXT, pulls=[{"number": 412, "base": {"repo": {"id": 7}}}])),
        ("pull_request_review", review),
        ("issue_comment", {**comment, "repository": REPOSITORY}),
        ("pull_request", merged),
        ("push", push(MERGE, "refs/heads/main")),
        ("deployment", deployed),
    ):
        assert hub.github(event, body).status_code == 201
    assert set(keys(acme)) == {"github:acme/payments#412"}
    thread = threads(acme)["github:acme/payments#412"]
    assert (thread.title, thread.trigger_count) == ("Retry thrice", 11)
    # The branch is free again, and main is nobody's.
    hub.github("push", push("d" * 40))
    hub.github("push", push("e" * 40, "refs/heads/main"))
    assert keys(acme)[-2:] == ["github:acme/payments@refs/heads/fix/retries", "github:acme/payments@refs/heads/main"]


def test_checks_from_before_the_pull_request_are_linked(hub: Sender, acme: Tenant) -> None:
    hub.github("check_run", check())
    hub.github("pull_request", pull())
    early, later = threads(acme)[f"github:acme/payments@{SHA}"], threads(acme)["github:acme/payments#412"]
    with rls.tenant_scope(str(acme.pk)):
        assert [(one.to_thread_id, one.kind) for one in later.links.all()] == [(early.pk, "continues")]


def test_a_fork_and_another_repositorys_pull_request_are_not_ours(hub: Sender, acme: Tenant) -> None:
    forked = pull(number=9)
    forked["pull_request"]["head"] = {"ref": "main", "sha": SHA, "repo": {"id": 99}}
    hub.github("pull_request", forked)
    hub.github("push", push(NEXT, "refs/heads/main"))
    hub.github("check_run", check(MERGE, pulls=[{"number": 9, "base": {"repo": {"id": 1}}}]))
    assert keys(acme) == [
        "github:acme/payments#9",
        "github:acme/payments@refs/heads/main",
        f"github:acme/payments@{MERGE}",
    ]
    hub.github("push", {**push("f" * 40, "refs/heads/main"), "repository": {"id": 99, "full_name": "eve/payments"}})
    assert keys(acme)[-1] == "github:acme/payments#9"


def test_a_renamed_repository_keeps_its_threads(hub: Sender, acme: Tenant) -> None:
    hub.github("pull_request", pull())
    moved = {"id": 7, "full_name": "acme/billing"}
    hub.github("repository", {"action": "renamed", "repository": moved})
    hub.github("pull_request", {**pull("closed"), "repository": moved})
    hub.github("pull_request", {**pull(number=500), "repository": moved})
    assert keys(acme) == [
        "github:acme/payments#412",
        "github:acme/billing",
        "github:acme/payments#412",
        "github:acme/billing#500",
    ]


def test_a_delivery_is_recorded_once(hub: Sender, acme: Tenant) -> None:
    first = hub.github("pull_request", pull(), delivery="d1")
    again = hub.github("pull_request", pull(), delivery="d1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["trigger_id"] == again.json()["trigger_id"] and len(triggers(acme)) == 1
    # The thread may be found by other marks by the time GitHub sends it again.
    hub.github("check_run", check(), delivery="d2")
    assert [one.status for one in hub.deliveries()] == ["accepted", "repeated", "accepted"]


def test_deliveries_that_arrive_together_make_one_thread_and_repeats_one_trigger(hub: Sender, acme: Tenant) -> None:
    comment = {"action": "created", "issue": {"number": 412}, "repository": REPOSITORY}
    bodies = [{**comment, "comment": {"body": f"see #{place % 3 + 1} and thr_x"}} for place in range(8)]

    def send(place: int) -> int:
        try:
            sender = Sender(hub.endpoint, hub.secret)
            return int(sender.github("issue_comment", bodies[place // 2], delivery=f"d{place // 2}").status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(send, range(16)))
    assert set(codes) <= {200, 201} and codes.count(201) == 8
    assert len(triggers(acme)) == 8 and set(keys(acme)) == {"github:acme/payments#412"}


def test_a_ping_is_answered_and_no_trigger(hub: Sender, acme: Tenant) -> None:
    answer = hub.github("ping", {"zen": "Keep it.", "hook": {"events": ["push"]}})
    assert answer.status_code == 200 and answer.json()["status"] == "ok"
    assert triggers(acme) == [] and [one.status for one in hub.deliveries()] == ["ignored"]


def test_a_form_is_read_too(hub: Sender, acme: Tenant) -> None:
    raw = urlencode({"payload": json.dumps(pull())}).encode()
    kind = "application/x-www-form-urlencoded"
    answer = hub.post(raw, kind=kind, X_GitHub_Event="pull_request", X_Hub_Signature_256=hub.signed(raw))
    assert answer.status_code == 201 and keys(acme) == ["github:acme/payments#412"]
    bare = json.dumps(pull(number=2)).encode()  # what curl -d sends as a form and is none
    assert hub.post(bare, kind=kind, X_Hub_Signature_256=hub.signed(bare)).status_code == 201
    empty = hub.post(b"a=b", kind=kind, X_Hub_Signature_256=hub.signed(b"a=b"))
    assert (empty.status_code, empty.json()["code"]) == (400, "unreadable")


def test_no_wrong_or_weak_signature_gets_in(hub: Sender, acme: Tenant) -> None:
    raw = json.dumps(pull()).encode()
    right = hub.signed(raw)
    for code, headers in (
        ("no_signature", {}),
        ("weak_signature", {"X_Hub_Signature": "sha1=" + "0" * 40}),
        ("wrong_signature", {"X_Hub_Signature_256": "sha256=" + "0" * 64}),
        ("wrong_signature", {"X_Hub_Signature_256": right.upper()}),
        ("wrong_signature", {"X_Hub_Signature_256": right.removeprefix("sha256=")}),
        ("wrong_signature", {"X_Hub_Signature_256": right[:-1]}),
        ("wrong_signature", {"X_Hub_Signature_256": "sha256=ü"}),
    ):
        answer = hub.post(raw, X_GitHub_Event="pull_request", **headers)
        assert (answer.status_code, answer.json()["code"]) == (401, code)
        assert answer["Content-Type"] == "application/problem+json"
    assert hub.post(raw + b" ", X_GitHub_Event="pull_request", X_Hub_Signature_256=right).status_code == 401
    assert triggers(acme) == []
    noted = hub.deliveries()
    # The same refusal again is one row that counts.
    assert {(one.code, one.times) for one in noted} == {
        ("no_signature", 1),
        ("weak_signature", 1),
        ("wrong_signature", 6),
    }
    assert all(one.status == "refused" and one.detail and one.size >= len(raw) for one in noted)


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b'"text"', b"{}", b"{", b"[" * 3000, b"\xff\xfe"])
def test_a_signed_body_that_is_no_delivery_is_refused(hub: Sender, acme: Tenant, raw: bytes) -> None:
    answer = hub.github("push", None, raw=raw)
    assert (answer.status_code, answer.json()["code"]) == (400, "unreadable")
    assert triggers(acme) == [] and hub.deliveries()[0].code == "unreadable"


def test_bad_characters_are_stored_as_such(hub: Sender, acme: Tenant) -> None:
    raw = json.dumps(pull()).replace("Retry thrice", "a\\u0000b \\ud83d").encode()
    assert hub.github("pull_request", None, raw=raw).status_code == 201
    assert triggers(acme)[0].thread.title == "a\ufffdb \ufffd"


def test_a_body_of_25_mb_is_taken_and_one_over_32_is_not(hub: Sender, acme: Tenant) -> None:
    large = pull()
    large["pull_request"]["body"] = "x" * 25_000_000
    assert hub.github("pull_request", large).status_code == 201
    raw = b" " * (33 * 1024 * 1024)
    answer = hub.post(raw, X_Hub_Signature_256="sha256=" + "0" * 64)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert hub.deliveries()[0].code == "too_large"


def test_an_address_nobody_has_tells_nothing(hub: Sender, acme: Tenant, globex: Tenant) -> None:
    other = new_sender(globex, "slack")
    answers = [
        Client().post(f"/api/v1/webhooks/{where}", b"{}", content_type="application/json")
        for where in (
            "github/whk_none",
            f"github/{other.endpoint.public_id}",
            f"slack/{hub.endpoint.public_id}",
            f"none/{hub.endpoint.public_id}",
            "github/whk_%00",
        )
    ]
    assert {answer.status_code for answer in answers} == {404} and len({answer.content for answer in answers}) == 1
    assert Client().get(hub.endpoint.path).status_code == 405
    assert hub.client.post(f"{hub.endpoint.path}/", b"{}", content_type="application/json").status_code == 401


def test_a_push_of_very_many_commits_is_taken(hub: Sender, acme: Tenant) -> None:
    commits = [{"id": f"{place:040x}", "added": ["x"] * 10} for place in range(30_000)]
    answer = hub.github("push", {**push(NEXT), "commits": commits})
    assert answer.status_code == 201
    assert answer.json()["summary"].startswith("acme/payments 30000 commits pushed to fix/retries")


def test_an_issue_that_moved_goes_on_from_the_old_one(hub: Sender, acme: Tenant) -> None:
    hub.github("issues", {"action": "opened", "issue": {"number": 3, "title": "x"}, "repository": REPOSITORY})
    moved = {"old_issue": {"number": 3}, "old_repository": {"full_name": "acme/payments"}}
    there = {"id": 8, "full_name": "acme/other"}
    hub.github("issues", {"action": "opened", "issue": {"number": 1}, "changes": moved, "repository": there})
    with rls.tenant_scope(str(acme.pk)):
        assert threads_linked(threads(acme)["github:acme/other#1"]) == {"github:acme/payments#3"}


def test_a_paused_endpoint_takes_nothing_and_says_so(hub: Sender, acme: Tenant) -> None:
    with rls.tenant_scope(str(acme.pk)):
        endpoints.pause(hub.endpoint, by=command_actor(acme, "tests"))
    assert hub.github("pull_request", pull()).json()["code"] == "paused"
    assert hub.post(b"{}").json()["code"] == "no_signature"
    with rls.tenant_scope(str(acme.pk)):
        endpoints.pause(hub.endpoint, by=command_actor(acme, "tests"), is_paused=False)
    assert hub.github("pull_request", pull()).status_code == 201


def test_secrets_in_a_body_are_not_stored(hub: Sender, acme: Tenant) -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
    hub.github("pull_request", pull(title=f"Use {token}"))
    [trigger] = triggers(acme)
    with rls.tenant_scope(str(acme.pk)):
        stored = b"".join(bytes(part.content or b"") for part in trigger.parts.all())
    assert stored and token.encode() not in stored
    assert token not in trigger.summary and token not in trigger.thread.title


def test_the_events_of_real_threads_are_taken(hub: Sender, acme: Tenant) -> None:
    packed = (DATA / "threads" / "attio-github.jsonl.xz").read_bytes()
    events = [json.loads(line) for line in lzma.decompress(packed).decode().splitlines()]
    for place, (name, event) in enumerate(events):
        answer = hub.github(event["event"], event["payload"], delivery=f"a{place}")
        assert answer.status_code == 201
        assert answer.json()["thread_key"] == f"github:dev/attio-mcp-server#{name.removeprefix('thread-')}"
        assert len(answer.json()["summary"]) > 20
    assert len(threads(acme)) == len({name for name, _ in events})
    with rls.tenant_scope(str(acme.pk)):
        of_380 = threads_linked(threads(acme)["github:dev/attio-mcp-server#380"])
    assert "github:dev/attio-mcp-server#365" in of_380
