"""Notes as files over REST: export, import, moves, reports, and people's own session."""

import hashlib
import io
import json
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from memory.notes import bundle, importing
from memory.notes.frontmatter import InvalidFrontmatter, split
from memory.notes.models import Note, Proposal
from memory.tenants import audit
from memory.tenants.access import command_actor
from memory.tenants.models import AuditEntry
from tests.pages import made

DATA = Path(__file__).parents[1] / "data"
NOTE = "---\ntitle: Flags\ndescription: What bash is called with\ntags: [bash, ci]\n---\n\n- Use `set -e`\n- Use `-u`\n"
HERE = "/api/v1/notes"


def browser(member: Any, *, csrf: bool = False) -> Client:
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(member.user)
    return client


def send(client: Client, raw: bytes, space: str = "team") -> Any:
    return client.post(f"{HERE}/import?space={space}", raw, content_type="application/zip")


def zipped(files: dict[str, bytes | str], **external: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = external.get(name.split(".")[0].rsplit("/", 1)[-1], 0)
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def unzipped(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def edited(raw: bytes, name: str, old: str, new: str) -> bytes:
    files = unzipped(raw)
    files[name] = files[name].decode().replace(old, new).encode()
    return zipped(dict(files))


@pytest.mark.parametrize("layout", bundle.LAYOUTS)
def test_an_export_taken_into_an_empty_team_is_exported_the_same(
    layout: str, acme: Any, alice: Any, bob: Any, charlie: Any
) -> None:
    made.note(acme, bob, path="tools/bash/flags.md", text=NOTE)
    made.note(acme, bob, path="project/Pay Ments/Thiết kế.md", text="no head\r\n\n---\nx: 1\n---\nend, no newline")
    made.note(acme, bob, path="general/a b.md", text="---\ntitle: 'it''s'\nx: |\n  two\n  lines\n---\n---\nbody\n")
    made.note(acme, bob, path="general/a-b.md", text="---\r\ntitle: w\r\n---\r\nbody\r\n")
    first = browser(alice).get(f"{HERE}/export?layout={layout}")
    assert first.status_code == 200 and first["Content-Type"] == "application/zip"
    assert browser(bob).get(f"{HERE}/export?layout={layout}").content == first.content
    answer = send(browser(charlie), first.content)
    assert answer.json()["counts"] == {"created": 4} and answer.json()["signature"] == "valid", answer.content
    assert browser(charlie).get(f"{HERE}/export?layout={layout}").content == first.content
    assert send(browser(charlie), first.content).json()["counts"] == {"unchanged": 4}
    manifest = json.loads(unzipped(first.content)["manifest.json"])
    for one in manifest["files"]:
        assert one["sha256"] == hashlib.sha256(unzipped(first.content)[one["file"]]).hexdigest()


def bodies() -> list[str]:
    examples = json.loads((DATA / "markdown/gfm-extensions.tests.json").read_text())
    naughty = json.loads((DATA / "strings/blns.json").read_text())
    heads = [case["yaml"] for case in json.loads((DATA / "yaml/mappings.json").read_text())]
    whole = [f"---\ntitle: t\n---\nx\n{body}" for body in [*(case["markdown"] for case in examples), *naughty]]
    return whole + [f"---\n{head if head.endswith(chr(10)) else head + chr(10)}---\nbody\n" for head in heads]


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_bodies_and_heads_come_back_byte_for_byte(
    step: int, agent: Any, api: Any, acme: Any, alice: Any, charlie: Any
) -> None:
    """One agent proposes them by PUT; a person approves, exports, and another team takes the archive in."""
    texts, refused = {}, 0
    for number, text in enumerate(bodies()[::step]):
        path = f"general/case-{number}.md"
        answer = api(agent).put(f"notes/by-path/team/{path}", text.encode(), content_type="text/markdown")
        try:
            split(text)
        except InvalidFrontmatter:
            assert answer.status_code == 422 and answer.json()["detail"].startswith("Line "), answer.content
            refused += 1
            continue
        if answer.status_code == 422:
            assert answer.json()["problems"], "what we refuse says what to do"
            refused += 1
            continue
        assert answer.status_code == 202, (text, answer.content)
        texts[path] = answer.json()
        assert texts[path]["text"] == text
    assert len(texts) > 600 // step
    client = browser(alice)
    for proposal in texts.values():
        body = {"shown": proposal["sha256"]}
        assert client.post(f"/api/v1/proposals/{proposal['id']}/approve", body, "application/json").status_code == 200
    exported = client.get(f"{HERE}/export").content
    files = unzipped(exported)
    assert {name: files[name].decode() for name in texts} == {name: one["text"] for name, one in texts.items()}
    assert send(browser(charlie), exported).json()["counts"] == {"created": len(texts)}
    assert browser(charlie).get(f"{HERE}/export").content == exported


def test_an_import_is_merged_with_what_changed_meanwhile(acme: Any, alice: Any, bob: Any) -> None:
    note = made.note(acme, bob, path="tools/bash/flags.md", text=NOTE)
    exported = browser(alice).get(f"{HERE}/export").content
    made.rewritten(note, bob, NOTE.replace("set -e", "set -eo pipefail"))
    theirs = edited(exported, "tools/bash/flags.md", "title: Flags", "title: Bash flags")
    answer = send(browser(alice), theirs).json()
    assert answer["counts"] == {"merged": 1}
    now = browser(alice).get(f"{HERE}/by-path/team/tools/bash/flags.md")
    assert now.status_code == 401, "a session reads pages; files come by export"
    text = unzipped(browser(alice).get(f"{HERE}/export").content)["tools/bash/flags.md"].decode()
    assert "title: Bash flags" in text and "pipefail" in text
    clash = edited(exported, "tools/bash/flags.md", "set -e", "set -x")
    answer = send(browser(alice), clash)
    [item] = answer.json()["items"]
    assert (answer.status_code, item["outcome"]) == (202, "conflict") and item["proposal"]
    after = unzipped(browser(alice).get(f"{HERE}/export").content)["tools/bash/flags.md"].decode()
    assert after == text
    # An older export of the note itself holds nothing new.
    assert send(browser(alice), exported).json()["counts"] == {"unchanged": 1}


def test_what_an_agent_imports_waits_for_a_person(agent: Any, api: Any, acme: Any, alice: Any) -> None:
    raw = zipped({"general/a.md": "- a\n", "memories/general/b.md": "- b\n"})
    answer = api(agent).post("notes/import", raw, content_type="application/zip", headers={"Idempotency-Key": "one"})
    assert (answer.status_code, answer.json()["counts"]) == (202, {"proposed": 2})
    again = api(agent).post("notes/import", raw, content_type="application/zip", headers={"Idempotency-Key": "one"})
    assert again["Idempotent-Replay"] == "true" and again.json() == answer.json()
    assert api(agent).get("notes").json()["items"] == []


def test_an_import_lets_others_write_and_keeps_what_it_took(
    agent: Any, api: Any, acme: Any, bound: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file in the middle is refused by the database: the others are in, and sending it again brings that one."""
    asked, seen = importing.bring, []

    def other(action: str) -> None:
        with bound(acme):
            audit.record(command_actor(acme, "another"), action)

    def bring(file: Any, *rest: Any, **options: Any) -> Any:
        made = asked(file, *rest, **options)
        if file.path.shown == "general/2.md" and len(seen) < 3:
            Note.objects.create(tenant=acme, path="general/1.md", path_key="general/1.md")
        if file.path.shown == "general/3.md":
            # Another connection's audited write, while this part is under way.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(apart, other, "note.read").result(5)
        seen.append(file.path.shown)
        return made

    monkeypatch.setattr(importing, "bring", bring)
    monkeypatch.setattr(importing, "AT_ONCE", 2)
    raw = zipped({f"general/{number}.md": f"- {number}\n" for number in range(1, 6)})
    sent = {"content_type": "application/zip", "headers": {"Idempotency-Key": "one"}}
    answer = api(agent).post("notes/import", raw, **sent)
    said = answer.json()
    assert (answer.status_code, said["code"], said["counts"]) == (503, "partly_imported", {"failed": 1, "proposed": 4})
    assert [one["path"] for one in said["items"] if one["outcome"] == "failed"] == ["general/2.md"]
    again = api(agent).post("notes/import", raw, **sent)
    assert (again.status_code, {one["proposal"] for one in said["items"] if one["proposal"]} - {
        one["proposal"] for one in again.json()["items"]}) == (202, set())  # fmt: skip
    with bound(acme):
        assert Proposal.objects.open().count() == 5 and Note.objects.count() == 5
        assert audit.verify(acme).breaks == [] and AuditEntry.objects.filter(action="note.read").count() == 2


def apart(work: Any, *given: Any) -> None:
    try:
        work(*given)
    finally:
        connection.close()


LINK = (stat.S_IFLNK | 0o777) << 16
BOMB = b"\0" * 20_000_000


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"no zip", "not_a_zip"),
        (zipped({"general/a.md": "- a\n" * 9})[:-30], "not_a_zip"),
        (zipped({"../general/a.md": "x"}), "path_escape"),
        (zipped({"/general/a.md": "x"}), "path_escape"),
        (zipped({"general\\..\\a.md": "x"}), "path_escape"),
        (zipped({"C:/general/a.md": "x"}), "path_escape"),
        (zipped({"other/a.md": "x"}), "invalid_path"),
        (zipped({"general/con.md": "x"}), "invalid_path"),
        (zipped({"general/link.md": "../../etc/passwd"}, link=LINK), "not_a_file"),
        (zipped({"general/A.md": "x", "general/a.md": "y"}), "case_collision"),
        (zipped({"general/é.md": "x", "general/e\u0301.md": "y"}), "case_collision"),
        (zipped({"general/a.md": "x", "memories/general/a.md": "y"}), "case_collision"),
        (zipped({"general/a.md": BOMB}), "too_large"),
        (zipped({f"general/{number}.md": "x" for number in range(1_002)}), "too_many_files"),
        (zipped({"general/a.md": b"\xff\xfe"}), "not_utf8"),
        (zipped({"general/a.txt": "x"}), "not_markdown"),
        (zipped({"manifest.json": "{"}), "invalid_manifest"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hostile_archive_is_refused_as_a_whole(raw: bytes, code: str, acme: Any, alice: Any) -> None:
    answer = send(browser(alice), raw)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.content
    assert len(unzipped(browser(alice).get(f"{HERE}/export").content)) == 1


def test_a_manifest_that_was_changed_is_refused(acme: Any, alice: Any, bob: Any) -> None:
    made.note(acme, bob, path="tools/bash/flags.md", text=NOTE)
    exported = browser(alice).get(f"{HERE}/export").content
    digest = json.loads(unzipped(exported)["manifest.json"])["files"][0]["sha256"]
    answer = send(browser(alice), edited(exported, "manifest.json", digest, "0" * 64))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_signature")


def test_a_file_that_is_no_note_is_named_and_the_others_go_in(acme: Any, alice: Any) -> None:
    raw = zipped({"general/a.md": "---\na: &x 1\n---\nb\n", "general/b.md": "- fine\n", "general/c.md": "\n"})
    answer = send(browser(alice), raw).json()
    said = {one["path"]: (one["outcome"], one["detail"][:7]) for one in answer["items"]}
    assert said["general/a.md"] == ("refused", "Line 2:") and said["general/b.md"][0] == "created"
    assert said["general/c.md"][0] == "refused"


def test_a_member_s_space_is_theirs_alone(acme: Any, alice: Any, bob: Any, agent: Any, api: Any) -> None:
    made.note(acme, alice, path="profile/me.md", text="- mine\n", is_private=True)
    assert list(unzipped(browser(alice).get(f"{HERE}/export?space=members/alice").content)) == [
        "manifest.json", "profile/me.md",
    ]  # fmt: skip
    for space in ("members/alice", "members/nobody"):
        assert browser(bob).get(f"{HERE}/export?space={space}").status_code == 404
    assert b"mine" not in browser(alice).get(f"{HERE}/export").content


def test_a_move_leads_from_the_old_path(acme: Any, alice: Any, bob: Any, agent: Any, api: Any) -> None:
    note = made.note(acme, bob, path="tools/bash/flags.md", text=NOTE)
    moved = browser(bob).post(f"{HERE}/{note.public_id}/move", {"path": "general/flags.md"}, "application/json")
    assert moved.status_code == 200 and moved.json()["path"] == "general/flags.md", moved.content
    old = api(agent).get("notes/by-path/team/tools/Bash/flags.md")
    assert (old.status_code, old["Location"]) == (308, "/api/v1/notes/by-path/team/general/flags.md")
    assert Client(headers=agent.headers).get(old["Location"]).content.decode() == NOTE
    other = made.note(acme, bob, path="tools/bash/other.md")
    taken = browser(bob).post(f"{HERE}/{other.public_id}/move", {"path": "General/Flags.md"}, "application/json")
    assert (taken.status_code, taken.json()["code"]) == (409, "path_taken")
    back = browser(bob).post(f"{HERE}/{note.public_id}/move", {"path": "tools/bash/flags.md"}, "application/json")
    assert back.status_code == 200
    assert api(agent).get("notes/by-path/team/tools/bash/flags.md").status_code == 200
    assert api(agent).get("notes/by-path/team/general/flags.md").status_code == 308


def test_an_agent_s_move_is_a_proposal(acme: Any, alice: Any, bob: Any, agent: Any, api: Any) -> None:
    note = made.note(acme, bob, path="tools/bash/flags.md", text=NOTE)
    answer = api(agent).post(f"notes/{note.public_id}/move", {"path": "profile/flags.md"})
    said = answer.json()
    assert (answer.status_code, said["operation"], said["target"]) == (202, "move", "profile/flags.md")
    assert {"path", "profile"} <= {risk["code"] for risk in said["risks"]}
    where = f"/api/v1/proposals/{said['id']}/approve"
    assert api(agent).post(f"proposals/{said['id']}/approve", {"shown": said["sha256"]}).status_code == 403
    approved = browser(bob).post(where, {"shown": said["sha256"]}, "application/json")
    assert approved.status_code == 200, approved.content
    assert api(agent).get("notes/by-path/team/profile/flags.md").content.decode() == NOTE


def test_a_session_needs_its_csrf_token(acme: Any, bob: Any, globex: Any) -> None:
    proposal = made.proposal(acme)
    where, body = f"/api/v1/proposals/{proposal.public_id}/reject", {"reason": "no"}
    client = browser(bob, csrf=True)
    client.get(f"/t/acme/proposals/{proposal.public_id}/")
    refused = client.post(where, body, "application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
    token = client.cookies["tm_csrf"].value
    done = client.post(where, body, "application/json", headers={"X-CSRFToken": token})
    assert done.status_code == 200 and done.json()["state"] == "rejected", done.content
    other = client.post(where, body, "application/json", headers={"X-CSRFToken": token, "X-Team": "globex"})
    assert (other.status_code, other.json()["code"]) == (400, "team_needed")


def test_a_report_waits_for_a_person(acme: Any, bob: Any, agent: Any, api: Any) -> None:
    note = made.note(acme, bob)
    first = api(agent).post(f"notes/{note.public_id}/reports", {"reason": "It is four times since March"})
    again = api(agent).post(f"notes/{note.public_id}/reports", {"reason": "Four times"})
    assert (first.status_code, again.status_code) == (201, 200) and first.json()["id"] == again.json()["id"]
    assert api(agent).post(f"notes/{note.public_id}/reports", {"reason": " "}).status_code == 422
