"""Rows for `recall.py`, made by SQL: threads of a team, and one thread with very many steps."""

from typing import Any

DEEP = "thr_bench_deep"
# Ids as the product mints them: a prefix and a uuid in base32. Every tenth thread has a worker that owns it, every
# twentieth is linked to another.
FILL = (
    """
    INSERT INTO graph_thread (id, tenant_id, public_id, key, title, state, summary, last_seq, trigger_count,
        worker_count, created_at, last_at, active_at)
      SELECT uuidv7(), '{tenant}', 'thr_' || substr(graph_step_id(), 5), 'github:acme/payments#' || n,
        'Retry the payment when the bank answers ' || n, CASE WHEN n % 3 = 0 THEN 'merged' ELSE 'open' END,
        'The bank answers 503 for a second at midnight; the retry waits for it. Number ' || n, 3, 2,
        (n % 10 = 0)::int, now() - n * interval '1 second', now(), now()
      FROM generate_series(1, {rows}) n
    """,
    """
    INSERT INTO graph_worker (id, tenant_id, public_id, thread_id, task, state, session_public_id, report, report_head,
        report_tail, report_size, report_redactions, last_inbox_seq, by, created_at)
      SELECT uuidv7(), '{tenant}', 'wkr_' || substr(graph_step_id(), 5), t.id, 'Look why', 'done', '', 'It was so.', '',
        '', 10, 0, 0, 'bench', now() FROM graph_thread t WHERE t.worker_count = 1
    """,
    """
    INSERT INTO graph_owner (thread_id, worker_id, tenant_id, pass_through, since)
      SELECT w.thread_id, w.id, '{tenant}', false, now() FROM graph_worker w
    """,
    """
    INSERT INTO graph_link (id, tenant_id, from_thread_id, to_thread_id, to_key, kind, made_by, because_of, made_at)
      SELECT uuidv7(), '{tenant}', a.id, b.id, '', 'mentions', 'rule:number', '', now()
      FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM graph_thread) a
      JOIN (SELECT id, row_number() OVER (ORDER BY id) AS n FROM graph_thread) b ON b.n = a.n + 1
      WHERE a.n % 20 = 0
    """,
    """
    INSERT INTO graph_thread (id, tenant_id, public_id, key, title, state, summary, last_seq, trigger_count,
        worker_count, created_at, last_at, active_at)
      SELECT uuidv7(), '{tenant}', '{deep}', 'ci:nightly', 'Every run of the night', 'open', '', {depth}, {depth}, 0,
        now(), now(), now()
    """,
    """
    INSERT INTO graph_step (thread_id, seq, tenant_id, public_id, kind, trigger_public_id, worker_public_id,
        other_public_id, summary, at)
      SELECT t.id, n, '{tenant}', made, 'trigger', 'trg_' || substr(made, 5), '', '',
        'The nightly run ' || n || ' failed in tests/test_totals.py: rounding half even', now()
      FROM (SELECT n, graph_step_id() AS made FROM generate_series(1, {depth}) n) s
      CROSS JOIN (SELECT id FROM graph_thread WHERE public_id = '{deep}') t
    """,
)


def fill(server: Any, dbname: str, *, rows: int, depth: int) -> tuple[str, list[str]]:
    """Fill the team called `bench`; gives its key in the tables and ids of threads from all over."""
    with server.superuser(dbname) as connection:
        connection.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        tenant = str(connection.execute("SELECT id FROM tenants_tenant WHERE slug = 'bench'").fetchone()[0])
        for statement in FILL:
            connection.execute(statement.format(tenant=tenant, rows=rows, depth=depth, deep=DEEP))
        connection.execute("VACUUM ANALYZE")
        sample = "SELECT public_id FROM graph_thread WHERE key LIKE 'github:%' ORDER BY md5(public_id) LIMIT 5000"
        return tenant, [row[0] for row in connection.execute(sample).fetchall()]
