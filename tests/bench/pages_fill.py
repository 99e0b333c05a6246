"""A team of the size that `pages.py` asks for: a small real history (tests/browser/filled.py), and bulk around it.

Bulk rows are made by SQL with triggers at rest, as `search.py` does it: through the front door a million events would
take an hour. Everything is shaped as in use: folders of about 30 notes and one of thousands, sessions of about 90
events and one of many thousands, a thread that is very long, proposals of which a part waits.
"""

# ruff: noqa: E501 - SQL is read by its columns

from dataclasses import dataclass
from typing import Any

VOCABULARY, TEXTS = 4_000, 4_000


@dataclass(frozen=True)
class Sizes:
    """How many rows of each kind; what stands in no relation to the others is given, the rest follows."""

    notes: int = 100_000
    events: int = 1_000_000

    def named(self) -> dict[str, int]:
        return {
            "notes": self.notes,
            "events": self.events,
            "sessions": max(20, self.events // 100),
            "long": max(10, self.events // 50),
            "triggers": max(100, self.events // 10),
            "threads": max(20, self.events // 50),
            "deep": max(20, self.events // 200),
            "proposals": max(40, self.notes // 50),
            "waiting": max(10, self.notes // 200),
            "audit": max(100, self.events // 5),
            "projects": max(5, self.notes // 500),
            "runs": max(5, self.notes // 200),
            "entries": max(50, self.events // 20),
            "lookups": max(100, self.events // 50),
            "members": max(3, self.notes // 2_000),
        }


def fill(connection: Any, team: dict[str, Any], sizes: Sizes) -> dict[str, int]:
    """Add the rows to the team; gives how many of each."""
    acme, alice = team["acme"], team["alice"]
    named = sizes.named()
    words(connection, str(acme.pk))
    for statement in FILL:
        filled = statement
        known = {"tenant": str(acme.pk), "alice": str(alice.pk), "owner": alice.public_id, **named, "texts": TEXTS}
        for name, value in known.items():
            filled = filled.replace(f"<{name}>", str(value))
        connection.execute(filled)
    connection.execute("SET session_replication_role = DEFAULT")
    connection.execute("VACUUM ANALYZE")
    return named


def words(connection: Any, tenant: str) -> None:
    """Texts of words by a long-tailed law, with the numbers that search knows the words by."""
    from memory.recall.entries import word_number
    from tests.bench.search import letters

    connection.execute("SET session_replication_role = replica; SET synchronous_commit = off")
    connection.execute("SET work_mem = '256MB'; SET maintenance_work_mem = '1GB'; SELECT setseed(0.5)")
    connection.execute("CREATE TEMP TABLE word (n int PRIMARY KEY, word text, number bigint)")
    with connection.cursor().copy("COPY word FROM STDIN") as copy:
        for n in range(VOCABULARY):
            said = f"w{letters(n + 27)}"
            copy.write_row((n, said, word_number(tenant, said)))
    connection.execute(
        "CREATE TEMP TABLE made AS SELECT t.n, string_agg(w.word, ' ' ORDER BY p) AS text,"
        " array_agg(DISTINCT w.number) AS words FROM (SELECT t AS n, p,"
        f" floor(power({VOCABULARY}, random()))::int - 1 AS w FROM generate_series(0, {TEXTS - 1}) t,"
        " generate_series(1, 60) p) t JOIN word w ON w.n = t.w GROUP BY t.n"
    )
    connection.execute("CREATE UNIQUE INDEX ON made (n); ANALYZE made")
    connection.execute(
        "INSERT INTO recall_word (id, tenant_id, word) SELECT n + 1000000, %s, word FROM word ON CONFLICT DO NOTHING",
        [tenant],
    )


# A typed id of the product's form: `graph_step_id()` makes evt_ and a uuid in base32.
ID = "substr(graph_step_id(), 5)"
NIL = "'00000000-0000-0000-0000-000000000000'::uuid"
# Nearly all notes are of some project; the folder general/ holds hundreds directly.
PATH = """CASE WHEN n % 100 < 94 THEN 'project/bench-' || n / 100 % <projects> || '/' || (ARRAY['build', 'deploy', 'tests',
    'design', 'people', 'data', 'api', 'costs'])[1 + n / 7 % 8] || '/note-' || n || '.md'
  WHEN n % 100 < 97 THEN 'tools/tool-' || n / 100 % 120 || '/use-' || n || '.md'
  WHEN n % 100 = 99 THEN 'general/fact-' || n || '.md'
  ELSE 'general/area-' || n / 100 % 90 || '/fact-' || n || '.md' END"""
FILL = (
    f"""
    CREATE TEMP TABLE project AS SELECT uuidv7() AS id, n FROM generate_series(0, <projects> - 1) n;
    INSERT INTO events_project (id, tenant_id, public_id, slug, name, is_limited, created_at)
      SELECT id, '<tenant>', 'prj_' || {ID}, 'bench-' || n, 'Bench ' || n, false, now() - n * interval '1 hour'
      FROM project;
    INSERT INTO events_projectroot (id, tenant_id, project_id, kind, place, first_seen_at)
      SELECT uuidv7(), '<tenant>', id, 'root', '/srv/bench-' || n, now() FROM project
    """,
    f"""
    CREATE TEMP TABLE person AS SELECT uuidv7() AS id, n FROM generate_series(1, <members>) n;
    INSERT INTO tenants_user (id, email, name, password, is_active, is_operator, created_at)
      SELECT id, 'person' || n || '@bench.test', 'Person ' || n, '!', true, false, now() FROM person;
    INSERT INTO tenants_member (id, tenant_id, user_id, public_id, handle, role, created_at)
      SELECT uuidv7(), '<tenant>', id, 'mem_' || {ID}, 'person' || n, 'member', now() FROM person;
    INSERT INTO tenants_agentkey (id, tenant_id, member_id, public_id, name, hash, display, scopes, created_at)
      SELECT uuidv7(), '<tenant>', id, 'key_' || {ID}, 'agent of ' || handle, sha256(handle::bytea), 'tm_live_…' ||
        substr(handle, 7), '["ingest", "read"]', now()
      FROM tenants_member WHERE tenant_id = '<tenant>' AND handle LIKE 'person%'
    """,
    f"""
    CREATE TEMP TABLE note AS SELECT n, uuidv7() AS id, uuidv7() AS revision, {PATH} AS path
      FROM generate_series(1, <notes>) n;
    INSERT INTO notes_note (id, tenant_id, public_id, member_id, project_id, path, path_key, current_id, created_at,
        deleted_at, is_locked, is_pinned)
      SELECT note.id, '<tenant>', 'nte_' || {ID}, CASE WHEN note.n % 100 = 51 THEN '<alice>'::uuid END, p.id, path, path,
        revision, now() - note.n * interval '1 minute', CASE WHEN note.n % 100 = 50 THEN now() - note.n * interval '1 second' END,
        false, note.n % 500 = 0
      FROM note LEFT JOIN project p ON path LIKE 'project/%' AND p.n = note.n / 100 % <projects>;
    INSERT INTO notes_revision (id, tenant_id, public_id, note_id, number, text, sha256, title, description, kind, tier,
        reason, author_kind, author_id, author_label, created_at)
      SELECT revision, '<tenant>', 'rev_' || {ID}, id, 1, '---' || chr(10) || 'title: What is known of ' || note.n ||
        chr(10) || 'description: ' || left(text, 120) || chr(10) || '---' || chr(10) || '# What is known of ' || note.n ||
        chr(10) || chr(10) || '- ' || text || chr(10), sha256(note.n::text::bytea), 'What is known of ' || note.n,
        left(text, 120), '', 2, '', 'dream', 'drm_bench', 'Dream', now() - note.n * interval '1 minute'
      FROM note JOIN made ON made.n = note.n % <texts>
    """,
    f"""
    CREATE TEMP TABLE session AS SELECT n, uuidv7() AS id, CASE WHEN n = 0 THEN <long>
        ELSE (<events> - <long>) / (<sessions> - 1) + (n <= (<events> - <long>) % (<sessions> - 1))::int END AS length,
        now() - n * (interval '90 days' / <sessions>) AS at
      FROM generate_series(0, <sessions> - 1) n;
    INSERT INTO events_session (id, tenant_id, public_id, client, key, is_internal, state, source, cwd, model,
        transcript_path, last_prompt, last_seq, last_stop_seq, generation, first_received_at, last_received_at,
        member_id, project_id)
      SELECT s.id, '<tenant>', 'ses_' || {ID}, (ARRAY['claude_code', 'codex', 'cursor'])[1 + s.n % 3], 'bench-' || s.n,
        false, CASE WHEN s.n < 20 THEN 'open' ELSE 'ended' END, 'startup', '/srv/bench-' || s.n % <projects>, 'model-1',
        '', 'Mend the test that fails: ' || left(made.text, 80), length, length, 0, at - interval '20 minutes', at,
        '<alice>', p.id
      FROM session s JOIN made ON made.n = s.n % <texts> JOIN project p ON p.n = s.n % <projects>;
    INSERT INTO dream_watermark (id, tenant_id, session_id, seq, failures, error)
      SELECT uuidv7(), '<tenant>', id, length, 0, '' FROM session WHERE n % 10 > 0
    """,
    f"""
    CREATE TEMP TABLE event AS SELECT uuidv7() AS id, s.id AS session, s.n * 37 + seq AS n, seq, s.length, s.n AS of,
        s.at - (s.length - seq) * interval '10 seconds' AS at
      FROM session s, generate_series(1, s.length) seq;
    INSERT INTO events_event (id, tenant_id, public_id, session_id, seq, client, name, kind, key, key_is_given,
        received_at, member_id, agent_id, tool, tool_use_id, summary, sha256, size, body, head, tail, redactions,
        sanitized)
      SELECT e.id, '<tenant>', 'evt_' || {ID}, session, seq, (ARRAY['claude_code', 'codex', 'cursor'])[1 + of % 3],
        CASE WHEN seq = 1 THEN 'SessionStart' WHEN seq = length THEN 'Stop' WHEN seq % 12 = 2 THEN 'UserPromptSubmit'
          WHEN seq % 2 = 1 THEN 'PreToolUse' ELSE 'PostToolUse' END,
        CASE WHEN seq = 1 THEN 'start' WHEN seq = length THEN 'stop' WHEN seq % 12 = 2 THEN 'prompt'
          WHEN seq % 2 = 1 THEN 'tool_before' ELSE 'tool_after' END,
        'bench|' || of || '|' || seq, false, at, '<alice>', '',
        CASE WHEN seq IN (1, length) OR seq % 12 = 2 THEN '' ELSE (ARRAY['Bash', 'Read', 'Edit', 'Grep'])[1 + e.n / 2 % 4] END,
        CASE WHEN seq IN (1, length) OR seq % 12 = 2 THEN '' ELSE 'use-' || of || '-' || seq / 2 END,
        left(made.text, 60), sha256(made.text::bytea), 340, '{{"tool_name": "Read", "tool_input": {{"file_path": "/srv/f'
        || e.n % 9000 || '.py"}}, "said": "' || left(made.text, 200) || '"}}', '', '', 0, 0
      FROM event e JOIN made ON made.n = e.n % <texts>
    """,
    """
    INSERT INTO notes_source (id, tenant_id, event_id, revision_id, line, position, tier)
      SELECT uuidv7(), '<tenant>', e.id, note.revision, '- It rests on this', 0, 2
      FROM note JOIN (SELECT id, row_number() OVER () AS n FROM event LIMIT <notes>) e ON e.n = note.n
    """,
    f"""
    CREATE TEMP TABLE thread AS SELECT n, uuidv7() AS id, CASE WHEN n = 0 THEN <deep>
        ELSE (<triggers> - <deep>) / (<threads> - 1) + (n <= (<triggers> - <deep>) % (<threads> - 1))::int END AS length,
        now() - (n + 1) * (interval '80 days' / <threads>) AS at
      FROM generate_series(0, <threads> - 1) n;
    INSERT INTO graph_thread (id, tenant_id, public_id, key, title, state, summary, last_seq, trigger_count,
        worker_count, created_at, last_at, active_at)
      SELECT t.id, '<tenant>', 'thr_' || {ID}, 'github:acme/bench-' || t.n % <projects> || '#' || t.n, 'Retry ' ||
        left(made.text, 40), CASE WHEN t.n % 3 = 1 THEN 'merged' ELSE 'open' END, left(made.text, 80), length, length,
        0, at, at, at
      FROM thread t JOIN made ON made.n = t.n % <texts>;
    CREATE TEMP TABLE trigger AS SELECT uuidv7() AS id, {ID} AS public, t.id AS thread, seq, t.n + seq AS n, at
      FROM thread t, generate_series(1, t.length) seq;
    INSERT INTO graph_trigger (id, tenant_id, public_id, thread_id, seq, source, fingerprint, received_at, summary, by)
      SELECT r.id, '<tenant>', 'trg_' || public, thread, seq, 'github', '', at, 'comment: ' || left(text, 80), ''
      FROM trigger r JOIN made ON made.n = r.n % <texts>;
    INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id,
        other_public_id, summary, at)
      SELECT thread, seq, '<tenant>', 'evt_' || {ID}, 'trigger', 'trg_' || public, '', '', 'comment: ' ||
        left(text, 80), at
      FROM trigger r JOIN made ON made.n = r.n % <texts>;
    INSERT INTO graph_part (trigger_id, name, tenant_id, media_type, size, sha256, redactions, sanitized, content,
        stored_at)
      SELECT r.id, 'payload', '<tenant>', 'text/plain', length(text), sha256(text::bytea), 0, 0, text::bytea, at
      FROM trigger r JOIN made ON made.n = r.n % <texts>
    """,
    f"""
    INSERT INTO graph_worker (id, tenant_id, public_id, thread_id, task, state, session_public_id, report, report_head,
        report_tail, report_size, report_redactions, last_inbox_seq, by, created_at)
      SELECT uuidv7(), '<tenant>', 'wkr_' || {ID}, id, 'Look why ' || n, 'done', '', 'It was so.', '', '', 10, 0, 0,
        'bench', at FROM thread WHERE n % 10 = 0;
    UPDATE graph_thread SET worker_count = 1
      WHERE id IN (SELECT thread_id FROM graph_worker WHERE tenant_id = '<tenant>' AND by = 'bench');
    INSERT INTO graph_owner (thread_id, worker_id, tenant_id, pass_through, since)
      SELECT thread_id, id, '<tenant>', false, created_at FROM graph_worker WHERE by = 'bench';
    INSERT INTO graph_link (id, tenant_id, from_thread_id, to_thread_id, to_key, kind, made_by, because_of, made_at)
      SELECT uuidv7(), '<tenant>', a.id, b.id, '', 'mentions', 'rule:number', '', a.at
      FROM thread a JOIN thread b ON b.n = a.n + 1 WHERE a.n % 2 = 0
    """,
    f"""
    CREATE TEMP TABLE run AS SELECT n, uuidv7() AS id FROM generate_series(0, <runs> - 1) n;
    INSERT INTO dream_run (id, tenant_id, public_id, state, mind, model, prompt_version, asked_by, created_at,
        started_at, finished_at, events_read, sessions_read, tokens_in, tokens_out, tokens_cached, error, is_whole,
        asked_model, cost, instructions, undone_by, unpriced_calls)
      SELECT id, '<tenant>', 'drm_' || {ID}, 'succeeded', 'distill', '', '1', 'schedule', at, at,
        at + interval '1 minute', 2000, 20, 0, 0, 0, '', false, '', 0, '', '', 0
      FROM (SELECT *, now() - (n + 1) * interval '4 hours' AS at FROM run) r;
    INSERT INTO dream_window (id, tenant_id, run_id, session_id, from_seq, to_seq, outcome, detail)
      SELECT uuidv7(), '<tenant>', r.id, s.id, 0, length, 'read', ''
      FROM session s JOIN run r ON r.n = s.n % <runs> WHERE s.n % 10 > 0
    """,
    f"""
    CREATE TEMP TABLE proposal AS SELECT m.n, note.id AS note, note.revision, uuidv7() AS id,
        CASE WHEN m.n <= <waiting> THEN 'open' WHEN m.n % 4 = 0 THEN 'rejected' ELSE 'approved' END AS state
      FROM generate_series(1, <proposals>) m (n) JOIN note ON note.n = m.n * (<notes> / <proposals>);
    INSERT INTO notes_proposal (id, tenant_id, public_id, note_id, operation, target, base_id, text, sha256, reason,
        tier, risks, author_kind, author_id, author_label, state, created_at, decided_at, decision_reason,
        assigned_by)
      SELECT p.id, '<tenant>', 'prp_' || {ID}, note, 'write', '', revision, '# What is known' || chr(10) || chr(10) ||
        '- ' || text || chr(10), sha256(text::bytea), 'It was said again', 2, CASE WHEN p.n % 3 = 0
        THEN '[{{"code": "command", "level": "high", "reason": "Names a command"}}]'::jsonb ELSE '[]'::jsonb END, 'dream',
        'drm_bench', 'Dream', state, now() - p.n * interval '10 minutes', CASE WHEN state <> 'open' THEN now() END, '',
        ''
      FROM proposal p JOIN made ON made.n = p.n % <texts>;
    INSERT INTO notes_source (id, tenant_id, event_id, proposal_id, line, position, tier)
      SELECT uuidv7(), '<tenant>', e.id, p.id, '- It rests on this', 0, 2
      FROM proposal p JOIN (SELECT id, row_number() OVER () AS n FROM event LIMIT 2 * <proposals>) e ON e.n / 2 = p.n;
    INSERT INTO dream_change (id, tenant_id, run_id, proposal_id, kind, path, text, old_text, reason, undo, undo_detail)
      SELECT uuidv7(), '<tenant>', r.id, p.id, 'rewrite', '', '', '', '', '', ''
      FROM proposal p JOIN run r ON r.n = p.n % <runs>;
    INSERT INTO notes_finding (id, tenant_id, public_id, kind, note_id, fingerprint, words, lines, state, found_by,
        created_at, answer)
      SELECT uuidv7(), '<tenant>', 'fnd_' || {ID}, (ARRAY['too_long', 'untold'])[1 + n % 2], id, md5(n::text), 'Too long',
        '[]', 'open', 'rules', now(), ''
      FROM note WHERE n % 200 = 1;
    INSERT INTO notes_tombstone (id, tenant_id, note_id, line, reason, created_at)
      SELECT uuidv7(), '<tenant>', id, NULL, 'No longer true', now() FROM note WHERE n % 100 = 50
    """,
    f"""
    CREATE TEMP TABLE telling AS SELECT uuidv7() AS id, s.id AS session, s.n, e.id AS event, e.at
      FROM session s JOIN event e ON e.session = s.id AND e.seq = 1;
    INSERT INTO recall_telling (id, tenant_id, public_id, session_id, event_id, awaits, member_id, kind, generation,
        text, left_out, at)
      SELECT id, '<tenant>', 'tel_' || {ID}, session, event, '', '<alice>', 'start', 0, 'Told', 0, at FROM telling;
    INSERT INTO recall_toldnote (id, tenant_id, telling_id, note_id, revision_id, position, why)
      SELECT uuidv7(), '<tenant>', t.id, note.id, note.revision, p, 'in this project'
      FROM telling t, generate_series(0, 2) p, note
      WHERE note.n = CASE WHEN p = 0 THEN 1 ELSE 1 + (t.n * 7 + p) % <notes> END
    """,
    """
    INSERT INTO tenants_auditentry (id, tenant_id, seq, at, actor_kind, actor_id, actor_label, action, target, before,
        after, outcome, ip, request_id, previous_hash, hash)
      SELECT uuidv7(), '<tenant>', h.seq + n, now() - (<audit> - n) * interval '30 seconds', 'member', '<owner>',
        'alice', (ARRAY['note.approve', 'note.propose', 'key.make', 'member.role', 'note.edit'])[1 + n % 5],
        'nte_bench' || n % 5000, '', '', CASE WHEN n % 50 = 0 THEN 'refused' ELSE 'done' END, '127.0.0.1', '',
        sha256((n - 1)::text::bytea), sha256(n::text::bytea)
      FROM generate_series(1, <audit>) n, tenants_audithead h WHERE h.tenant_id = '<tenant>';
    UPDATE tenants_audithead SET seq = seq + <audit>, hash = sha256('<audit>'::bytea) WHERE tenant_id = '<tenant>'
    """,
    f"""
    CREATE TEMP TABLE result AS SELECT n, uuidv7() AS id FROM generate_series(1, <entries>) n;
    INSERT INTO cache_admin_result (id, tenant_id, public_id, tool, sha256, is_json, summary, summariser, chars, tokens,
        summary_tokens, redactions, is_private, expansions, created_at)
      SELECT id, '<tenant>', 'res_' || {ID}, 'read_file', sha256('x'), false, '', 'whole', 100, 25, 25, 0, false, 0,
        now() - n * interval '1 minute' FROM result;
    INSERT INTO cache_admin_entry (id, tenant_id, key, identity, document, tool, scope, content_hash, result_id,
        created_at, last_hit_at, hits)
      SELECT uuidv7(), '<tenant>', sha256(id::text::bytea), sha256(n::text::bytea),
        '{{"tool":"read_file","arguments":{{"path":"src/f' || n || '.py"}},"scope":"team"}}', 'read_file', 'team', 'h' || n,
        id, now() - n * interval '1 minute', now() - n % 1000 * interval '1 minute', n % 20 FROM result;
    INSERT INTO cache_admin_content (id, tenant_id, sha256, size, codec, content, created_at)
      SELECT uuidv7(), '<tenant>', sha256('x'), 1, 'raw', 'x', now();
    INSERT INTO cache_admin_lookup (id, tenant_id, at, tool, kind, status, reason, would_hit, tokens_stored,
        tokens_returned, saved_ms, hash_us, lookup_us, embed_us)
      SELECT uuidv7(), '<tenant>', now() - random() * interval '20 hours', (ARRAY['read_file', 'search_web', 'grep'])[1 + n % 3],
        'tool', (ARRAY['hit', 'miss', 'bypass'])[1 + n % 3], CASE WHEN n % 3 = 2 THEN 'off' ELSE '' END, false, 400, 100,
        200, 50, 800, 0
      FROM generate_series(1, <lookups>) n;
    INSERT INTO cache_admin_toolday (id, tenant_id, day, tool, kind, counts, reasons)
      SELECT uuidv7(), '<tenant>', current_date - d, 'bench_' || t, 'tool',
        '{{"hit": 500, "miss": 300, "bypass": 20}}', '{{}}' FROM generate_series(1, 90) d, generate_series(1, 20) t
    """,
    f"""
    INSERT INTO recall_entry (id, tenant_id, kind, target, reader, place, thread, version, words, head, size, folded)
      SELECT uuidv7(), '<tenant>'::uuid, 'note', note.id, {NIL}, {NIL}, NULL::uuid, 1, words, words[1:4], cardinality(words), text
        FROM note JOIN made ON made.n = note.n % <texts> WHERE note.n % 100 NOT IN (50, 51)
      UNION ALL SELECT uuidv7(), '<tenant>'::uuid, 'trigger', r.id, {NIL}, {NIL}, thread, 1, words[1:12], words[1:2], 12,
        left(text, 80) FROM trigger r JOIN made ON made.n = r.n % <texts>
      UNION ALL SELECT uuidv7(), '<tenant>'::uuid, 'thread', t.id, {NIL}, {NIL}, t.id, 1, words[1:12], words[1:4], 12,
        left(text, 80) FROM thread t JOIN made ON made.n = t.n % <texts>
    """,
    """
    INSERT INTO recall_notewords (id, tenant_id, note_id, revision_id, path_key, version, words, head, folded)
      SELECT uuidv7(), '<tenant>', note.id, note.revision, path, 1, '{what,is,known,of}'::text[] ||
          string_to_array(text, ' '), '{what,is,known,of}'::text[] || (string_to_array(text, ' '))[1:12], text
        FROM note JOIN made ON made.n = note.n % <texts> WHERE note.n % 100 <> 50
    """,
)
