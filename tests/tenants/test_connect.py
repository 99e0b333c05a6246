"""The Connect page: a key, shown once, and one command for each harness."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from memory.tenants import connect, keys, rls
from memory.tenants.models import AgentKey, AuditEntry
from tests.conftest import new_agent
from tests.pages import made


def secrets_in(page: Any) -> set[str]:
    return set(re.findall(r"tm_live_[0-9A-Za-z]{46}", page.content.decode()))


def test_it_shows_a_new_key_once(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    shown = secrets_in(browser.post("/t/acme/connect/"))
    assert len(shown) == 1
    assert secrets_in(browser.get("/t/acme/connect/")) == set()
    with rls.tenant_scope(str(acme.pk)):
        assert bytes(AgentKey.objects.get().hash) == keys.digest(shown.pop())
        assert AuditEntry.objects.get().action == "key.create"


def test_it_needs_login() -> None:
    assert Client().get("/t/acme/connect/").status_code == 302


def test_it_needs_the_role(logged_in: Any, acme: Any, vera: Any) -> None:
    answer = logged_in(vera).post("/t/acme/connect/")
    assert answer.status_code == 403
    with rls.tenant_scope(str(acme.pk)):
        assert AgentKey.objects.count() == 0
        assert AuditEntry.objects.get().outcome == "refused"


def test_it_hides_the_page_from_other_tenants(logged_in: Any, alice: Any, charlie: Any) -> None:
    assert logged_in(charlie).get("/t/acme/connect/").status_code == 404


def test_it_refuses_another_method(logged_in: Any, alice: Any) -> None:
    assert logged_in(alice).delete("/t/acme/connect/").status_code == 405


@pytest.mark.parametrize("slug", connect.BY_SLUG)
def test_each_harness_has_its_command_and_its_mcp_line(logged_in: Any, alice: Any, slug: str) -> None:
    page = logged_in(alice).post("/t/acme/connect/", {"client": slug})
    [secret] = secrets_in(page)
    text = unescape(page.content.decode())
    one = f"curl -fsS {settings.PUBLIC_URL}/clients/hook.py -o hook.py && python3 hook.py install --client {slug} "
    assert f"{one}--url {settings.PUBLIC_URL} --key {secret}</pre>" in text
    assert f"py -3 hook.py install --client {slug} --url" in text and f"{settings.PUBLIC_URL}/mcp" in text
    assert text.count(secret) >= 4 and "YOUR_KEY" not in text
    assert ("type /hooks" in text, "serve both" in text) == (slug == "codex", slug == "vscode")


def test_the_readme_names_the_same_harnesses() -> None:
    readme = " ".join((settings.BASE_DIR / "README.md").read_text().split())
    found = re.search(r"a team's agents \(([^)]*)\)", readme)
    assert found is not None
    assert sorted(found[1].split(", ")) == sorted(one.name for one in connect.HARNESSES)


def test_it_offers_hooks_without_a_client_for_claude_code_alone(logged_in: Any, alice: Any) -> None:
    browser = logged_in(alice)
    shown = unescape(browser.get("/t/acme/connect/?client=claude-code").content.decode())
    given = json.loads(shown.partition('id="without-client" tabindex="0">')[2].partition("</pre>")[0])
    kinds = {event: group["hooks"][0]["type"] for event, [group] in given["hooks"].items()}
    assert kinds.pop("SessionStart") == "command" and set(kinds.values()) == {"http"}
    assert "Without installing" not in browser.get("/t/acme/connect/?client=codex").content.decode()
    assert browser.get("/t/acme/connect/?client=emacs").status_code == 404


def test_a_key_is_called_as_the_harness_it_is_made_for(logged_in: Any, acme: Any, alice: Any, bob: Any) -> None:
    browser = logged_in(alice)
    for slug in ("codex", "cursor", "codex"):
        assert secrets_in(browser.post("/t/acme/connect/", {"client": slug}))
    logged_in(bob).post("/t/acme/connect/", {"client": "codex"})
    with rls.tenant_scope(str(acme.pk)):
        named = list(acme.keys.order_by("created_at").values_list("name", flat=True))
    assert named == ["Codex", "Cursor", "Codex 2", "Codex"]
    assert "It will be called “Codex 3”" in browser.get("/t/acme/connect/?client=codex").content.decode()


def test_it_waits_until_the_first_event_is_there(logged_in: Any, alice: Any, agent: Any) -> None:
    browser, piece = logged_in(alice), {"HX-Request": "true"}
    assert "every 3s" not in browser.get("/t/acme/connect/").content.decode()
    [secret] = secrets_in(browser.post("/t/acme/connect/", {"client": "codex"}))
    event = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Mend <b>it</b>", "turn_id": "t"}

    def send(key: str) -> None:
        sender = Client(headers={"Authorization": f"Bearer {key}"})
        assert sender.post("/api/v1/hooks/codex", event, content_type="application/json").status_code == 200

    send(agent.secret)  # another key's event is not this one's
    waiting = browser.get("/t/acme/connect/", headers=piece).content.decode()
    assert "Start Codex" in waiting and "every 3s" in waiting and "look again" in waiting
    event["turn_id"] = "t2"
    send(secret)
    arrived = browser.get("/t/acme/connect/", headers=piece).content.decode()
    assert "It works" in arrived and "Mend &lt;b&gt;it&lt;/b&gt;" in arrived and "every 3s" not in arrived
    assert "It works" in browser.get("/t/acme/connect/").content.decode()
    # What came from Codex says nothing of another harness.
    other = browser.get("/t/acme/connect/?client=cursor").content.decode()
    assert "It works" not in other and "Start Cursor" in other
    assert 'hx-get="/t/acme/connect/?client=cursor"' in other


def test_a_history_brought_in_meanwhile_does_not_hide_the_first_event(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    [secret] = secrets_in(browser.post("/t/acme/connect/", {"client": "codex"}))
    event = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Mend it", "turn_id": "t"}
    sender = Client(headers={"Authorization": f"Bearer {secret}"})
    assert sender.post("/api/v1/hooks/codex", event, content_type="application/json").status_code == 200
    for number in range(50):
        made.session(acme, key=f"imported-{number}")
    assert "It works" in browser.get("/t/acme/connect/", headers={"HX-Request": "true"}).content.decode()


def test_it_says_how_a_history_comes_in(logged_in: Any, alice: Any) -> None:
    assert (
        "import_sessions ~/.claude/projects --tenant acme" in logged_in(alice).get("/t/acme/connect/").content.decode()
    )


def test_it_lists_this_members_keys_and_no_others(logged_in: Any, alice: Any, bob: Any) -> None:
    mine, theirs = new_agent(alice).key, new_agent(bob).key
    page = logged_in(alice).get("/t/acme/connect/").content.decode()
    assert mine.display in page and theirs.display not in page
    assert "Last used" in page and "never" in page


def revoke(browser: Client, key: AgentKey, team: str = "acme") -> int:
    return browser.post(f"/t/{team}/connect/keys/{key.public_id}/revoke/").status_code


def test_a_revoked_key_opens_nothing_and_leaves_the_list(logged_in: Any, acme: Any, mia: Any, api: Any) -> None:
    agent = new_agent(mia)
    assert api(agent).get("projects").status_code == 200
    browser = logged_in(mia)
    assert revoke(browser, agent.key) == 302
    assert api(agent).get("projects").status_code == 401
    assert agent.key.display not in browser.get("/t/acme/connect/").content.decode()
    with rls.tenant_scope(str(acme.pk)):
        entry = AuditEntry.objects.get(action="key.revoke")
        assert (entry.actor_id, entry.target) == (mia.public_id, agent.key.public_id)


def test_another_members_key_is_revoked_only_by_who_manages_members(
    logged_in: Any, acme: Any, alice: Any, bob: Any, mia: Any, charlie: Any
) -> None:
    key = new_agent(mia).key
    assert revoke(logged_in(bob), key) == 404
    assert revoke(logged_in(charlie), key, "globex") == 404
    assert logged_in(alice).get(f"/t/acme/connect/keys/{key.public_id}/revoke/").status_code == 405
    with rls.tenant_scope(str(acme.pk)):
        assert AgentKey.objects.get(pk=key.pk).revoked_at is None
    assert revoke(logged_in(alice), key) == 302
    with rls.tenant_scope(str(acme.pk)):
        assert AgentKey.objects.get(pk=key.pk).revoked_at is not None
