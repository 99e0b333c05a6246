"""Settings of a team and of the server, and the keys that seal their secrets."""

import re
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection

from dream.mind import DistillMind, chosen
from memory.graph import endpoints
from memory.management.commands import rotate_secrets
from memory.ops import server_settings
from memory.paging import decode, encode
from memory.tenants import choices, vault
from memory.tenants.models import AuditEntry, Setting
from memory.tenants.rls import tenant_scope
from tests.pages import chains

PAGE = "/t/acme/settings/"


def post(browser: Any, name: str, value: str) -> Any:
    return browser.post(PAGE, {"name": name, "value": value})


def test_each_setting_has_default_effect_and_who_changed_it(acme: Any, alice: Any, vera: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    assert post(browser, "retention_events", "90").status_code == 302
    page = browser.get(PAGE).content.decode()
    for known in choices.KNOWN:
        assert known.label in page
    assert 'value="90"' in page and "Set by Alice<" in page
    with tenant_scope(str(acme.pk)):
        entry = AuditEntry.objects.filter(action="settings.manage").get()
        assert (entry.target, entry.before, entry.after) == ("retention_events", "default", "90")
    assert post(browser, "retention_events", "").status_code == 302
    with tenant_scope(str(acme.pk)):
        assert not Setting.objects.exists() and choices.number(acme, "retention_events") == 0
    reader = logged_in(vera)
    assert reader.get(PAGE).status_code == 200
    assert post(reader, "retention_events", "1").status_code == 403
    assert reader.get(PAGE + "server/").status_code == 403
    server = browser.get(PAGE + "server/").content.decode()
    assert "TEAM_MEMORY_PUBLIC_URL" in server and django_settings.PUBLIC_URL in server
    assert django_settings.SECRET_KEY not in server


def test_what_the_operator_left_alone_is_shown_as_its_default() -> None:
    rows = [row for _, group in server_settings.shown() for row in group if row.default and not row.is_set]
    differ = {row.name: (row.value, row.default) for row in rows if row.value != row.default}
    # Those whose default is said in words hold nothing of their own, or what is worked out of it.
    assert set(differ) <= {"TEAM_MEMORY_PUBLIC_URL", "TEAM_MEMORY_MODEL", "DATABASE_URL", "TEAM_MEMORY_TRUSTED_PROXIES"}
    assert {"TEAM_MEMORY_DISK_RESERVE_MB", "TEAM_MEMORY_LOG_LEVEL"} <= {row.name for row in rows}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("retention_events", "-1", "whole number"),
        ("retention_events", "1e9", "whole number"),
        ("retention_events", "99999999", "whole number"),
        ("model", "gpt-5", "anthropic:NAME"),
        ("model_url", "http://169.254.169.254/latest", "TEAM_MEMORY_MODEL_URLS"),
        ("no_such", "1", "no such setting"),
        ("retention_ran", "1", "no such setting"),
        ("model_key", "x" * 2_001, "2,000"),
    ],
)
def test_what_can_not_be_used_is_refused_with_what_can(
    acme: Any, alice: Any, logged_in: Any, name: str, value: str, said: str
) -> None:
    answer = post(logged_in(alice), name, value)
    assert answer.status_code == 422 and said in answer.content.decode()
    with tenant_scope(str(acme.pk)):
        assert not Setting.objects.exists()


def test_a_secret_is_sealed_and_never_shown_and_a_team_has_its_own_model(
    acme: Any, globex: Any, alice: Any, logged_in: Any, settings: Any
) -> None:
    settings.DREAM_MODEL, settings.DREAM_MODEL_KEY = "", "the-servers-key"
    browser = logged_in(alice)
    assert post(browser, "model_key", "sk-very-secret-words").status_code == 302
    assert post(browser, "model", "openai:small").status_code == 302
    assert "sk-very-secret-words" not in browser.get(PAGE).content.decode()
    with connection.cursor() as cursor, tenant_scope(str(acme.pk)):
        cursor.execute(
            "SELECT secret::text || value FROM tenants_setting UNION ALL SELECT after FROM tenants_auditentry"
        )
        assert not any(b"sk-very".hex() in str(row[0]) or "sk-very" in str(row[0]) for row in cursor.fetchall())
    assert chosen(tenant_pk=str(acme.pk)).model == "openai:small"
    with tenant_scope(str(acme.pk)):
        assert choices.model_of(acme).key == "sk-very-secret-words"
    assert isinstance(chosen(tenant_pk=str(globex.pk)), DistillMind)


def test_a_rotation_keeps_secrets_and_cursors(acme: Any, alice: Any, logged_in: Any, settings: Any) -> None:
    post(logged_in(alice), "model_key", "sk-words")
    endpoint = chains.endpoint(acme, alice, kind="github")
    with tenant_scope(str(acme.pk)):
        before = endpoints.secrets_of(endpoint)
    cursor, former = encode([7], scope="x"), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, [former]
    # The command sees all teams, as the migrator; here one is bound.
    with tenant_scope(str(acme.pk)):
        assert rotate_secrets.reseal() == 2
    settings.SECRET_KEY_FALLBACKS = []
    with tenant_scope(str(acme.pk)):
        endpoint.refresh_from_db()
        assert endpoints.secrets_of(endpoint) == before
        assert vault.opened(bytes(Setting.objects.get(name="model_key").secret or b"")) == "sk-words"
    settings.SECRET_KEY_FALLBACKS = [former]
    assert decode(cursor, scope="x") == [7]


def test_the_new_key_is_written_first_and_old_ones_can_be_forgotten(
    committed: None, tmp_path: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_HOME = tmp_path
    monkeypatch.setattr(rotate_secrets, "reseal", lambda: 0)
    former = settings.SECRET_KEY
    settings.SECRET_KEY_IS_GIVEN = False
    call_command("rotate_secrets")
    lines = (tmp_path / "secret_key").read_text().split()
    assert len(lines) == 2 and lines[1] == former and re.fullmatch(r"[\w-]{64}", lines[0])
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0
    call_command("rotate_secrets", forget=True)
    assert len((tmp_path / "secret_key").read_text().split()) == 1
