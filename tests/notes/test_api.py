"""Notes over REST: what an agent key may read, and that whatever it writes waits for a person."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.test import Client

from memory.notes import review
from memory.notes.models import Note, Proposal, Revision
from memory.notes.review import Draft
from memory.tenants.access import dream_actor, member_actor
from memory.tenants.models import AuditEntry, Member, Tenant
from tests.conftest import Agent, Api, new_agent

Bound = Callable[[Tenant], AbstractContextManager[None]]
NOTE = "---\ntitle: Flags\ntags: [bash, ci]\n---\n\n- Use `set -e`\n"
HERE = "notes/by-path/team/tools/bash/flags.md"


@pytest.fixture
def note(acme: Tenant, bob: Member, bound: Bound) -> Note:
    with bound(acme):
        return review.write(acme, path="tools/bash/flags.md", text=NOTE, by=member_actor(bob), base=None).note


def put(api: Api, text: str, where: str = HERE, **headers: str) -> Any:
    return api.put(where, text.encode(), content_type="text/markdown", headers=headers)


def test_it_gives_the_text_byte_for_byte_with_its_etag(agent: Agent, api: Any, note: Note) -> None:
    answer = api(agent).get(HERE)
    assert answer.status_code == 200 and answer.content.decode() == NOTE
    assert answer["ETag"] == '"1"' and answer["Content-Type"].startswith("text/markdown")
    again = Client(headers={**agent.headers, "If-None-Match": '"1"'}).get(f"/api/v1/{HERE}")
    assert again.status_code == 304 and again.content == b""


@pytest.mark.parametrize(
    ("door", "accept", "status"),
    [
        (HERE, "text/markdown", 200),
        (HERE, "text/*;q=0.9", 200),
        (HERE, "application/json", 200),
        (HERE, "image/png", 406),
        ("notes/block", "text/markdown", 200),
        ("notes/export", "application/zip", 200),
        ("notes", "text/markdown", 406),
    ],
)
def test_who_asks_for_what_a_door_gives_gets_it(
    agent: Agent, api: Any, note: Note, door: str, accept: str, status: int
) -> None:
    answer = api(agent).client.get(f"/api/v1/{door}", headers={"Accept": accept})
    assert answer.status_code == status
    assert "problem" in answer["Content-Type"] if status == 406 else "problem" not in answer["Content-Type"]


def test_a_missing_note_is_a_problem_for_who_asks_for_markdown_too(agent: Agent, api: Any) -> None:
    asked = api(agent).client
    answer = asked.get("/api/v1/notes/by-path/team/general/none.md", headers={"Accept": "text/markdown"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_a_secret_is_no_path(agent: Agent, api: Any, acme: Tenant, bound: Bound) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    answer = put(api(agent), NOTE, f"notes/by-path/team/general/{secret}.md")
    assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (400, "invalid_path", "secret")
    assert secret not in answer.content.decode()
    with bound(acme):
        assert not Note.objects.exists() and not Proposal.objects.exists()


def test_it_finds_the_note_under_every_spelling(agent: Agent, api: Any, note: Note) -> None:
    assert api(agent).get("notes/by-path/team/Tools//Bash/./FLAGS.md")["X-Note-Id"] == note.public_id


def test_it_shows_a_note_with_its_revision_and_tier(agent: Agent, api: Any, note: Note) -> None:
    shown = api(agent).get(f"notes/{note.public_id}").json()
    assert (shown["space"], shown["path"], shown["tags"], shown["text"]) == (
        "team", "tools/bash/flags.md", ["bash", "ci"], NOTE,
    )  # fmt: skip
    revision = shown["revision"]
    assert (revision["number"], revision["tier"], revision["approved_by"]) == (1, "T0", "bob")


def test_it_turns_a_write_into_a_proposal(agent: Agent, api: Any, acme: Tenant, note: Note, bound: Bound) -> None:
    answer = put(api(agent), NOTE + "- Never use -f\n", **{"If-Match": '"1"'})
    assert answer.status_code == 202, answer.content
    proposal = answer.json()
    assert answer["Location"] == f"/api/v1/proposals/{proposal['id']}"
    assert (proposal["state"], proposal["operation"], proposal["base"], proposal["tier"]) == ("open", "write", 1, "T2")
    assert "rule" in {risk["code"] for risk in proposal["risks"]}
    assert api(agent).get(f"proposals/{proposal['id']}").json()["text"].endswith("- Never use -f\n")
    assert [one["id"] for one in api(agent).get("proposals").json()["items"]] == [proposal["id"]]
    with bound(acme):
        assert Revision.objects.count() == 1


def test_it_proposes_a_new_note_from_json_too(agent: Agent, api: Any, acme: Tenant, bound: Bound) -> None:
    answer = api(agent).put("notes/by-path/team/profile/style.md", {"text": "- tabs\n", "reason": "seen twice"})
    assert answer.status_code == 202 and answer.json()["reason"] == "seen twice"
    assert api(agent).get("notes/by-path/team/profile/style.md").status_code == 404
    with bound(acme):
        assert Note.objects.live().count() == 0


def test_it_says_so_where_nothing_changes(agent: Agent, api: Any, note: Note) -> None:
    answer = put(api(agent), NOTE, **{"If-Match": '"1"'})
    assert answer.status_code == 200 and answer.json()["proposal"] is None


def test_it_asks_for_the_revision_that_was_read(agent: Agent, api: Any, note: Note) -> None:
    without, old = put(api(agent), "- x\n"), put(api(agent), "- x\n", **{"If-Match": '"7"'})
    new = put(api(agent), "- x\n", **{"If-None-Match": "*"})
    assert [answer.status_code for answer in (without, old, new)] == [428, 412, 412]
    assert without.json()["revision"] == old.json()["revision"] == 1
    missing = put(api(agent), "- x\n", "notes/by-path/team/general/new.md", **{"If-Match": '"1"'})
    assert missing.status_code == 412
    assert api(agent).delete(HERE).status_code == 428


def test_it_proposes_to_delete(agent: Agent, api: Any, acme: Tenant, note: Note, bound: Bound) -> None:
    answer = api(agent).delete(HERE, headers={"If-Match": '"1"'})
    assert answer.status_code == 202 and answer.json()["operation"] == "delete" and answer.json()["text"] == NOTE
    assert api(agent).get(HERE).status_code == 200
    assert api(agent).delete("notes/by-path/team/general/none.md").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["../../other/profile/role.md", "profile/%252e%252e/x.md", "profile\\..\\x.md", "/etc/passwd", "C:\\x.md",
     "profile/role.md%00.txt", "general/two%0Alines.md", "con.md", f"a/{'b' * 300}.md", ""],
)  # fmt: skip
@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_it_takes_no_path_that_could_leave_its_space(agent: Agent, api: Any, method: str, path: str) -> None:
    answer = getattr(api(agent), method)(f"notes/by-path/team/{path}")
    assert answer.status_code == 400 and answer.json()["code"] == "invalid_path"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"\xff\xfe", 400, "not_utf8"),
        (b"- long line of text\n" * 400, 422, "note_too_long"),
        (b"x" * 9_000_000, 422, "note_too_long"),
        (b"---\ntitle: [a\n---\nbody\n", 422, "invalid_frontmatter"),
        (b"  \n", 422, "empty_body"),
    ],
)
def test_it_says_what_is_wrong_with_a_note(agent: Agent, api: Any, body: bytes, status: int, code: str) -> None:
    answer = api(agent).put("notes/by-path/team/general/x.md", body, content_type="text/markdown")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_it_lets_no_key_decide(agent: Agent, api: Any, acme: Tenant, bound: Bound) -> None:
    proposal = put(api(agent), NOTE).json()["id"]
    for verb in ("approve", "reject"):
        answer = api(agent).post(f"proposals/{proposal}/{verb}", {"shown": "x"})
        assert answer.status_code == 403 and answer.json()["code"] == "forbidden"
    with bound(acme):
        assert Proposal.objects.get().state == "open"


def test_it_needs_a_key_and_its_scope(agent: Agent, alice: Member, api: Any, note: Note) -> None:
    assert Client().get(f"/api/v1/notes/{note.public_id}").status_code == 401
    blind = new_agent(alice, scopes=("ingest",))
    assert api(blind).get(f"notes/{note.public_id}").status_code == 403
    reader = new_agent(alice, scopes=("read",))

    assert put(api(reader), NOTE + "- x\n", **{"If-Match": '"1"'}).status_code == 403


def test_it_hides_notes_of_another_team_as_if_they_were_not(
    agent: Agent, globex_agent: Agent, api: Any, note: Note
) -> None:
    proposal = put(api(agent), NOTE + "- x\n", **{"If-Match": '"1"'}).json()["id"]
    for address in (f"notes/{note.public_id}", f"notes/{note.public_id}/revisions", f"proposals/{proposal}"):
        foreign, unknown = api(globex_agent).get(address), api(globex_agent).get(address[:-3] + "zzz")
        assert foreign.status_code == unknown.status_code == 404
        assert api(agent).get(address).status_code == 200
    assert api(globex_agent).get(HERE).status_code == 404
    assert api(globex_agent).get("proposals", state="all").json()["items"] == []


def test_it_hides_the_private_space_of_another_member(
    agent: Agent, mia: Member, api: Any, acme: Tenant, bound: Bound
) -> None:
    with bound(acme):
        own = review.write(
            acme, path="profile/me.md", text="- tabs\n", by=member_actor(mia), member=mia, base=None
        ).note
        review.propose(acme, Draft("profile/me.md", "- spaces\n", member=mia), by=dream_actor(acme, "drm_1"))
    mine, other = api(new_agent(mia)), api(agent)
    assert mine.get("notes/by-path/members/mia/profile/me.md").status_code == 200
    assert mine.get(f"notes/{own.public_id}").json()["space"] == "members/mia"
    assert len(mine.get("proposals").json()["items"]) == 1
    assert other.get("notes/by-path/members/mia/profile/me.md").status_code == 404
    assert other.get(f"notes/{own.public_id}").status_code == 404
    assert other.get("proposals").json()["items"] == []
    assert put(other, "- x\n", "notes/by-path/members/mia/profile/me.md").status_code == 404


def test_it_lists_revisions_newest_first_and_pages(
    agent: Agent, api: Any, acme: Tenant, bob: Member, note: Note, bound: Bound
) -> None:
    with bound(acme):
        for number in (1, 2):
            review.write(
                acme, path="tools/bash/flags.md", text=f"{NOTE}- {number}\n", by=member_actor(bob), base=number
            )
    first = api(agent).get(f"notes/{note.public_id}/revisions", limit=2).json()
    rest = api(agent).get(f"notes/{note.public_id}/revisions", cursor=first["next_cursor"]).json()
    assert [one["number"] for one in [*first["items"], *rest["items"]]] == [3, 2, 1]
    assert first["has_more"] and not rest["has_more"]
    assert api(agent).get(f"notes/{note.public_id}", revision=1).json()["text"] == NOTE
    assert api(agent).get(f"notes/{note.public_id}", revision="x").status_code == 404
    assert api(agent).get("proposals", cursor=first["next_cursor"]).json()["code"] == "invalid_cursor"


def test_it_refuses_other_methods_and_states(agent: Agent, api: Any, note: Note) -> None:
    assert api(agent).post(f"notes/{note.public_id}").status_code == 405
    assert api(agent).post(HERE).status_code == 405
    assert api(agent).get("proposals", state="lost").json()["code"] == "invalid_state"
    assert api(agent).get("proposals", colour="red").json()["code"] == "unknown_parameter"


def test_it_records_who_proposed(agent: Agent, api: Any, acme: Tenant, bound: Bound) -> None:
    put(api(agent), NOTE)
    with bound(acme):
        entry = AuditEntry.objects.get(action="note.propose")
        assert entry.actor_kind == "key" and entry.actor_id == agent.key.public_id


@pytest.mark.parametrize("way", ["approve", "reject"])
def test_a_form_in_parts_by_a_browser_s_session_is_refused_in_words(
    acme: Tenant, alice: Member, bound: Bound, way: str
) -> None:
    with bound(acme):
        waits = review.propose(acme, Draft("general/x.md", "- x\n"), by=dream_actor(acme, "drm_1"))
        assert waits is not None
    browser = Client(enforce_csrf_checks=True, headers={"Idempotency-Key": "k-1"})
    browser.force_login(alice.user)
    browser.get("/t/acme/rules/")
    token = browser.cookies["tm_csrf"].value
    answer = browser.post(
        f"/api/v1/proposals/{waits.public_id}/{way}",
        b'{"reason": "x"}',
        content_type="multipart/form-data; boundary=x",
        headers={"X-CSRFToken": token},
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert answer["Content-Type"] == "application/problem+json"
