"""The caches' pages: figures, policies, entries, pairs, incidents, repeats, prompt caching."""

import json
from typing import Any

import pytest

from cache_admin import analyses, policies
from cache_admin.models import Entry, Flight, Lookup, Pair, ToolPolicy
from memory.tenants.models import AuditEntry
from tests.cache import filled
from tests.cache.asked import call, stored
from tests.conftest import new_agent
from tests.pages import made
from tests.pages.test_markup import SIGN, Danger

HTMX = {"HX-Request": "true"}
PAGES = ("", "tools/", "entries/", "similar/", "analyses/", "incidents/", "repeats/?count=yes", "prompts/")
SAVED = {
    "mode": "serve", "worst_outcome": "nothing", "ttl_s": "600", "scope": "project", "summariser": "auto",
    "shadow_percent": "0", "lease_s": "60", "empty_ttl_s": "0", "threshold": "0.92",
}  # fmt: skip


def at(page: str) -> str:
    return f"/t/acme/caches/{page}"


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


@pytest.fixture
def used(acme: Any, desk: Any) -> dict[str, str]:
    return filled.used(acme, desk)


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.content[:600]
    return " ".join(answer.content.decode().split())


def test_pages_without_data_say_what_to_do_next(logged_in: Any, acme: Any, vera: Any) -> None:
    browser = logged_in(vera)
    for page in PAGES:
        said = text(browser.get(at(page)))
        assert 'class="empty' in said and "button" in said.split('class="empty', 1)[1][:900], page


def test_the_overview_shows_figures_and_what_needs_a_person(logged_in: Any, used: Any, vera: Any) -> None:
    answer = logged_in(vera).get(at(""))
    said = text(answer)
    total = answer.context["read"].total
    # 3 hits of read_file and 1 of analyses; misses: 3 files, 1 analysis, 2 questions.
    assert (total["hits"], total["cacheable_lookups"], total["bypasses"], total["observed"]) == (4, 10, 2, 3)
    assert "40 %" in said and total["staleness_incidents"] == 1
    assert len(answer.context["charts"]) == 6 and said.count("<svg viewBox") == 6 and "<caption" in said
    for words in ("Nobody decided on <bdi>unknown_tool</bdi>", "1 pair of questions to", "reported by an agent"):
        assert words in said, words
    assert [line.tool for line in answer.context["undecided"]] == ["unknown_tool"]
    assert "get_exchange_rate</bdi>: would have been stale" in said


def test_the_table_gives_each_tool_its_reasons(logged_in: Any, used: Any, vera: Any) -> None:
    answer = logged_in(vera).get(at("tools/?days=7"))
    said = text(answer)
    lines = {(line.tool, line.kind): line for line in answer.context["read"].tools}
    assert lines[("read_file", "tool")].figures["hit_rate"] == 0.5
    assert lines[("read_file", "tool")].gain.net_ms > 0
    assert "3 watched: 2 would be hits, 1 stale" in said and "1 went past: no policy" in said
    assert "1 went past: side effects" in said and "1 missed: the guard: opposite words" in said
    assert "Write its policy" not in said, "who may not change anything is offered nothing"


def test_a_lookup_as_slow_as_the_tool_is_warned_of(
    logged_in: Any, acme: Any, desk: Any, alice: Any, bound: Any
) -> None:
    body = call()
    stored(desk, body, duration_ms=1)
    desk.post("cache/tools/lookup", body)
    with bound(acme):
        Lookup.objects.update(lookup_us=5_000)
    assert "Lookup as slow as the tool" in text(logged_in(alice).get(at("tools/")))
    assert "takes as long as the tool" in text(logged_in(alice).get(at("")))


def test_a_watched_tool_becomes_ready(logged_in: Any, acme: Any, desk: Any, alice: Any) -> None:
    for _ in range(21):
        watched = desk.post("cache/tools/lookup", call("get_exchange_rate", arguments={"pair": "EURUSD"})).json()
        desk.put(f"cache/tools/{watched['key']}", {"lease": watched["lease"], "result": "1.1"})
    assert "<bdi>get_exchange_rate</bdi> is ready to serve" in text(logged_in(alice).get(at("")))


def test_an_admin_changes_a_policy_and_the_audit_says_who(
    logged_in: Any, acme: Any, used: Any, alice: Any, bound: Any
) -> None:
    browser, here = logged_in(alice), at("policy/?tool=read_file")
    said = {**SAVED, "rule_paths": "path, file_path", "defaults": '{"depth": 1}', "rule_http_hosts": "Docs.test"}
    assert browser.post(here, said).status_code == 302
    with bound(acme):
        row = ToolPolicy.objects.get(tool="read_file")
        assert (row.ttl_s, row.by_content, str(row.updated_by_id)) == (600, False, str(alice.pk))
        assert row.rules == {"paths": ["path", "file_path"], "http_hosts": ["Docs.test"], "defaults": {"depth": 1}}
        assert not Entry.objects.filter(tool="read_file").exists()
        assert AuditEntry.objects.filter(action="cache.policy", target="read_file").count() == 1
    page = text(browser.get(here))
    assert "by <bdi>Alice</bdi>" in page and "serve project 600" in page


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"has_effects": "on"}, "mode", "side effects is never cached"),
        ({"ttl_s": ""}, "ttl_s", "Without a lifetime"),
        ({"ttl_s": "0"}, "ttl_s", "ttl_s is 1 to"),
        ({"worst_outcome": ""}, "worst_outcome", "Say what the worst outcome"),
        ({"worst_outcome": "money"}, "worst_outcome", "may cost money"),
        ({"worst_outcome": "customer", "ttl_s": "60"}, "worst_outcome", "may cost customer"),
        ({"worst_outcome": "safety", "ttl_s": "61", "invalidates": "on"}, "worst_outcome", "at most 60 s"),
        ({"semantic": "on"}, "semantic", "Label at least 20 pairs"),
        ({"threshold": "7"}, "threshold", "less than or equal to 1"),
        ({"defaults": "[1]"}, "defaults", "A JSON object"),
        ({"schema": "{nope"}, "schema", "valid JSON"),
        ({"shadow_percent": "101"}, "shadow_percent", "less than or equal to 100"),
        ({"mode": "always"}, "mode", "Select a valid choice"),
    ],
)
def test_a_refused_combination_is_explained_at_its_field(
    logged_in: Any, acme: Any, alice: Any, bound: Any, more: dict[str, str], field: str, words: str
) -> None:
    answer = logged_in(alice).post(at("policy/?tool=get_price"), {**SAVED, **more})
    assert answer.status_code == 422 and words in " ".join(answer.context["form"].errors[field])
    assert words in " ".join(answer.content.decode().split())
    with bound(acme):
        assert not ToolPolicy.objects.exists()


def test_money_may_live_a_minute_with_active_invalidation(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    said = {**SAVED, "worst_outcome": "money", "ttl_s": "60", "invalidates": "on"}
    assert logged_in(alice).post(at("policy/?tool=get_price"), said).status_code == 302
    with bound(acme):
        assert policies.of_tool(acme, "get_price").ttl_s == 60


@pytest.mark.parametrize(("threshold", "words"), [("0.8", "Below 0.85"), ("0.98", "Above 0.97"), ("0.92", "")])
def test_the_editor_warns_of_thresholds(logged_in: Any, acme: Any, alice: Any, threshold: str, words: str) -> None:
    browser, here = logged_in(alice), at("policy/?tool=ask")
    assert browser.post(here, {**SAVED, "threshold": threshold}).status_code == 302
    answer = browser.get(here)
    assert words in text(answer) and bool(answer.context["warning"]) == bool(words)


def tried(browser: Any, tool: str = "read_file", **said: str) -> Any:
    return browser.post(at(f"policy/try/?tool={tool}"), {f"call-{name}": value for name, value in said.items()})


def test_a_tried_call_shows_the_key_that_a_lookup_makes_and_writes_nothing(
    logged_in: Any, acme: Any, used: Any, alice: Any, bound: Any
) -> None:
    browser = logged_in(alice)
    with bound(acme):
        before = (Lookup.objects.count(), Flight.objects.count(), AuditEntry.objects.count())
    said = {"arguments": '{"path": "/home/dev/shop/src/pay.py"}', "root": "/home/dev/shop", "project": "shop"}
    answer = tried(browser, content_hash="sha256:1", **said)
    verdict = answer.context["verdict"]
    assert (verdict.status, verdict.key, verdict.changed) == ("hit", used["key"], True)
    assert "$ROOT/src/pay.py" in text(answer) and used["key"] in text(answer)
    other = tried(browser, content_hash="sha256:other", **said).context["verdict"]
    assert (other.status, other.reason) == ("miss", "content_changed")
    with bound(acme):
        assert (Lookup.objects.count(), Flight.objects.count(), AuditEntry.objects.count()) == before


@pytest.mark.parametrize(
    ("tool", "said", "status", "reason"),
    [
        ("read_file", {"arguments": "{}"}, "bypass", "no_content_hash"),
        ("read_file", {"arguments": "{}", "content_hash": "x"}, "bypass", "no_project"),
        ("read_file", {"arguments": '{"path": "a"}', "content_hash": "x", "project": "p"}, "miss", "no_entry"),
        ("nobody_knows", {"arguments": "{}"}, "bypass", "unknown_tool"),
        ("send_email", {"arguments": "{}"}, "bypass", "side_effects"),
        ("search_web", {"arguments": '{"query": "A  b"}'}, "bypass", "observe"),
        ("WebFetch", {"arguments": '{"url": "https://a.test/?token=s3cr3tvalue"}'}, "bypass", "secret"),
    ],
)
def test_the_verdict_gives_its_reason(
    logged_in: Any, acme: Any, vera: Any, tool: str, said: dict[str, str], status: str, reason: str
) -> None:
    verdict = tried(logged_in(vera), tool, **said).context["verdict"]
    assert (verdict.status, verdict.reason) == (status, reason) and verdict.words.endswith((".", "!"))


@pytest.mark.parametrize(
    "said", [{"arguments": "{"}, {"arguments": "[1]"}, {"arguments": '{"a": 1, "a": 2}'}, {"arguments": "NaN"},
             {"arguments": "{}", "content_hash": "x", "project": "prj_none"}],
)  # fmt: skip
def test_a_call_that_cannot_be_read_is_refused_at_its_field(
    logged_in: Any, acme: Any, alice: Any, said: dict[str, str]
) -> None:
    answer = tried(logged_in(alice), **said)
    assert answer.status_code == 422 and answer.context["call"].errors


def test_a_call_is_tried_with_the_policy_as_it_is_typed(logged_in: Any, acme: Any, alice: Any, bound: Any) -> None:
    said = {**SAVED, "scope": "team", "rule_numbers": "n", "call-arguments": '{"n": "10"}'}
    answer = logged_in(alice).post(at("policy/try/?tool=count_things"), said, headers=HTMX)
    assert "<!doctype" not in answer.content.decode()
    verdict = answer.context["verdict"]
    assert (verdict.status, json.loads(verdict.arguments)) == ("miss", {"n": 10})
    with bound(acme):
        assert not ToolPolicy.objects.exists()


def test_entries_are_filtered_and_each_shows_what_its_key_was_made_of(
    logged_in: Any, acme: Any, used: Any, vera: Any, alice: Any
) -> None:
    browser = logged_in(vera)
    assert len(browser.get(at("entries/")).context["entries"]) == 4
    found = browser.get(at("entries/?tool=read_file")).context["entries"]
    assert [entry.tool for entry in found] == ["read_file", "read_file"]
    assert browser.get(at(f"entries/?writer={alice.public_id}")).context["entries"]
    assert "No entry fits" in text(browser.get(at("entries/?tool=none")))
    said = text(browser.get(at(f"entries/{used['key']}/")))
    for words in ("$ROOT/src/pay.py", "sha256:1", "Alice", "the project shop", "<dt>Hits</dt><dd>3</dd>"):
        assert words in said, words
    assert "Drop it" not in said
    assert browser.get(at("entries/nothing/")).status_code == 404


def test_what_stays_with_a_member_is_seen_by_that_member_alone(
    logged_in: Any, acme: Any, api: Any, alice: Any, mia: Any, bound: Any
) -> None:
    mine = call(context={"project": "shop", "scope": "member"})
    made = stored(api(new_agent(mia)), mine, "only for Mia").json()
    told = api(new_agent(mia)).post("cache/incidents", {"key": made["key"], "detail": "Mia's words"}).json()
    made = stored(api(new_agent(mia)), mine, "only for Mia").json()
    browser = logged_in(alice)
    assert browser.get(at(f"entries/{made['key']}/")).status_code == 404
    said = text(browser.get(at("entries/")))
    assert "1 more is another member's own" in said and made["key"][:16] not in said
    incident = text(browser.get(at(f"incidents/{told['incident_id']}/")))
    assert "src/pay.py" not in incident and "Mia's words" not in incident.replace("&#x27;", "'")
    assert "only for Mia" in text(logged_in(mia).get(at(f"entries/{made['key']}/")))


@pytest.mark.parametrize(
    ("kind", "value", "entries", "analyses", "left"),
    [
        ("tool", "read_file", 2, 0, 2),
        ("writer", "{alice}", 4, 1, 0),
        ("content_hash", "sha256:1", 2, 0, 2),
        ("content_hash", "sha256:9", 0, 1, 4),
        ("key", "{key}", 1, 0, 3),
        ("all", "yes", 4, 0, 0),
    ],
)
def test_a_purge_is_counted_first_and_then_confirmed(
    logged_in: Any, acme: Any, used: Any, alice: Any, bound: Any, kind: str, value: str,
    entries: int, analyses: int, left: int,
) -> None:  # fmt: skip
    named, browser = value.format(alice=alice.public_id, key=used["key"]), logged_in(alice)
    asked = browser.get(at("purge/"), {kind: named}).context["asked"]
    assert (asked.entries, asked.analyses) == (entries, analyses)
    with bound(acme):
        assert Entry.objects.count() == 4, "looking drops nothing"
    assert browser.post(at("purge/"), {kind: named}).status_code == 302
    with bound(acme):
        assert Entry.objects.count() == left
        row = AuditEntry.objects.filter(action="cache.invalidate").latest("seq")
        assert row.actor_label == "alice" and int(row.after) == entries + analyses


def test_a_purge_of_a_project_leaves_the_others(logged_in: Any, acme: Any, desk: Any, alice: Any, bound: Any) -> None:
    shop = made.project(acme, "shop")
    stored(desk, call())
    stored(desk, call(context={"project": "elsewhere"}))
    browser = logged_in(alice)
    assert browser.get(at("purge/"), {"project": shop.public_id}).context["asked"].entries == 1
    browser.post(at("purge/"), {"project": shop.public_id})
    with bound(acme):
        assert Entry.objects.count() == 1


def test_a_purge_of_what_is_not_there_says_so(logged_in: Any, acme: Any, globex: Any, alice: Any, charlie: Any) -> None:
    browser = logged_in(alice)
    for said in ({"writer": charlie.public_id}, {"project": "prj_none"}, {"key": "zz"}, {"tool": "a", "all": "yes"}):
        assert browser.get(at("purge/"), said).status_code == 422, said
        assert browser.post(at("purge/"), said).status_code == 422, said
    assert browser.post(at("purge/"), {}).status_code == 200


def test_pairs_are_marked_and_their_labels_draw_the_curve(
    logged_in: Any, acme: Any, used: Any, alice: Any, bound: Any
) -> None:
    browser = logged_in(alice)
    said = text(browser.get(at("similar/")))
    assert "How to disable debug logs?" in said and 'data-key="s"' in said and "Guard: opposite words" in said
    here = at(f"similar/{used['pair']}/")
    assert browser.post(here, {"verdict": "maybe"}).status_code == 422
    assert browser.post(here, {"verdict": "different"}).status_code == 302
    with bound(acme):
        pair = Pair.objects.get(pk=used["pair"])
        assert (pair.verdict, str(pair.decided_by_id)) == ("different", str(alice.pk))
        assert AuditEntry.objects.filter(action="cache.pair", after="different").exists()
    filled.labels(acme)
    piece = browser.post(here, {"verdict": "same"}, headers=HTMX)
    assert "<!doctype" not in piece.content.decode() and "No, different" in text(piece)
    answer = browser.get(at(f"similar/?tool={filled.QUESTION}"))
    # Of the different ones, the most alike that passes the guard is 0.87.
    assert answer.context["proposed"] == 0.88 and "<b>0.88</b>" in text(answer)
    assert answer.context["chart"].lines and "<caption" in text(answer)
    assert browser.post(at("similar/nothing/"), {"verdict": "same"}).status_code == 404


def test_analyses_and_hot_files(logged_in: Any, acme: Any, used: Any, vera: Any, bound: Any) -> None:
    with bound(acme):
        analyses.add_up()
    browser = logged_in(vera)
    answer = browser.get(at("analyses/"))
    [hot] = answer.context["hot"]
    assert (hot["path"], hot["asked"], hot["contents"]) == ("src/pay.py", 2, 1)
    assert answer.context["figures"]["complexity"]["hit_rate"] == 0.5
    assert len(browser.get(at("analyses/?path=src/pay.py")).context["analyses"]) == 1
    assert not browser.get(at("analyses/?path=none")).context["analyses"]
    said = text(browser.get(at(f"analyses/{used['analysis']}/")))
    assert "&quot;complexity&quot;: 7" in said and "small" in said and "2 times" in said


def test_an_incident_is_explained(logged_in: Any, used: Any, vera: Any) -> None:
    browser = logged_in(vera)
    assert len(browser.get(at("incidents/")).context["incidents"]) == 2
    said = text(browser.get(at(f"incidents/{used['incident']}/")))
    assert "It was renamed." in said and "$ROOT/src/old.py" in said and "leaves out something" in said


def test_the_duplicate_audit_tells_whether_a_cache_is_worth_it(
    logged_in: Any, acme: Any, desk: Any, vera: Any, api: Any
) -> None:
    browser = logged_in(vera)
    assert 'hx-trigger="load"' in text(browser.get(at("repeats/")))
    for number, said in enumerate(("one", "one", "two", "two")):
        reported(desk, number, said)
    answer = browser.get(at("repeats/?count=yes"))
    [project] = answer.context["projects"]
    assert (project.whole.calls, project.whole.repeats, project.whole.changed) == (4, 3, 1)
    assert project.whole.verdict == "yes" and "Turn the cache on" in text(answer)
    assert [tool for tool, _ in project.tools] == ["Read"] and "/sessions/ses_" in text(answer)


def reported(desk: Any, number: int, said: str) -> None:
    base = {"session_id": "s1", "cwd": "/srv/shop", "tool_name": "Read", "tool_use_id": f"use_{number}"}
    base["tool_input"] = {"file_path": "/srv/shop/a.py"}
    for name, more in (("PreToolUse", {}), ("PostToolUse", {"tool_response": {"content": said}})):
        answer = desk.post("hooks/claude-code", {**base, "hook_event_name": name, **more})
        assert answer.status_code == 200, answer.content


def test_prompt_caching_by_model_and_harness(logged_in: Any, used: Any, vera: Any) -> None:
    answer = logged_in(vera).get(at("prompts/"))
    [row] = answer.context["rows"]
    assert (row["messages"], row["hit_rate"]) == (3, 0.75)
    assert "claude-sonnet-4-5" in text(answer) and "75 %" in text(answer) and "Claude Code" in text(answer)


def test_a_viewer_and_a_reviewer_change_nothing(logged_in: Any, acme: Any, used: Any, vera: Any, bob: Any) -> None:
    for member in (vera, bob):
        browser = logged_in(member)
        assert browser.get(at("policy/?tool=read_file")).status_code == 200
        for page, said in (
            ("policy/?tool=read_file", SAVED),
            ("purge/", {"all": "yes"}),
            (f"similar/{used['pair']}/", {"verdict": "same"}),
        ):
            assert browser.post(at(page), said).status_code == 403, page
        assert browser.get(at("purge/")).status_code == 403


def test_nothing_an_agent_sent_is_markup(logged_in: Any, acme: Any, desk: Any, alice: Any) -> None:
    missed = desk.post("cache/tools/lookup", call(arguments={"path": SIGN}, version=SIGN)).json()
    desk.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": SIGN * 2})
    desk.post("cache/tools/lookup", call(SIGN.replace(" ", "")))
    desk.put("cache/analyses/sha256:1/x", {"version": SIGN, "analysis": {SIGN: SIGN}, "path": SIGN})
    told = desk.post("cache/incidents", {"key": missed["key"], "detail": SIGN}).json()
    missed = desk.post("cache/tools/lookup", call(arguments={"path": SIGN}, version=SIGN)).json()
    desk.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": SIGN})
    desk.post("usage", [{"message_id": "1", "model": SIGN, "harness": SIGN[:40], "usage": {"input_tokens": 1,
              "cache_read_input_tokens": 1}}])  # fmt: skip
    browser = logged_in(alice)
    pages = [*PAGES, f"entries/{missed['key']}/", f"incidents/{told['incident_id']}/", f"policy/?tool={SIGN[:4]}",
             f"purge/?tool={SIGN}", f"analyses/?path={SIGN}"]  # fmt: skip
    for page in pages:
        answer = browser.get(at(page))
        assert answer.status_code in (200, 302, 422), page
        assert Danger(answer.content.decode()).found == [], page
