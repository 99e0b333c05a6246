"""The pages of Access: keys, members, invitations, roles, sessions, the step-up."""

import re
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from memory.ops import teams
from memory.tenants import invitations, keys, people, rls, words
from memory.tenants.access import DEFAULT_SCOPES, MAY, SCOPES, Refused, member_actor
from memory.tenants.models import AgentKey, AuditEntry, Invitation, Member, Role
from tests.conftest import PASSWORD, Agent, new_agent

KEY = {"name": "CI", "scopes": ["read", "ingest"], "days": "30", "rate_limit": "1000"}


def secret_in(page: Any) -> str:
    [found] = set(re.findall(r"tm_live_[0-9A-Za-z]{46}", page.content.decode()))
    return str(found)


def link_in(page: Any) -> str:
    found = re.search(r"https?://[^/\s]+(/(?:invite|login/link)/[^<\s]+)", page.content.decode())
    assert found, page.content.decode()
    return found[1]


def stale(browser: Client) -> Client:
    session = browser.session
    session["proved_at"] = time.time() - 3600
    session.save()
    return browser


def audited(tenant: Any) -> list[tuple[str, str]]:
    with rls.tenant_scope(str(tenant.pk)):
        return list(AuditEntry.objects.order_by("seq").values_list("action", "outcome"))


def key_count(tenant: Any) -> int:
    with rls.tenant_scope(str(tenant.pk)):
        return AgentKey.objects.count()


def test_a_key_is_made_as_asked_and_shown_once(acme: Any, alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    secret = secret_in(browser.post("/t/acme/keys/", KEY))
    assert "tm_live_" + secret[8:] not in browser.get("/t/acme/keys/").content.decode()
    assert Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/projects").status_code == 200
    with rls.tenant_scope(str(acme.pk)):
        key = AgentKey.objects.get()
        assert (key.name, key.scopes, key.rate_limit) == ("CI", ["ingest", "read"], 1000)
        assert key.expires_at is not None and key.expires_at < timezone.now() + timedelta(days=31)


@pytest.mark.parametrize("wrong", [{"scopes": ["all"]}, {"days": "4000"}, {"rate_limit": "0"}, {"name": ""}])
def test_a_key_that_can_not_be_is_refused_with_the_field(alice: Any, logged_in: Any, wrong: Any) -> None:
    answer = logged_in(alice).post("/t/acme/keys/", {**KEY, **wrong})
    assert answer.status_code == 422 and "errorlist" in answer.content.decode()


def test_a_viewer_makes_no_key_and_the_refusal_is_kept(acme: Any, vera: Any, logged_in: Any) -> None:
    assert logged_in(vera).get("/t/acme/keys/").status_code == 200
    assert logged_in(vera).post("/t/acme/keys/", KEY).status_code == 403
    assert audited(acme) == [("key.create", "refused")]


def test_a_rotated_key_works_beside_the_old_one_and_then_alone(acme: Any, alice: Any, logged_in: Any, api: Any) -> None:
    old = new_agent(alice)
    page = logged_in(alice).post(f"/t/acme/keys/{old.key.public_id}/rotate/", {"overlap": "1"})
    new = Agent(old.key, secret_in(page), alice)
    assert [api(one).get("projects").status_code for one in (old, new)] == [200, 200]
    for overlap in ("0", "1", "x", "-1"):
        again = logged_in(alice).post(f"/t/acme/keys/{old.key.public_id}/rotate/", {"overlap": overlap})
        assert (again.status_code, key_count(acme)) == (302, 2), "a second click makes no third key"
    logged_in(alice).post(f"/t/acme/connect/keys/{old.key.public_id}/revoke/")
    assert [api(one).get("projects").status_code for one in (old, new)] == [401, 200]
    assert ("key.rotate", "done") in audited(acme)


def test_nobody_is_shown_the_secret_of_another_members_key(alice: Any, mia: Any, logged_in: Any) -> None:
    key = new_agent(mia).key.public_id
    assert logged_in(alice).post(f"/t/acme/keys/{key}/rotate/", {"overlap": "1"}).status_code == 403


@pytest.mark.parametrize("address", ["projects", "triggers/trg_none", "hooks/claude-code", "cache/tools/lookup"])
def test_a_revoked_key_is_refused_at_every_kind_of_door(alice: Any, logged_in: Any, address: str) -> None:
    agent = new_agent(alice)
    client = Client(headers=agent.headers)

    def ask() -> int:
        method = "GET" if address[0] in "pt" else "POST"
        body = b'{"session_id": "s", "hook_event_name": "Stop"}'
        if "cache" in address:
            body = b'{"tool": "Read", "arguments": {}, "context": {"project": "p", "root": "/x"}}'
        return int(client.generic(method, f"/api/v1/{address}", body, "application/json").status_code)

    for _ in range(20):
        assert ask() not in (401, 403)
    logged_in(alice).post(f"/t/acme/connect/keys/{agent.key.public_id}/revoke/", {"back": "keys"})
    assert ask() == 401


def test_a_lowered_owner_lowers_the_key(acme: Any, alice: Any, mia: Any, logged_in: Any, api: Any) -> None:
    agent = new_agent(mia)
    assert api(agent).post("dreams").status_code in (202, 409)
    logged_in(alice).post(f"/t/acme/members/{mia.public_id}/role/", {"role": "viewer"})
    assert api(agent).post("dreams").status_code == 403
    assert api(agent).get("projects").status_code == 200


def test_the_page_says_what_a_key_did_this_week(alice: Any, logged_in: Any, api: Any) -> None:
    agent = new_agent(alice)
    for _ in range(3):
        api(agent).get("projects")
    page = logged_in(alice).get("/t/acme/keys/").content.decode()
    assert "This week 3 calls: projects 3" in page and "used" in page


def test_an_invitation_lets_a_new_person_in_once(acme: Any, alice: Any, logged_in: Any) -> None:
    page = logged_in(alice).post("/t/acme/members/", {"email": "Nina@new.test", "role": "reviewer"})
    link = link_in(page)
    with rls.tenant_scope(str(acme.pk)):
        assert link.split("/")[2] not in str(Invitation.objects.values())
    nina = Client()
    assert nina.get(link).status_code == 200
    assert nina.post(link, {"password1": "short", "password2": "short"}).status_code == 422
    answer = nina.post(link, {"password1": "a long enough one", "password2": "a long enough one"})
    assert answer["Location"] == "/t/acme/"
    assert nina.get("/t/acme/members/").status_code == 200
    assert (Client().get(link).status_code, Client().post(link).status_code) == (410, 410)
    with rls.tenant_scope(str(acme.pk)):
        assert Member.objects.get(user__email="nina@new.test").role == "reviewer"
    assert [action for action, _ in audited(acme)] == ["member.invite", "member.join"]


def test_an_invitation_is_for_its_address_only(acme: Any, alice: Any, bob: Any, charlie: Any, logged_in: Any) -> None:
    """Who holds the link of somebody who has an account can't become them."""
    link = link_in(logged_in(alice).post("/t/acme/members/", {"email": charlie.user.email, "role": "member"}))
    stranger = Client()
    assert "Log in" in stranger.get(link).content.decode()
    stranger.post(link, {"password1": "a long enough one", "password2": "a long enough one"})
    assert "_auth_user_id" not in stranger.session
    assert logged_in(bob).post(link).status_code == 409
    charlies = logged_in(charlie)
    assert charlies.post(link)["Location"] == "/t/acme/"
    assert {"Acme", "Globex"} <= set(re.findall(r"Acme|Globex", charlies.get("/teams/").content.decode()))


@pytest.mark.parametrize("how", ["withdrawn", "expired", "invited again", "inviter gone"])
def test_an_invitation_ends(acme: Any, alice: Any, mia: Any, logged_in: Any, how: str) -> None:
    browser = logged_in(alice)
    link = link_in(browser.post("/t/acme/members/", {"email": "nina@new.test", "role": "member"}))
    with rls.tenant_scope(str(acme.pk)):
        made = Invitation.objects.get()
        if how == "expired":
            Invitation.objects.update(expires_at=timezone.now())
        if how == "inviter gone":
            Member.objects.filter(pk=alice.pk).update(removed_at=timezone.now())
    if how == "withdrawn":
        browser.post(f"/t/acme/invitations/{made.public_id}/withdraw/")
    if how == "invited again":
        browser.post("/t/acme/members/", {"email": "nina@new.test", "role": "member"})
    assert Client().get(link).status_code == 410


def test_the_last_owner_stays(acme: Any, alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    for verb in ("remove", "role"):
        answer = browser.post(f"/t/acme/members/{alice.public_id}/{verb}/", {"role": "admin"}, follow=True)
        assert "only owner" in answer.content.decode()
    with rls.tenant_scope(str(acme.pk)):
        alice.refresh_from_db()
        assert (alice.role, alice.removed_at) == ("owner", None)


def test_a_removed_member_and_their_keys_are_out_and_do_not_come_back_together(
    acme: Any, alice: Any, mia: Any, logged_in: Any, api: Any
) -> None:
    agent, tab = new_agent(mia), logged_in(mia)
    assert (api(agent).get("projects").status_code, tab.get("/t/acme/").status_code) == (200, 200)
    logged_in(alice).post(f"/t/acme/members/{mia.public_id}/remove/")
    assert (api(agent).get("projects").status_code, tab.get("/t/acme/").status_code) == (401, 404)
    link = link_in(logged_in(alice).post("/t/acme/members/", {"email": mia.user.email, "role": "member"}))
    tab.post(link)
    assert (api(agent).get("projects").status_code, tab.get("/t/acme/").status_code) == (401, 200)


def test_an_admin_does_not_reach_above_themselves(acme: Any, alice: Any, bob: Any, logged_in: Any) -> None:
    with rls.tenant_scope(str(acme.pk)):
        Member.objects.filter(pk=bob.pk).update(role="admin")
    browser = logged_in(bob)
    for address, form in {
        f"members/{alice.public_id}/role/": {"role": "member"},
        f"members/{alice.public_id}/remove/": {},
        f"members/{alice.public_id}/link/": {},
        f"members/{bob.public_id}/role/": {"role": "owner"},
        "members/": {"email": "x@new.test", "role": "owner"},
    }.items():
        assert browser.post(f"/t/acme/{address}", form).status_code == 403, address


def test_no_admin_gets_a_login_link_into_another_team(
    acme: Any, globex: Any, alice: Any, mia: Any, logged_in: Any
) -> None:
    browser = logged_in(alice)
    assert "/login/link/" in link_in(browser.post(f"/t/acme/members/{mia.public_id}/link/"))
    with rls.tenant_scope(str(globex.pk)):
        Member.objects.create(tenant=globex, user=mia.user, handle="mia", role="owner")
    answer = browser.post(f"/t/acme/members/{mia.public_id}/link/", follow=True).content.decode()
    assert "/login/link/" not in answer and "manage.py login_link" in answer


def test_a_login_link_opens_nothing_that_came_after_it(
    acme: Any, globex: Any, alice: Any, mia: Any, bob: Any, charlie: Any, logged_in: Any
) -> None:
    """Whoever made it may hold it still, and would come in as more than they could have asked for."""
    browser = logged_in(mia)
    with rls.tenant_scope(str(acme.pk)):
        people.change_role(mia, "admin", by=member_actor(alice))

    def link() -> str:
        return link_in(browser.post(f"/t/acme/members/{bob.public_id}/link/"))

    def role(name: str) -> None:
        with rls.tenant_scope(str(acme.pk)):
            people.change_role(bob, name, by=member_actor(alice))

    before = link()
    role("owner")
    assert Client().post(before).status_code == 410
    role("member")
    before = link()
    with rls.tenant_scope(str(globex.pk)):
        joined = people.add_member(globex, "bob@acme.test", by=member_actor(charlie)).member
    assert Client().post(before).status_code == 410
    with rls.tenant_scope(str(globex.pk)):
        people.remove_member(joined, by=member_actor(charlie))
    before = link()
    with rls.tenant_scope(str(acme.pk)):
        people.remove_member(bob, by=member_actor(alice))
        people.add_member(acme, "bob@acme.test", by=member_actor(alice))
    assert Client().post(before).status_code == 410
    before = link()
    teams.appoint("bob@acme.test", by=teams.command("tests"))
    assert Client().post(before).status_code == 410
    teams.appoint("bob@acme.test", by=teams.command("tests"), is_operator=False)
    assert Client().post(link()).status_code == 302


@pytest.mark.parametrize("way", ["/password/", "/account/logout-everywhere/"])
def test_who_secures_their_account_ends_the_links_into_it(alice: Any, bob: Any, logged_in: Any, way: str) -> None:
    sent = link_in(logged_in(alice).post(f"/t/acme/members/{bob.public_id}/link/"))
    new = "quite another one"
    form = {"old": PASSWORD, "password1": new, "password2": new}
    assert logged_in(bob).post(way, form).status_code == 302
    assert Client().post(sent).status_code == 410


def test_every_action_and_scope_has_words(vera: Any, alice: Any, logged_in: Any) -> None:
    assert set(words.ACTIONS) == set(MAY) and set(words.SCOPES) == set(SCOPES)
    page = logged_in(vera).get("/t/acme/roles/").content.decode()
    for code in (*MAY, *SCOPES):
        assert words.with_code(code) in page
    shown = [words.with_code(scope) for scope in DEFAULT_SCOPES]
    for address in ("keys/", "connect/"):
        page = logged_in(alice).get(f"/t/acme/{address}").content.decode()
        assert [scope for scope in shown if scope not in page] == [], address


def test_the_roles_page_is_the_table_that_decides(vera: Any, logged_in: Any) -> None:
    page = logged_in(vera).get("/t/acme/roles/").content.decode()
    for action, allowed in MAY.items():
        row = re.search(rf">{re.escape(action)}</code></th>(.*?)</tr>", page, re.DOTALL)
        assert row, action
        shown = [">yes<" in cell for cell in row[1].split("<td")[1:]]
        assert shown == [role in allowed for role in (*Role.values, "agent", "dream")], action


@pytest.mark.parametrize(
    "address",
    [
        *("keys/", "connect/", "members/", "members/{mia}/role/", "members/{mia}/remove/", "audit/export/"),
        *("sign-on/", "purge/", "webhooks/"),
    ],
)
def test_what_lets_others_in_asks_again_who_is_there(
    acme: Any, alice: Any, mia: Any, logged_in: Any, address: str
) -> None:
    browser = stale(logged_in(alice))
    url = "/t/acme/" + address.format(mia=mia.public_id)
    answer = browser.post(url, {"role": "viewer"}, headers={"Referer": "http://testserver/t/acme/members/"})
    assert answer["Location"] == "/prove/?next=%2Ft%2Facme%2Fmembers%2F"
    in_panel = browser.post(url, headers={"HX-Request": "true", "HX-Current-URL": "https://evil.example//x.example/"})
    assert (in_panel.status_code, in_panel["HX-Redirect"][:13]) == (204, "/prove/?next=") and "evil" not in in_panel[
        "HX-Redirect"
    ]
    assert audited(acme) == []
    assert browser.post("/prove/", {"password": "wrong", "next": url}).status_code == 422
    assert browser.post("/prove/", {"password": PASSWORD, "next": "/t/acme/members/"})["Location"] == "/t/acme/members/"
    assert browser.post(url, {"role": "viewer"}).status_code in (200, 302, 422)


def test_taking_notes_away_asks_again_by_every_door(acme: Any, alice: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    doors = ("/t/acme/notes/export/", "/api/v1/notes/export")
    assert [browser.get(door).status_code for door in doors] == [200, 200]
    stale(browser)
    page = browser.get(doors[0], headers={"Referer": "http://testserver/t/acme/notes/files/"})
    assert page["Location"] == "/prove/?next=%2Ft%2Facme%2Fnotes%2Ffiles%2F"
    program = browser.get(doors[1])
    assert program.status_code == 403 and program.json()["code"] == "proof_needed"
    purge = {"source": new_agent(alice).key.public_id, "mode": "purge"}
    answer = browser.post("/api/v1/purges", purge, content_type="application/json")
    assert answer.status_code == 403 and answer.json()["code"] == "proof_needed"


def test_guessing_is_slowed_for_the_guesser_only(alice: Any, bob: Any) -> None:
    def guess(email: str, password: str, ip: str) -> Any:
        return Client(REMOTE_ADDR=ip).post("/login/", {"email": email, "password": password})

    statuses = [guess(alice.user.email, "wrong guess", "10.0.0.6").status_code for _ in range(9)]
    assert statuses[0] == 422 and statuses[-1] == 429
    locked = guess(alice.user.email, PASSWORD, "10.0.0.6")
    assert locked["Retry-After"] == "900"
    assert locked.status_code == 429 and "Try again in 15 minutes" in locked.content.decode()
    assert guess(alice.user.email, PASSWORD, "10.0.0.7").status_code == 302
    assert guess(bob.user.email, PASSWORD, "10.0.0.6").status_code == 302


def test_all_other_sessions_end_at_once(acme: Any, alice: Any, logged_in: Any) -> None:
    here, there = logged_in(alice), logged_in(alice)
    assert there.get("/account/").content.decode().count("since") == 2
    assert here.post("/account/logout-everywhere/").status_code == 302
    assert (here.get("/t/acme/").status_code, there.get("/t/acme/").status_code) == (200, 302)
    assert here.get("/account/").content.decode().count("since") == 1
    assert audited(acme) == [("session.end_all", "done")]


def test_a_password_is_changed_by_who_knows_it_and_ends_other_sessions(acme: Any, alice: Any, logged_in: Any) -> None:
    here, there = logged_in(alice), logged_in(alice)
    new = {"password1": "another long one", "password2": "another long one"}
    assert here.post("/password/", new).status_code == 422
    assert here.post("/password/", {**new, "old": "wrong"}).status_code == 422
    assert here.post("/password/", {**new, "old": PASSWORD}).status_code == 302
    assert (here.get("/t/acme/").status_code, there.get("/t/acme/").status_code) == (200, 302)
    assert audited(acme) == [("password.change", "done")]


def test_an_operator_makes_a_login_link(acme: Any, alice: Any) -> None:
    out = StringIO()
    call_command("login_link", alice.user.email, stdout=out)
    path = re.search(r"(/login/link/.+)", out.getvalue())
    assert path and Client().post(path[1].strip())["Location"].endswith("/t/acme/")
    with pytest.raises(Exception, match="is in no team"):
        call_command("login_link", "nobody@acme.test")
    with rls.tenant_scope(str(acme.pk)):
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.actor_kind) == ("login_link.make", "command")


def test_two_owners_can_not_remove_each_other(acme: Any, alice: Any, bob: Any) -> None:
    from memory.tenants import people

    with rls.tenant_scope(str(acme.pk)):
        Member.objects.filter(pk=bob.pk).update(role="owner")
        people.remove_member(Member.objects.get(pk=bob.pk), by=member_actor(alice))
    with rls.tenant_scope(str(acme.pk)):
        with pytest.raises(people.InvalidMember):
            people.remove_member(alice, by=member_actor(alice))
        assert [row.handle for row in Member.objects.current().filter(role="owner")] == ["alice"]


@pytest.mark.parametrize("change", ["lowered", "removed"])
def test_who_was_put_out_while_they_waited_does_nothing_more(
    acme: Any, alice: Any, mia: Any, bob: Any, change: str
) -> None:
    with rls.tenant_scope(str(acme.pk)):
        people.change_role(mia, "admin", by=member_actor(alice))
        mia.refresh_from_db()
        # What their request read before it had the team's lock.
        before = member_actor(mia)
        if change == "lowered":
            people.change_role(mia, "viewer", by=member_actor(alice))
        else:
            people.remove_member(mia, by=member_actor(alice))
        for act in (
            lambda: people.add_member(acme, "friend@evil.test", role="admin", by=before),
            lambda: people.change_role(bob, "admin", by=before),
            lambda: people.remove_member(bob, by=before),
            lambda: invitations.invite(acme, "friend@evil.test", role="admin", by=before),
        ):
            with pytest.raises(Refused):
                act()


def test_a_viewers_key_may_only_look_and_ask() -> None:
    assert keys.openable_scopes("viewer") == ["read", "cache", "dream"]
