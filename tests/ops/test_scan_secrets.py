"""Secrets that were stored before a rule knew them: found wherever they stand, taken out; ids, hashes, sizes stay."""

from collections import Counter
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import models
from django.test import Client

from memory import redact, scrubbing
from memory.events.models import Event
from memory.graph.models import Part, Step
from memory.notes.models import Revision
from memory.redact import binary
from memory.tenants.models import AuditEntry
from memory.tenants.rls import tenant_scope
from tests import database
from tests.conftest import Agent
from tests.redact.ways import WAYS, World, _read

# Where a secret is what something is known by: another name would be another thing. The command tells of them.
FIXED = {"tenants_auditentry", "events_projectroot", "graph_mark", "events_claim", "notes_note"}
NOT_OURS = {"graph_thread": "key", "events_event": "key", "graph_trigger": "external_id"}


def blind(monkeypatch: Any) -> None:
    """A server whose rules know no secret."""
    monkeypatch.setattr(redact, "clean_text", lambda text: redact.Clean(redact.sanitize(text)[0], 0, 0))
    monkeypatch.setattr(redact, "clean", lambda value: redact.Clean(value, 0, 0))
    monkeypatch.setattr(redact, "clean_many", lambda values: [redact.Clean(value, 0, 0) for value in values])
    monkeypatch.setattr(redact, "has_secret", lambda text: False)
    monkeypatch.setattr(binary, "masked", lambda raw: (raw, 0))


def token(number: int) -> str:
    return "ghp_" + f"Ab3dEf6hIj{number:04}" * 2 + "Kl9mNo2p"


def standing(secrets: list[str]) -> Counter[str]:
    """How often the secrets stand in each table, but for what only can be told of."""
    found: Counter[str] = Counter()
    with database.migrator() as owner:
        tables = owner.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            rows = owner.execute(f'SELECT * FROM "{table}"'.encode())
            names = [column.name for column in rows.description or ()]
            for row in rows:
                for name, value in zip(names, row, strict=True):
                    if table in FIXED or NOT_OURS.get(str(table)) == name:
                        continue
                    for text in _read(value, ""):
                        found[str(table)] += sum(secret in text or secret.lower() in text for secret in secrets)
    return +found


def said(**options: Any) -> str:
    out = StringIO()
    call_command("scan_secrets", tenant="acme", stdout=out, **options)
    return out.getvalue()


def test_they_are_found_everywhere_and_taken_out(
    acme: Any, alice: Any, bob: Any, agent: Agent, tmp_path: Any, monkeypatch: Any
) -> None:
    world = World(acme, alice, bob, agent, tmp_path)
    with monkeypatch.context() as patched:
        blind(patched)
        secrets = [token(number) for number in range(len(WAYS))]
        for way, secret in zip(WAYS, secrets, strict=True):
            getattr(world, way)(f"It was token {secret} that worked")
        trigger = world.api.post("triggers", {"source": "ci", "payload": {"log": "x" * 20_000 + secrets[0]}}).json()
    before = standing(secrets)
    assert {
        "events_event",
        "graph_part",
        "graph_body",
        "graph_step",
        "graph_worker",
        "notes_revision",
        "dream_change",
    } <= before.keys()
    assert {"cache_admin_content", "notes_proposal", "events_session", "dream_window", "recall_entry"} <= before.keys()
    known = hashes(acme)
    found = said()
    assert standing(secrets) == before, "looking changes nothing"
    for what in (
        "events",
        "payloads",
        "payload bodies",
        "cached texts",
        "revisions",
        "proposals",
        "dream windows",
        "steps",
    ):
        assert f" {what}" in found.rsplit("Secrets found in", 1)[1], what
    taken = said(redact=True)
    assert "Secrets taken out of" in taken and not any(secret in taken for secret in secrets)
    assert standing(secrets) == Counter()
    assert {key: value for key, value in hashes(acme).items() if key in known} == known
    *lines, summary = said().splitlines()
    assert summary.startswith("Secrets found in 0 notes, 0 revisions, 0 proposals")
    assert lines and all("it can only be told of" in line for line in lines)
    with tenant_scope(str(acme.pk)):
        assert AuditEntry.objects.filter(action="secret.redact").exists()
    log = world.api.get(f"triggers/{trigger['trigger_id']}/payload")
    assert log.status_code == 200 and len(log.content) == len(b'{"log":"') + 20_000 + len(secrets[0]) + 2
    assert b"xx****" in log.content


def hashes(acme: Any) -> dict[str, tuple[Any, ...]]:
    """What each thing is known by: its id, its place, its hash and size."""
    with tenant_scope(str(acme.pk)):
        events = {one.public_id: (one.seq, bytes(one.sha256), one.size) for one in Event.objects.all()}
        parts = {f"{one.trigger_id} {one.name}": (bytes(one.sha256), one.size) for one in Part.objects.all()}
        steps = {one.public_id: (one.thread_id, one.seq, one.at) for one in Step.objects.all()}
        revisions = {one.public_id: (one.number, bytes(one.sha256), one.author_id) for one in Revision.objects.all()}
    return events | parts | steps | revisions


def test_it_keeps_to_its_team(
    acme: Any, globex: Any, alice: Any, globex_agent: Agent, api: Any, monkeypatch: Any
) -> None:
    with monkeypatch.context() as patched:
        blind(patched)
        api(globex_agent).post("triggers", {"source": "ci", "summary": f"token {token(1)}", "payload": {}})
    assert "0 notes, 0 revisions, 0 proposals\n" in said(redact=True)
    assert standing([token(1)])["graph_trigger"] == 1
    with pytest.raises(CommandError, match="no team"):
        call_command("scan_secrets", tenant="none")


def test_nobody_reaches_another_team_s_steps(acme: Any, globex: Any, globex_agent: Agent, api: Any, bound: Any) -> None:
    from django.db import connection

    api(globex_agent).post("triggers", {"source": "ci", "summary": "theirs", "payload": {}})
    with bound(globex):
        step = Step.objects.get()
    with bound(acme), connection.cursor() as cursor:
        cursor.execute("SELECT redact_step(%s, 'gone')", [step.public_id])
        assert cursor.fetchone() == (None,)
    with bound(globex):
        assert Step.objects.get().summary == step.summary != "gone"
    assert Client().get("/healthz").status_code == 200


def test_every_text_that_a_team_keeps_is_looked_at() -> None:
    """A new column with words in it fails here until it says how it is scanned, or why it need not be."""
    looked_at = {
        (place.model, name) for place in scrubbing.PLACES for name in (*place.texts, *place.stored, *place.fixed)
    }
    for model in apps.get_models():
        names = {field.name for field in model._meta.fields}
        for field in model._meta.fields:
            holds_words = isinstance(field, models.TextField | models.JSONField)
            if "tenant" in names and holds_words and f"{model.__name__}.{field.name}" not in BY_HAND | NO_WORDS:
                assert (model, field.name) in looked_at, f"{model.__name__}.{field.name}"


# Scanned by a function of its own.
BY_HAND = {f"Revision.{name}" for name in ("text", "reason")} | {"Step.summary", "NoteWords.folded"}
BY_HAND |= {f"Proposal.{name}" for name in ("text", "reason", "decision_reason", "risks")}
# Chosen from lists, counted, or settings of people: no text of a session, a page or a model gets there.
NO_WORDS = {"AgentKey.scopes", "Endpoint.proof", "Endpoint.field_map", "Rule.approvers", "CacheSetting.prices"}
NO_WORDS |= {"ToolPolicy.rules", "ToolPolicy.schema", "ToolDay.counts", "ToolDay.reasons", "SignOn.certificates"}
