"""The audit's page and export, and what finds an entry that was tampered with."""

import csv
import io
import json
import re
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.notes import review
from memory.tenants import audit, rls
from memory.tenants.access import Actor, member_actor
from tests import database
from tests.pages import made


@pytest.fixture
def history(acme: Any, alice: Any, bob: Any) -> Actor:
    actor = member_actor(alice)
    for number in range(1, 6):
        with rls.tenant_scope(str(acme.pk)):
            audit.record(actor if number % 2 else member_actor(bob), f"note.{number}", f"nte_{number}", after="=cmd()")
    return actor


def verified(*args: str) -> str:
    out = io.StringIO()
    call_command("verify_audit", *args, stdout=out)
    return out.getvalue()


def test_a_whole_chain_is_whole(history: Actor, globex: Any) -> None:
    assert verified("--tenant", "acme") == "acme: 5 entries, whole\n"
    assert verified() == "acme: 5 entries, whole\nglobex: 0 entries, whole\n"


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE tenants_auditentry SET actor_label = 'mallory' WHERE seq = 2", "entry 2: it was changed"),
        ("DELETE FROM tenants_auditentry WHERE seq = 3", "entry 4: entry 3 is missing before it"),
        ("DELETE FROM tenants_auditentry WHERE seq = 1", "entry 2: entry 1 is missing before it"),
        ("DELETE FROM tenants_auditentry WHERE seq >= 4", "its head says 5"),
        (
            "INSERT INTO tenants_auditentry SELECT gen_random_uuid(), 6, at, actor_kind, actor_id, actor_label, action,"
            " target, before, after, outcome, ip, request_id, hash, hash, tenant_id FROM tenants_auditentry"
            " WHERE seq = 5",
            "entry 6: it was changed",
        ),
        ("UPDATE tenants_auditentry SET seq = 7 - seq WHERE seq IN (3, 4) AND false; UPDATE tenants_auditentry SET"
         " previous_hash = hash WHERE seq = 4", "entry 4: it does not follow"),
        ("DELETE FROM tenants_audithead", "its head says 0"),
    ],
)  # fmt: skip
def test_tampering_is_found(history: Actor, tampering: str, said: str, capsys: Any) -> None:
    with database.migrator() as owner:
        owner.execute(tampering.encode())
    out = io.StringIO()
    with pytest.raises(CommandError, match="not as it was written"):
        call_command("verify_audit", tenant="acme", stdout=out)
    assert said in out.getvalue()


def test_the_page_filters_and_pages(acme: Any, alice: Any, history: Actor, logged_in: Any) -> None:
    browser = logged_in(alice)
    assert browser.get("/t/acme/audit/").content.decode().count(">nte_") == 5
    for query, many in {
        "who=bob": 2,
        "action=note.3": 1,
        "target=nte_5": 1,
        "outcome=refused": 0,
        "who=%00": 5,
    }.items():
        assert browser.get(f"/t/acme/audit/?{query}").content.decode().count(">nte_") == many, query
    with rls.tenant_scope(str(acme.pk)):
        for _ in range(100):
            audit.record(history, "note.more")
    first = browser.get("/t/acme/audit/").content.decode()
    found = re.search('id="more".*?hx-get="([^"]+)"', first, re.DOTALL)
    assert found
    more = found[1].replace("&amp;", "&")
    assert browser.get(more).content.decode().count(">nte_") == 5
    assert browser.get("/t/acme/audit/?cursor=x").status_code == 400


def test_what_was_changed_is_a_click_away(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    things = [made.note(acme, alice), made.proposal(acme, path="general/other.md"), made.session(acme)]
    with rls.tenant_scope(str(acme.pk)):
        for target in (*(thing.public_id for thing in things), bob.public_id, "/t/acme/"):
            audit.record(member_actor(alice), "tried", target)
    browser = logged_in(alice)
    shown = browser.get("/t/acme/audit/").content.decode()
    links = set(re.findall(r'<td class="wide">\s*<a (?:class="id" )?href="([^"]+)"', shown))
    assert len(links) == len(things) and {browser.get(one).status_code for one in links} == {200}
    assert bob.public_id in shown


def test_only_who_may_reads_it(history: Actor, bob: Any, logged_in: Any) -> None:
    assert logged_in(bob).get("/t/acme/audit/").status_code == 403
    assert logged_in(bob).post("/t/acme/audit/export/").status_code == 403


def test_the_export_holds_every_entry_and_its_hashes(acme: Any, alice: Any, history: Actor, logged_in: Any) -> None:
    browser = logged_in(alice)

    def export(form: str) -> str:
        answer = browser.post("/t/acme/audit/export/", {"form": form})
        assert answer["Content-Disposition"] == f'attachment; filename="audit-acme.{form}"'
        return b"".join(answer.streaming_content).decode()

    rows = list(csv.DictReader(io.StringIO(export("csv"))))
    assert len(rows) == 5 and rows[0]["after"] == "'=cmd()"
    lines = [json.loads(line) for line in export("ndjson").splitlines()]
    assert [line["seq"] for line in lines] == [6, 5, 4, 3, 2, 1]
    assert all(newer["previous_hash"] == older["hash"] for newer, older in pairwise(lines))


def test_a_line_names_the_note_and_the_proposal_it_is_about(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    proposal = made.proposal(acme, path="general/mine.md", text="# Mine\n\n- x\n")
    hidden = made.note(acme, alice, path="general/hidden.md", is_private=True)
    with rls.tenant_scope(str(acme.pk)):
        review.reject(proposal, by=member_actor(bob), reason="No")
        audit.record(member_actor(alice), "member.manage", bob.public_id, after=hidden.public_id)
    page = logged_in(alice).get("/t/acme/audit/").content.decode()
    line = re.search(r"<code title=\"Approve[^<]*note.reject.*?</tr>|note.reject</code>.*?</tr>", page, re.DOTALL)
    assert (
        line
        and f'href="/t/acme/proposals/{proposal.public_id}/" dir="auto">proposal for general/mine.md</a>' in line[0]
    )
    assert f'href="/t/acme/notes/{proposal.note.public_id}/" dir="auto">general/mine.md</a>' in line[0]
    digest = proposal.sha256.hex()
    assert f"the text with digest <code>{digest[:12]}…" in line[0] and f">{digest}<" not in line[0]
    assert f'<bdi>Bob</bdi> <span class="id small">{bob.public_id}' in page
    assert hidden.public_id in page and "general/hidden.md" not in page
