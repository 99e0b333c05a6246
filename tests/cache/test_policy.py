"""What may be cached, for how long, for whom; and which answers are kept."""

from typing import Any

import pytest

from cache_admin import policies
from cache_admin.models import ToolPolicy
from cache_admin.outcomes import unfit
from cache_admin.policy import SEEDS, InvalidPolicy, Policy, check, default_policy
from memory.tenants.access import Refused, command_actor, member_actor


@pytest.mark.parametrize(
    "tool", ["get_current_time", "send_email", "create_order", "get_inventory_level", "Bash", "Edit", "shell"]
)
def test_these_are_never_cached(tool: str) -> None:
    assert default_policy(tool).bypass(content_hash="x") == "side_effects"


@pytest.mark.parametrize(("tool", "ttl_s"), [("get_exchange_rate", 300), ("search_web", 900), ("lookup_company", 3600)])
def test_these_live_for_a_while_and_are_watched_first(tool: str, ttl_s: int) -> None:
    policy = default_policy(tool)
    assert (policy.ttl_s, policy.mode) == (ttl_s, "observe")


def test_a_new_team_serves_only_what_reads_and_is_keyed_by_content() -> None:
    for tool in SEEDS:
        policy = default_policy(tool)
        assert policy.mode != "serve" or (policy.read_only and policy.by_content), tool
    assert default_policy("read_file").mode == "serve" and default_policy("run_tests").mode == "observe"
    assert default_policy("read_file").bypass(content_hash="") == "no_content_hash"


def test_hints_are_a_weak_default() -> None:
    reads = {"readOnlyHint": True, "openWorldHint": False}
    assert default_policy("x").bypass(content_hash="h") == "unknown_tool"
    assert default_policy("x", hints=reads).scope == "member" and default_policy("x", hints=reads).by_content
    assert default_policy("x", hints={"readOnlyHint": True}).mode == "observe"
    for hints in ({"readOnlyHint": False}, {"readOnlyHint": True, "destructiveHint": True}, {"title": "X"}):
        assert default_policy("x", hints=hints).bypass(content_hash="h") == "side_effects"
    for shell in ("Bash", "run_shell_command", "apply_patch"):
        assert default_policy(shell, hints=reads).bypass(content_hash="h") == "side_effects"


FINE: dict[str, Any] = {"mode": "serve", "ttl_s": 300, "worst_outcome": "time"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": "serve"}, "content hash"),
        ({"mode": "observe"}, "content hash"),
        ({**FINE, "has_effects": True}, "side effects"),
        ({**FINE, "worst_outcome": ""}, "worst outcome"),
        ({**FINE, "worst_outcome": "money"}, "money"),
        ({**FINE, "worst_outcome": "customer", "ttl_s": 60}, "invalidation"),
        ({**FINE, "worst_outcome": "safety", "ttl_s": 61, "invalidates": True}, "safety"),
        ({**FINE, "ttl_s": 0}, "ttl_s"),
        ({**FINE, "scope": "world"}, "scope"),
        ({**FINE, "mode": "on"}, "mode"),
        ({**FINE, "threshold": 1.5}, "threshold"),
        ({**FINE, "lease_s": 0}, "lease_s"),
    ],
)
def test_a_dangerous_policy_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidPolicy, match=says):
        check(Policy("t", **given))


@pytest.mark.parametrize(
    "given",
    [
        {}, FINE, {"mode": "serve", "by_content": True}, {"mode": "off", "has_effects": True},
        {**FINE, "worst_outcome": "money", "ttl_s": 60, "invalidates": True},
    ],
)  # fmt: skip
def test_a_safe_policy_is_taken(given: dict[str, Any]) -> None:
    check(Policy("t", **given))


def test_an_admin_sets_it_and_all_else_is_refused(acme: Any, alice: Any, vera: Any, bound: Any) -> None:
    with bound(acme), pytest.raises(Refused):
        policies.save(acme, "t", by=member_actor(vera), **FINE)
    with bound(acme):
        policies.save(acme, "t", by=member_actor(alice), **FINE, rules={"urls": ["url"]})
        policies.save(acme, "t", by=member_actor(alice), ttl_s=600)
        row = ToolPolicy.objects.get()
        assert (row.revision, row.ttl_s, str(row.updated_by_id)) == (2, 600, str(alice.pk))
        assert policies.of_tool(acme, "t").rules.urls == frozenset({"url"})
        assert {one.tool for one in policies.of_team(acme)} == {"t", *SEEDS}


@pytest.mark.parametrize(
    "given", [{"colour": 1}, {"mode": "serve"}, {"rules": {"pathes": []}}, {"rules": {"paths": 1}}]
)
def test_a_wrong_one_changes_nothing(acme: Any, bound: Any, given: dict[str, Any]) -> None:
    with bound(acme), pytest.raises(InvalidPolicy):
        policies.save(acme, "t", by=command_actor(acme, "tests"), **given)
    with bound(acme):
        assert not ToolPolicy.objects.exists()


def test_the_usual_tools_keep_their_rules_when_edited(acme: Any, bound: Any) -> None:
    with bound(acme):
        policies.save(acme, "read_file", by=command_actor(acme, "tests"), scope="team")
        policy = policies.of_tool(acme, "read_file")
        assert policy.rules == default_policy("read_file").rules and policy.scope == "team"


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"isError": True, "content": []}, "error"),
        ({"success": False, "error": "timeout"}, "error"),
        ("HTTP 429 text", "error"),
        ("429 Too Many Requests", "error"),
        ({"results": []}, "empty"),
        ({"exit_code": 1, "stdout": "out"}, "error"),
        ({"status": 503}, "error"),
        ({"errors": ["x"]}, "error"),
        ({"truncated": True, "text": "x"}, "truncated"),
        ("Traceback (most recent call last):\n", "error"),
        ("Error: no such file", "error"),
        ("ENOENT: no such file or directory, open 'x'", "error"),
        ("bash: line 1: rg: command not found", "error"),
        ("curl: (7) Failed to connect to host", "error"),
        ("<!DOCTYPE html><html><head><meta charset=utf-8>\n<title>503 Service Unavailable</title>", "error"),
        ("<html><head><title>2024 report</title></head>", ""),
        ("Service unavailability report", ""),
        ([], "empty"),
        (None, "empty"),
        ("  \n", "empty"),
        ([{"type": "text", "text": "Error: rate limit"}], "error"),
        ([{"type": "text", "text": ""}], "empty"),
        ({"content": [{"type": "text", "text": "fine"}]}, ""),
        ({"errors": [{"line": 3}], "files": 12}, ""),
        ({"mode": "content", "filenames": [], "content": "a.py:1:x"}, ""),
        ({"exit_code": 0, "stdout": "out"}, ""),
        ({"code": 200, "result": "x"}, ""),
        ("The error handling is in src/errors.py", ""),
        (0, ""),
        (False, ""),
        ({"results": [1]}, ""),
        ("No matches found", "empty"),
        ("0 results found for 'retry' in src", "empty"),
        ("null", "empty"),
        (" [] ", "empty"),
        ('{"results": []}', "empty"),
        ('{"isError": true, "content": []}', "error"),
        ('{"success": "false"}', "error"),
        ({"is_error": 1, "text": "x"}, "error"),
        ({"isError": "true", "content": [{"type": "text", "text": "x"}]}, "error"),
        ("No matches found in the docs, but the changelog names it", ""),
        ('{"name": "shop", "errors": [], "results": [1]}', ""),
        ('["a"]', ""),
    ],
)
def test_which_answers_are_kept(result: Any, why: str) -> None:
    assert unfit(result) == why
