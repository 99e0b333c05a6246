"""What a dream with a model leaves in the memory: one fact once, summaries, drafts of reports, and its account."""

import json
from decimal import Decimal
from typing import Any

import pytest

from dream import budget, known
from dream.models import Budget, Quarantined, Run, SessionGist, Spent, Watermark
from memory.events.models import Session
from memory.graph import workers
from memory.graph.workers import Said
from memory.llm import MAX_TOKENS, Price, Provider, Usage
from memory.notes import review
from memory.notes.models import Note, Proposal
from memory.tenants.access import member_actor
from memory.tenants.models import Tenant
from tests.dream.test_model import dreamt, mind
from tests.dream.told import events_of, prompt, ran, session_of, stop, tell
from tests.llm_server import cut_off, provider

PATH = "project/shop/rules.md"


def doing(*operations: dict[str, Any], **more: Any) -> str:
    return json.dumps({"operations": list(operations), **more})


def write(body: str, **more: Any) -> dict[str, Any]:
    return {"op": "rewrite", "path": PATH, "body": body, "reason": "said", **more}


def approve_all(tenant: Tenant, alice: Any, bound: Any) -> None:
    by = member_actor(alice)
    with bound(tenant):
        for waiting in Proposal.objects.open():
            review.approve(waiting, by=by, shown=bytes(waiting.sha256).hex())


@pytest.fixture
def friday(acme: Any, alice: Any, bound: Any) -> None:
    with bound(acme):
        text = "# Rules\n\n- Deploys on Friday are allowed\n- Tabs, not spaces\n"
        review.write(acme, path=PATH, text=text, by=member_actor(alice), base=None)


def test_a_contradiction_is_one_proposal_and_the_same_again_is_no_change(
    acme: Any, alice: Any, friday: None, bound: Any
) -> None:
    for turn in range(2):
        tell(alice, "s1", prompt("No Friday deploys from now on"), stop())
        with bound(acme):
            said = events_of("s1")[-2]
        body = f"# Rules\n\n- No Friday deploys [{said}]\n- Tabs, not spaces"
        with provider([doing(write(body))]) as served:
            run = dreamt(acme, mind(served))
        assert run.state == ("succeeded" if turn == 0 else "no_change")
        approve_all(acme, alice, bound)
    with bound(acme):
        note = Note.objects.select_related("current").get()
        assert note.current and note.current.text.endswith("# Rules\n\n- No Friday deploys\n- Tabs, not spaces\n")
        assert note.revisions.count() == 2 and "Replaces" in note.current.reason
        assert note.current.sources.get(line="- No Friday deploys").event.public_id.startswith("evt_")


def test_each_session_gets_a_summary_and_a_worker_without_a_report_a_draft(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("Mend the totals"), *ran("make test"), stop())
    with bound(acme):
        session, [first, *_] = session_of("s1"), events_of("s1")
        worker, _ = workers.start(acme, None, None, Said(task="t", session_id=session.public_id), by="tests")
    lines = [f"Asked to mend the totals [{first}]", "no source"]
    with provider([doing(sessions=[{"session": session.public_id, "lines": lines}])]) as served:
        dreamt(acme, mind(served))
    with bound(acme):
        gist = SessionGist.objects.get()
        assert gist.lines == [{"text": "Asked to mend the totals", "events": [first]}]
        worker.refresh_from_db()
        assert workers.view(worker)["draft_report"] == f"- Asked to mend the totals [{first}]"
        workers.change(worker, Said(report=workers.packed_report("Done.")))
        assert workers.view(worker)["draft_report"] is None
    tell(alice, "s1", prompt("Go on"), stop())
    with provider(['{"operations": []}']) as served:
        dreamt(acme, mind(served))
        assert "so far: Asked to mend the totals" in served.prompts[0]


def test_rules_sum_a_session_up_too(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", prompt("Mend the totals"), *ran("make test"), prompt("and commit"), stop())
    from dream.mind import DistillMind

    dreamt(acme, DistillMind())
    tell(alice, "s1", prompt("push it"), stop())
    dreamt(acme, DistillMind())
    with bound(acme):
        assert [line["text"] for line in SessionGist.objects.get().lines] == [
            "Asked: Mend the totals", "Last asked: push it",
        ]  # fmt: skip


def test_only_notes_that_fit_are_shown_whole(acme: Any, alice: Any, bound: Any, monkeypatch: Any) -> None:
    by = member_actor(alice)
    with bound(acme):
        review.write(acme, path="tools/docker/build.md", text="# Docker build\n\n- Use pull\n", by=by, base=None)
        review.write(acme, path="tools/ruby/gems.md", text="# Gems\n\n- Use bundler\n", by=by, base=None)
        for n in range(4):
            review.write(acme, path=f"project/shop/n{n}.md", text=f"# N{n}\n\n- {'word ' * 60}\n", by=by, base=None)
    tell(alice, "s1", prompt("Why does the docker build fail?"), stop())
    monkeypatch.setattr(known, "LEAST_NOTES", 100)
    with provider(['{"operations": []}']) as served:
        dreamt(acme, mind(served))
    notes = served.prompts[0].split("CURRENT NOTES")[-1].split("REJECTED")[0]
    whole, _, named = notes.partition("OTHER NOTES")
    assert "Use pull" in whole and "gems" not in notes and "bundler" not in notes
    assert "project/shop/n3.md" in named and "word word" not in named


def test_the_stable_part_is_marked_for_the_cache_of_a_provider_that_has_one(acme: Any, alice: Any) -> None:
    tell(alice, "s1", prompt("x"), stop())
    with provider(["no JSON", '{"operations": []}']) as served:
        dreamt(acme, mind(served, "anthropic:claude-sonnet-4-6"))
        first, again = served.calls
        assert first["system"][-1]["cache_control"]["type"] == "ephemeral"
        assert "cache_control" not in json.dumps(first["messages"])
        assert "cache_control" in json.dumps(again), "the whole question is read from the cache when asked again"


class TestBudget:
    def test_calls_stop_before_the_limit(self, acme: Any, alice: Any, bound: Any, settings: Any) -> None:
        settings.DREAM_TOKENS_PER_MONTH = 5_000
        tell(alice, "s1", prompt("one"), stop())
        with provider(['{"operations": []}']) as served:
            states = []
            for n in range(5):
                states.append(dreamt(acme, mind(served)).state)
                tell(alice, "s1", prompt(f"go on {n}"), stop())
            assert states[0] == "no_change" and states[-1] == "failed"
            assert served.calls[0]["max_completion_tokens"] < 5_000, "an answer can't break the limit either"
            made = len(served.calls)
            assert dreamt(acme, mind(served)).error.startswith("over_budget: 4,200 of this month's 5,000 tokens are")
            assert len(served.calls) == made == 4
        with bound(acme):
            account = Spent.objects.get()
            assert (account.calls, account.tokens) == (4, 4200)
            last = Run.objects.order_by("-created_at")[0]
            assert last.retry_at == budget.next_month() and budget.month().is_over is False
            assert Watermark.objects.get().failures == 0, "the events are not to blame"

    def test_dollars_count_too_and_failed_calls_cost(self, acme: Any, alice: Any, bound: Any) -> None:
        with bound(acme):
            Budget.objects.create(tenant=acme, dollars=Decimal("0.01"))
        tell(alice, "s1", prompt("one"), stop())
        with provider([cut_off("{")]) as served:
            asked = mind(served)
            priced = Provider(asked.model, asked.provider.url, "key", price=Price.of("3,15,0.3"))
            asked.provider = priced
            for _ in range(5):
                run = dreamt(acme, asked)
        assert run.error.startswith("over_budget: $0.01 of this month's $0.01")
        with bound(acme):
            account = Spent.objects.get()
            # 600 fresh, 400 cached and 50 received: $0.00267 a call.
            assert (account.calls, account.dollars) == (4, Decimal("0.01068"))

    def test_a_model_without_a_price_is_not_asked_under_a_budget_in_dollars(
        self, acme: Any, alice: Any, bound: Any
    ) -> None:
        with bound(acme):
            Budget.objects.create(tenant=acme, dollars=Decimal(5))
        tell(alice, "s1", prompt("one"), stop())
        with provider(['{"operations": []}']) as served:
            assert "TEAM_MEMORY_MODEL_PRICE" in dreamt(acme, mind(served)).error
            assert not served.calls

    @pytest.mark.parametrize("text", ["3", "3,x", "3;15", "1,2,3,4", "-1,2", "1e3,2"])
    def test_a_price_that_is_none_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError):
            Price.of(text)

    def test_a_price_and_list_prices(self) -> None:
        price = Price.of("3,15,0.3")
        assert price is not None and price.cost(Usage(1000, 50, 400)) == Decimal("0.00267")
        assert Provider("anthropic:claude-sonnet-4-6").is_priced and not Provider("openai:nobody-9").is_priced
        assert MAX_TOKENS > budget.SHORTEST_ANSWER


def test_a_poison_event_stands_aside_and_is_read_when_a_person_asks(acme: Any, alice: Any, bound: Any) -> None:
    tell(alice, "s1", *[prompt(f"e{n}!") for n in range(1, 4)], stop())
    with provider(lambda asked: "no JSON" if "e2!" in asked else '{"operations": []}') as served:
        states = [dreamt(acme, mind(served)).state for _ in range(4)]
        assert states == ["failed", "failed", "failed", "no_change"] and len(served.calls) < 30
    with bound(acme):
        aside = Quarantined.objects.get()
        assert (aside.seq, Watermark.objects.get().seq) == (2, 4)
        assert Session.objects.get().last_seq == 4
        Quarantined.objects.update(is_again=True)
    with provider(["no JSON"]) as served:
        assert dreamt(acme, mind(served)).state == "failed"
    with bound(acme):
        aside = Quarantined.objects.get()
        assert not aside.is_again and aside.error.startswith("malformed")
        Quarantined.objects.update(is_again=True)
    with provider(['{"operations": []}']) as served:
        assert dreamt(acme, mind(served)).state == "no_change"
        assert "e2!" in served.prompts[0] and "e1!" not in served.prompts[0]
    with bound(acme):
        assert not Quarantined.objects.exists() and Watermark.objects.get().seq == 4
