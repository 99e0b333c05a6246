"""A team whose caches were used, filled through the doors that agents use."""

from typing import Any

from cache_admin import pairs, policies
from memory.tenants import rls
from memory.tenants.access import command_actor
from tests.cache.asked import call

QUESTION = "ask_docs"


def used(acme: Any, api: Any) -> dict[str, str]:
    """Hits, misses, bypasses, watched calls, an incident, a near pair, analyses, usage; gives what ids there are."""
    # A session that holds the answer is given its id alone.
    context = {"project": "shop", "root": "/home/dev/shop", "session": "s1"}
    body = call(arguments={"path": "./src/pay.py"}, context=context)
    made = store(api, body, "def pay():\n    return 1\n" * 60, duration_ms=1800)
    for _ in range(3):
        assert api.post("cache/tools/lookup", body).json()["status"] == "hit"
    store(api, call(arguments={"path": "src/cart.py"}, content_hash="sha256:2"), "def cart(): ...", duration_ms=90)
    api.post("cache/tools/lookup", call("unknown_tool"))
    api.post("cache/tools/lookup", call("send_email", arguments={"to": "a@acme.test"}))
    for rate in ("1.1", "1.1", "1.2"):
        watched = api.post("cache/tools/lookup", call("get_exchange_rate", arguments={"pair": "EURUSD"})).json()
        api.put(f"cache/tools/{watched['key']}", {"lease": watched["lease"], "result": rate, "duration_ms": 300})
    stale = store(api, call(arguments={"path": "src/old.py"}, content_hash="sha256:3"), "old words")
    told = api.post("cache/incidents", {"key": stale["key"], "kind": "stale", "detail": "It was renamed."}).json()
    kept = api.put(
        "cache/analyses/sha256:9/complexity",
        {"version": "1", "analysis": {"complexity": 7}, "path": "src/pay.py", "duration_ms": 900, "model": "small"},
    ).json()
    wanted = {"content_hash": "sha256:9", "analysis_type": "complexity", "version": "1", "path": "src/pay.py"}
    wanted["model"] = "small"
    api.post("cache/analyses/lookup", {"items": [wanted, {**wanted, "content_hash": "sha256:8"}]})
    usages = [
        {
            "message_id": f"msg_{number}",
            "model": "claude-sonnet-4-5",
            "harness": "claude_code",
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 200,
                      "output_tokens": 50},
        }
        for number in range(3)
    ]  # fmt: skip
    assert api.post("usage", usages).status_code == 201
    return {
        "key": made["key"],
        "incident": told["incident_id"],
        "analysis": kept["analysis_id"],
        "pair": near_pair(acme, api),
    }


def store(api: Any, body: dict[str, Any], result: Any, **more: Any) -> Any:
    """Look up, which must miss, and store; gives the answer of the PUT."""
    missed = api.post("cache/tools/lookup", body).json()
    assert missed["status"] == "miss", missed
    return api.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": result, **more}).json()


def near_pair(acme: Any, api: Any) -> str:
    """A pair that waits: a question that asks the opposite of one that was answered."""
    with rls.tenant_scope(str(acme.pk)):
        by = command_actor(acme, "tests")
        policies.save(acme, QUESTION, by=by, mode="serve", ttl_s=86_400, worst_outcome="nothing", scope="project")
    question = {"tool": QUESTION, "query": "How to enable debug logs?", "context": {"project": "shop"}}
    missed = api.post("cache/semantic/lookup", question).json()
    api.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": "Set LOG_LEVEL to debug."})
    api.post("cache/semantic/lookup", {**question, "query": "How to disable debug logs?"})
    with rls.tenant_scope(str(acme.pk)):
        return str(pairs.waiting(acme).get().pk)


def labels(acme: Any, tool: str = QUESTION) -> None:
    """Enough decided pairs of a tool to find its threshold."""
    by = command_actor(acme, "tests")
    same = [
        (f"how do I start {name}", f"how can I start {name}", True, (180 + n) / 200)
        for n, name in enumerate("abcdefghijklmnop")
    ]
    other = [
        (f"show the log of {name}", f"open a log of {name}", False, (82 + n) / 100) for n, name in enumerate("abcdef")
    ]
    with rls.tenant_scope(str(acme.pk)):
        pairs.add(acme, tool, [*same, *other], by=by)
