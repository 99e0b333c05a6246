"""What the tools do: short answers with pointers, kind reading of arguments, proposals and never a change."""

import json

import pytest

from memory import tokens
from memory.graph import workers
from memory.graph.record import Incoming, record_trigger
from memory.graph.workers import Said
from memory.mcp import note_tools, tools
from memory.notes import moving
from memory.notes.models import Note, Revision
from memory.tenants import rls
from memory.tenants.access import member_actor
from tests.cache import made as made_cache
from tests.mcp.asked import LEGACY, MODERN, Mcp
from tests.pages import made

TEXT = "---\ntitle: Retry\n---\nRetry thrice.\nThen give up.\n"
SHORT = 2_000


def test_a_proposal_waits_for_a_person(mcp, acme, alice, bound) -> None:
    new = mcp.call("propose_note", path="project/shop/retry.md", text=TEXT, reason="seen twice")
    assert new["state"] == "open" and new["proposal_id"].startswith("prp_") and new["base_revision"] is None
    assert mcp.refused("read_note", id="team/project/shop/retry.md")["code"] == "not_found"
    again = mcp.call("edit_note", id=new["proposal_id"], base_revision=0, old="thrice", new="twice")
    assert again["replaces"] == new["proposal_id"]
    with bound(acme):
        assert not Revision.objects.exists() and not Note.objects.live().exists()
        made.approved(acme.notes.get().proposals.open().get(), alice)
    note = mcp.call("read_note", id="team/project/shop/retry.md")
    assert "Retry twice." in note["text"] and (note["revision"], note["tier"]) == (1, "T0")
    assert mcp.call("propose_note", path=note["path"], text=note["text"], base_revision=1)["state"] == "unchanged"
    gone = mcp.call("delete_note", id=note["id"], reason="wrong")
    assert (gone["operation"], gone["state"]) == ("delete", "open")
    assert mcp.call("read_note", id=note["id"])["revision"] == 1


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_half_a_character_does_not_cost_the_message(agent, acme, bound, era) -> None:
    """As JavaScript cuts a text in the middle of an emoji; a whole one stays, and so do letters that only look so."""
    new = Mcp(agent, era).call(
        "propose_note",
        path="project/shop/cut.md",
        text="Half \ud83d, whole \ud83d\ude00, \\\\ud83d.\n",
        reason="x\ude00",
    )
    with bound(acme):
        proposal = acme.notes.get().proposals.get(public_id=new["proposal_id"])
        assert proposal.text.endswith("Half \ufffd, whole \U0001f600, \\\\ud83d.\n")


def test_a_note_is_read_by_the_path_it_had(mcp, acme, alice) -> None:
    note = made.note(acme, alice, path="tools/bash/flags.md")
    with rls.tenant_scope(str(acme.pk)):
        moving.move(note, "project/shell/flags.md", by=member_actor(alice))
    assert mcp.call("read_note", id="team/tools/bash/flags.md")["id"] == note.public_id
    said = mcp.refused("propose_note", path="tools/bash/flags.md", text=TEXT)
    assert said["code"] == "moved" and "team/project/shell/flags.md" in said["detail"]


@pytest.mark.parametrize(
    "tool,arguments,code",
    [
        ("propose_note", {"path": "general/a.md", "text": "x\n"}, "precondition_required"),
        ("propose_note", {"path": "general/a.md", "text": "x\n", "base_revision": 7}, "stale"),
        ("propose_note", {"path": "general/b.md", "text": "x\n", "base_revision": 1}, "stale"),
        ("propose_note", {"path": "../../etc/passwd", "text": "x\n"}, "invalid_path"),
        ("propose_note", {"path": "general/b.md", "text": "x" * 5000}, "note_too_long"),
        ("propose_note", {"path": "general/b.md", "text": "\0"}, "empty_body"),
        ("propose_note", {"path": "general/b.md", "text": " \u200b\n"}, "empty_body"),
        ("edit_note", {"id": "team/general/a.md", "base_revision": 7, "old": "a", "new": "b"}, "stale"),
        ("edit_note", {"id": "team/general/a.md", "base_revision": 1, "old": "none", "new": "b"}, "not_in_text"),
        ("edit_note", {"id": "team/general/a.md", "base_revision": 1, "old": "e", "new": "b"}, "ambiguous"),
        ("read_note", {"id": "team/general/a.md", "from_line": 99}, "no_such_lines"),
        ("list_notes", {"cursor": "x"}, "invalid_cursor"),
        ("list_notes", {"limit": 0}, "invalid_arguments"),
        ("recall", {}, "invalid_arguments"),
        ("recall", {"id": "thr_1", "hopps": 3}, "invalid_arguments"),
        ("recall", {"id": ["thr_1"]}, "invalid_arguments"),
        ("search", {"q": "a", "kinds": ["cats"]}, "invalid_arguments"),
        ("expand", {"id": "nte_1"}, "not_found"),
        ("report", {"worker_id": "wkr_1"}, "not_found"),
        ("cache_store", {"result": "x", "key": "0" * 64}, "invalid_arguments"),
        ("cache_store", {"result": "x", "key": "0" * 64, "lease": "lse_x"}, "no_lease"),
        ("file_analysis", {"do": "store"}, "invalid_arguments"),
        ("file_analysis", {"do": "lookup"}, "invalid_field"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_advice(mcp, acme, alice, tool, arguments, code) -> None:
    made.note(acme, alice, path="general/a.md", text=TEXT)
    said = mcp.refused(tool, **arguments)
    assert said["code"] == code, said
    assert len(said["detail"]) > 10


def test_expand_knows_no_other_part_than_there_is(mcp, agent, api) -> None:
    told = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Mend it", "turn_id": "t"}
    api(agent).post("hooks/codex", told)
    session = api(agent).get("sessions").json()["items"][0]["id"]
    event = api(agent).get(f"sessions/{session}/events").json()["items"][0]["id"]
    assert mcp.refused("expand", id=event, part="../")["code"] == "no_such_part"
    assert "Mend it" in mcp.call("expand", id=event, part="payload")["text"]


def test_text_is_read_as_the_list_object_number_or_flag_it_stands_for(mcp, acme, alice, things) -> None:
    assert mcp.call("search", q="acme-only", kinds='["note"]')["items"]
    assert mcp.call("search", q="acme-only", kinds="note", limit="5", follow="true")["items"]
    assert mcp.call("recall", id=things["worker"], hops="1", direction=None)["hops"] == 1
    told = mcp.call("report", worker_id=things["worker"], cites=json.dumps([things["trigger"]]))
    assert things["trigger"] in told["cites"]
    asked = {"content_hash": "sha256:1", "analysis_type": "outline", "version": "1"}
    assert mcp.call("file_analysis", do="store", analysis='{"a": 1}', parameters='{"b": 2}', **asked)["stored"]
    found = mcp.call("file_analysis", do="lookup", items=json.dumps([{**asked, "parameters": {"b": 2}}, asked]))
    assert [one["status"] for one in found["items"]] == ["hit", "miss"]
    # What stands for itself stays text.
    assert found["items"][0]["analysis"] == '{"a": 1}'
    assert mcp.call("cache_lookup", tool="Read", arguments='{"path": "a"}', context="{}")["status"]


def test_no_answer_is_over_its_size_and_each_says_how_to_go_on(mcp, acme, alice) -> None:
    long = "".join(f"line {number} of a long text, with some words, said in full\n" for number in range(1, 3000))
    with rls.tenant_scope(str(acme.pk)):
        trigger = record_trigger(
            acme, Incoming(source="ci", external_id="1", thread_title="t" * 300, payload=long.encode())
        ).trigger
        for number in range(60):
            told = Incoming(source="ci", external_id=f"x{number}", thread_key=f"k{number}", thread_title="words " * 30)
            record_trigger(acme, told)
        report = workers.packed_report(long)
        worker, _ = workers.start(acme, None, trigger.thread, Said(task="Look", report=report), by="tests")
    result = made_cache.result(acme, alice, long)
    note = made.note(acme, alice, path="general/long.md", text=f"---\ntitle: Long\n---\n{long[:60_000]}")
    for number in range(40):
        text = f"---\ntitle: {'words ' * 20}\n---\nmany words {number}\n"
        made.note(acme, alice, path=f"general/{number}.md", text=text)
    answers = {
        "note": mcp.call("read_note", id=note.public_id),
        "notes": mcp.call("list_notes", limit=100),
        "search": mcp.call("search", q="words", limit=50),
        "recall": mcp.call("recall", id=worker.public_id, hops=8, budget_tokens=100_000),
        "index": mcp.call("thread_index", budget_tokens=100_000),
        "hits": mcp.call("expand", id=trigger.public_id, grep="line"),
        "kept": mcp.call("cache_store", result=long),
        **{one: mcp.call("expand", id=one) for one in (trigger.public_id, worker.public_id, result.public_id)},
    }
    for name, answer in answers.items():
        assert 200 < tokens.count(json.dumps(answer, ensure_ascii=False)) <= SHORT, name
        goes_on = any(answer.get(word) for word in ("more", "has_more", "left_out", "note"))
        assert goes_on or f"expand {worker.public_id}" in json.dumps(answer), name
    assert "GET /api" not in json.dumps(answers)
    first = answers[trigger.public_id]
    going_on = mcp.call("expand", id=trigger.public_id, lines=first["more"].split("lines=")[1].split(",")[0])
    assert first["last_line"] + 1 == going_on["first_line"]
    assert (first["text"] + going_on["text"]).encode() == long.encode()[: len(first["text"]) + len(going_on["text"])]
    more = mcp.call("read_note", id=note.public_id, from_line=answers["note"]["more"].split("=")[1])
    assert more["text"].split("\n")[0] == note.current.text.split("\n")[answers["note"]["text"].count("\n")]
    ids = [one["id"] for one in answers["notes"]["items"]]
    ids += [one["id"] for one in mcp.call("list_notes", limit=100, cursor=answers["notes"]["next_cursor"])["items"]]
    assert len(ids) == len(set(ids)) > len(answers["notes"]["items"])


def test_a_call_is_looked_up_run_and_kept(mcp, acme, globex_agent) -> None:
    asked = {"tool": "Read", "arguments": {"file_path": "a.py"}, "content_hash": "sha256:1", "context": {"root": "/r"}}
    first = mcp.call("cache_lookup", **asked)
    if first["status"] == "miss" or first.get("lease"):
        kept = mcp.call("cache_store", key=first["key"], lease=first["lease"], result="print(1)\nprint(2)\n")
        assert kept["stored"] and kept["result_id"].startswith("res_")
        assert mcp.call("expand", id=kept["result_id"], lines="2")["text"] == "print(2)\n"
        assert Mcp(globex_agent).refused("expand", id=kept["result_id"])["code"] == "not_found"
        # Another key's lease is none.
        stolen = Mcp(globex_agent).refused("cache_store", key=first["key"], lease=first["lease"], result="x")
        assert stolen["code"] == "no_lease"
    assert first["status"] in ("miss", "bypass")


def test_an_inbox_goes_on_where_it_was_read(mcp, acme, things) -> None:
    with rls.tenant_scope(str(acme.pk)):
        thread, worker = acme.threads.get(public_id=things["thread"]), acme.workers.get(public_id=things["worker"])
        workers.own(thread, worker, pass_through=True)
        record_trigger(acme, Incoming(source="made", external_id="2", thread_id=thread.public_id))
    first = mcp.call("inbox", worker_id=things["worker"])
    assert len(first["items"]) == 1 and not first["has_more"]
    assert mcp.call("inbox", worker_id=things["worker"], cursor=first["next_cursor"])["items"] == []


def test_a_fault_leaves_nothing_and_tells_nothing(mcp, acme, bound, monkeypatch) -> None:
    def broken(*_):
        raise RuntimeError("a secret of the server")

    monkeypatch.setattr(note_tools, "_shown", broken)
    for client in (mcp, Mcp(mcp.agent, LEGACY)):
        said = client.refused("propose_note", path="general/a.md", text=TEXT)
        assert said["code"] == "server_error" and "secret" not in json.dumps(said)
    with bound(acme):
        assert not Note.objects.exists()


def test_an_unknown_tool_is_an_error_of_the_protocol(mcp) -> None:
    error = mcp.told("tools/call", name="no_such", arguments={})["error"]
    assert error["code"] == -32602 and all(name in error["message"] for name in tools.TOOLS)
