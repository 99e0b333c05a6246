"""The Connect page: a key, shown once, and one paste."""

import json
import os
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from memory.tenants import connect, keys, rls
from memory.tenants.models import AgentKey, AuditEntry
from tests.conftest import new_agent


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


def run_paste(home: Path) -> dict[str, Any]:
    script = connect.paste("http://127.0.0.1:8000", "tm_live_x")
    subprocess.run(["sh", "-c", script], env={"HOME": str(home), "PATH": os.environ["PATH"]}, check=True)
    settings: dict[str, Any] = json.loads((home / ".claude/settings.json").read_text())
    return settings


def test_the_paste_keeps_what_is_there_and_may_be_run_again(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    foreign = {"hooks": [{"type": "command", "command": "echo hi"}]}
    (tmp_path / ".claude/settings.json").write_text(json.dumps({"model": "x", "hooks": {"Stop": [foreign]}}))
    first = run_paste(tmp_path)
    assert first["model"] == "x"
    assert foreign in first["hooks"]["Stop"] and len(first["hooks"]["Stop"]) == 2
    assert run_paste(tmp_path) == first
    kept = json.loads((tmp_path / ".claude/settings.json.before-team-memory").read_text())
    assert kept == {"model": "x", "hooks": {"Stop": [foreign]}}


def test_the_page_shows_the_paste_whole(logged_in: Any, alice: Any) -> None:
    page = unescape(logged_in(alice).post("/t/acme/connect/").content.decode())
    assert "TEAM_MEMORY\nimport json" in page.replace("python3 - <<'TEAM_MEMORY'", "TEAM_MEMORY")


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


BROKEN = ['{"model": "x",}', "", "[1]", '{"hooks": []}', '{"env": "x"}', '{"hooks": {"Stop": {}}}']


@pytest.mark.parametrize("broken", BROKEN)
def test_the_paste_leaves_broken_settings_alone_and_says_so_in_one_line(tmp_path: Path, broken: str) -> None:
    (tmp_path / ".claude").mkdir()
    settings = tmp_path / ".claude/settings.json"
    settings.write_text(broken)
    script = connect.paste("http://127.0.0.1:8000", "tm_live_x")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and str(settings) in done.stderr
    assert settings.read_text() == broken
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]
