"""What a dream sends for 100 new events, in a team that already has 1,000, and in one that has 100,000.

`python tests/bench/dream.py [--old 1000 100000]`. A scripted provider on loopback counts the calls; tokens are those of
the questions as they were sent, counted by our tokenizer. Old events and their notes were dreamt before.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests import database  # first: it starts a database and points the settings at it

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
import django

django.setup()

NEW = 100
PER_SESSION = 200
# A team that did more has learnt more: one approved note for so many old events.
PER_NOTE = 250


def fill(acme: Any, alice: Any, old: int) -> None:
    """Old sessions with their events, dreamt and over, and notes that were learnt from them."""
    from django.db import connection

    from memory.notes import review
    from memory.tenants.access import member_actor
    from memory.tenants.rls import tenant_scope
    from tests.dream.told import prompt, stop, tell

    tell(alice, "seed", prompt("Begin"), stop())
    with tenant_scope(str(acme.pk)), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO events_session (id, tenant_id, public_id, client, key, project_id, member_id, is_internal,"
            " state, source, cwd, model, transcript_path, last_prompt, last_seq, last_stop_seq, generation,"
            " first_received_at, last_received_at)"
            " SELECT uuidv7(), s.tenant_id, 'ses_old' || n, s.client, 'old' || n, s.project_id, s.member_id, false,"
            " 'ended', '', s.cwd, '', '', '', %s, %s, 0, now(), now()"
            " FROM events_session s, generate_series(1, %s) n WHERE s.key = 'seed'",
            [PER_SESSION, PER_SESSION, max(1, old // PER_SESSION)],
        )
        cursor.execute(
            "INSERT INTO events_event (id, tenant_id, public_id, session_id, seq, client, name, kind, key,"
            " key_is_given, received_at, agent_id, tool, tool_use_id, summary, sha256, size, body, head, tail,"
            " redactions, sanitized)"
            " SELECT uuidv7(), s.tenant_id, 'evt_old' || s.key || '_' || n, s.id, n, s.client, 'UserPromptSubmit',"
            " 'prompt', s.key || '-' || n, false, now(), '', '', '', 'Retry the payment', sha256('x'), 40,"
            " '{\"prompt\": \"Retry the payment ' || n || '\"}', '', '', 0, 0"
            " FROM events_session s, generate_series(1, %s) n WHERE s.key LIKE 'old%%'",
            [PER_SESSION],
        )
        cursor.execute(
            "INSERT INTO dream_watermark (id, tenant_id, session_id, seq, failures, error)"
            " SELECT uuidv7(), tenant_id, id, last_seq, 0, '' FROM events_session"
        )
        by = member_actor(alice)
        for n in range(max(1, old // PER_NOTE)):
            text = f"# Subject {n}\n\n" + "".join(
                f"- Payment step {n}.{line} waits for the bank\n" for line in range(8)
            )
            review.write(acme, path=f"project/shop/subject-{n}.md", text=text, by=by, base=None)


def new_events(alice: Any) -> None:
    """A session of a hundred events: prompts, calls and their outcomes, a Stop."""
    from tests.dream.told import prompt, ran, stop, tell

    said = [prompt(f"Mend step {n} of the payment: the bank answers 503 at midnight") for n in range(9)]
    calls = [each for n in range(45) for each in ran(f"make test F=tests/payments/test_{n}.py", output="12 passed")]
    tell(alice, "fresh", *said, *calls, stop())


def measured(old: int) -> dict[str, Any]:
    from dream import run as dreams
    from dream.mind import ModelMind
    from memory import tokens
    from memory.llm import Provider
    from memory.tenants.access import command_actor
    from tests.conftest import new_team
    from tests.llm_server import provider

    acme, people = new_team(f"team-{old}", alice="owner")
    fill(acme, people["alice"], old)
    new_events(people["alice"])
    with provider(['{"operations": [{"op": "none", "reason": "a bench"}]}']) as served:
        mind = ModelMind(Provider("openai-compatible:bench", served.address + "/v1", "key"))
        began = time.monotonic()
        run = dreams.perform(dreams.start_and_claim(acme, by=command_actor(acme, "bench")), mind=mind)
        took = time.monotonic() - began
    assert run is not None and run.state == "no_change" and run.events_read == NEW, run
    sent = [tokens.count(asked) for asked in served.prompts]
    return {
        "old_events": old,
        "new_events": NEW,
        "calls": len(sent),
        "tokens_sent": sum(sent),
        "seconds": round(took, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=int, nargs="+", default=[1_000, 100_000])
    asked = parser.parse_args()
    rows = [measured(old) for old in asked.old]
    for row in rows:
        print(json.dumps(row))
    first, last = rows[0]["tokens_sent"], rows[-1]["tokens_sent"]
    print(f"tokens at {rows[-1]['old_events']:,} old events: {last / first:.3f} of those at {rows[0]['old_events']:,}")


if __name__ == "__main__":
    try:
        main()
    finally:
        database.end()
