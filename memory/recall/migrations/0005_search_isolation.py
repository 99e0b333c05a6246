from django.db import migrations

from memory.tenants.rls import ends_with_tenant, function, owned, protect, tie

# One index for the sweep and the search, which both ask by tenant; a writer pays for one, too.
MARK_KEY = """
ALTER TABLE recall_mark DROP CONSTRAINT recall_mark_pkey;
ALTER TABLE recall_mark ADD CONSTRAINT recall_mark_pkey PRIMARY KEY (tenant_id, id);
"""
MARK_KEY_BACK = """
ALTER TABLE recall_mark DROP CONSTRAINT recall_mark_pkey;
ALTER TABLE recall_mark ADD CONSTRAINT recall_mark_pkey PRIMARY KEY (id);
"""

# Rows of their own, never one row a team: writers must not wait for each other.
MARK = """
CREATE FUNCTION mark_for_search() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
  INSERT INTO recall_mark (tenant_id, kind, target) VALUES (NEW.tenant_id, TG_ARGV[0], NEW.id);
  RETURN NULL;
END $$;
-- What comes in batches is marked once a statement: row by row took a fifth of a trigger's time.
CREATE FUNCTION mark_all_for_search() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
  INSERT INTO recall_mark (tenant_id, kind, target) SELECT n.tenant_id, TG_ARGV[0], n.id FROM added n;
  RETURN NULL;
END $$;
CREATE FUNCTION forget_for_search() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
  DELETE FROM recall_entry e WHERE e.target = OLD.id AND e.kind = TG_ARGV[0] AND e.tenant_id = OLD.tenant_id;
  RETURN NULL;
END $$;
"""
MARK_BACK = "".join(f"DROP FUNCTION {name}();" for name in ("mark_for_search", "mark_all_for_search", "forget_for_search"))
MARKED = {
    "thread": ("graph_thread", "key title summary deleted_at"),
    "trigger": ("graph_trigger", "summary external_id thread_id deleted_at"),
    "worker": ("graph_worker", "task report report_size report_sha256 thread_id session_public_id deleted_at"),
    "note": ("notes_note", "current_id path member_id project_id deleted_at"),
}


def marking() -> str:
    steps = []
    for kind, (table, columns) in MARKED.items():
        old, new = (", ".join(f"{side}.{column}" for column in columns.split()) for side in ("OLD", "NEW"))
        steps.append(f"""
        CREATE TRIGGER made_for_search AFTER INSERT ON {table}
          REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mark_all_for_search('{kind}');
        CREATE TRIGGER changed_for_search AFTER UPDATE ON {table}
          FOR EACH ROW WHEN (({old}) IS DISTINCT FROM ({new})) EXECUTE FUNCTION mark_for_search('{kind}');
        CREATE TRIGGER gone_for_search AFTER DELETE ON {table}
          FOR EACH ROW EXECUTE FUNCTION forget_for_search('{kind}');
        INSERT INTO recall_mark (tenant_id, kind, target) SELECT tenant_id, '{kind}', id FROM {table};
        """)
    return "".join(steps) + """
        CREATE TRIGGER made_for_search AFTER INSERT ON events_event
          FOR EACH ROW WHEN (NEW.kind = 'prompt') EXECUTE FUNCTION mark_for_search('event');
        CREATE TRIGGER gone_for_search AFTER DELETE ON events_event
          FOR EACH ROW WHEN (OLD.kind = 'prompt') EXECUTE FUNCTION forget_for_search('event');
        INSERT INTO recall_mark (tenant_id, kind, target) SELECT tenant_id, 'event', id FROM events_event WHERE kind = 'prompt';
        """


UNMARKING = "".join(
    f"DROP TRIGGER made_for_search ON {table}; DROP TRIGGER changed_for_search ON {table};"
    f" DROP TRIGGER gone_for_search ON {table};"
    for table, _ in MARKED.values()
) + "DROP TRIGGER made_for_search ON events_event; DROP TRIGGER gone_for_search ON events_event;"

# Lengths of vectors that models in use have. Another length is searched exactly, without an index.
LENGTHS = (256, 384, 512, 768, 1024, 1536, 3072)
INDEXES = "".join(
    f"CREATE INDEX recall_vector_near_{length} ON recall_vector USING hnsw"
    f" ((embedding::halfvec({length})) halfvec_ip_ops) WHERE dimensions = {length};"
    for length in LENGTHS
)
NO_INDEXES = "".join(f"DROP INDEX recall_vector_near_{length};" for length in LENGTHS)

# What of a team is in reach, as text for EXECUTE: only what limits anything stands in it, so that the planner sees
# the real values and takes the index that fits. Every one begins with the tenant of the running transaction.
REACH = """
CREATE FUNCTION search_reach(kinds text[], readers uuid[], places uuid[], in_thread uuid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
  SELECT format('x.tenant_id = %L', coalesce(nullif(current_setting('app.tenant_id', true), ''),
                                             '00000000-0000-0000-0000-000000000000')::uuid)
    || format(' AND x.kind = ANY (%L::text[])', kinds)
    || CASE WHEN readers IS NULL THEN '' ELSE format(' AND x.reader = ANY (%L::uuid[])', readers) END
    || CASE WHEN places IS NULL THEN '' ELSE format(' AND x.place = ANY (%L::uuid[])', places) END
    || CASE WHEN in_thread IS NULL THEN '' ELSE format(' AND x.thread = %L::uuid', in_thread) END
$$;
"""

WORDS = """
CREATE FUNCTION search_words(kinds text[], readers uuid[], places uuid[], in_thread uuid,
                             asked bigint[], is_all boolean, needle text, most integer)
RETURNS TABLE (entry_id uuid, kind text, target uuid, score double precision, share double precision,
               found bigint[], is_exact boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
  reach text := search_reach(kinds, readers, places, in_thread);
  most_read constant integer := 2000;
  whole double precision := greatest((SELECT reltuples FROM pg_class WHERE oid = 'recall_entry'::regclass), 0);
  known bigint[];
  often double precision[];
  rare bigint[];
  common bigint[];
  total double precision;
  is_small boolean;
  step integer;
  read_rows bigint;
  condition text;
BEGIN
  EXECUTE 'SELECT count(*) FROM (SELECT FROM recall_entry x WHERE ' || search_reach(kinds, NULL, places, in_thread)
    || ' LIMIT 2001) r' INTO total;
  IF total = 0 OR cardinality(asked) = 0 THEN RETURN; END IF;
  is_small := total <= most_read;
  IF NOT is_small THEN
    -- As many as the statistics say that this team has: weights must not tell how much others have.
    total := greatest(total, (
      SELECT u.share * whole FROM pg_stats s, unnest(s.most_common_vals::text::uuid[], s.most_common_freqs) u(team, share)
      WHERE s.schemaname = 'public' AND s.tablename = 'recall_entry' AND s.attname = 'tenant_id'
        AND u.team = nullif(current_setting('app.tenant_id', true), '')::uuid));
  END IF;
  -- A word that stands in most rows says little and costs much. PostgreSQL's own statistics of the column know them;
  -- a few rows are read and counted, whatever the statistics of the day say.
  WITH common AS (
    SELECT u.word, u.share * whole AS rows
    FROM pg_stats s, unnest(s.most_common_elems::text::bigint[],
                            s.most_common_elem_freqs[1:cardinality(s.most_common_elems)]) u(word, share)
    WHERE s.schemaname = 'public' AND s.tablename = 'recall_entry' AND s.attname = 'words' AND u.word = ANY (asked)
      AND NOT is_small
  ), ordered AS (
    SELECT a.word, coalesce(c.rows, 0) AS rows, sum(coalesce(c.rows, 0)) OVER (ORDER BY coalesce(c.rows, 0), a.word) AS so_far
    FROM unnest(asked) a(word) LEFT JOIN common c ON c.word = a.word
  )
  SELECT array_agg(o.word ORDER BY o.so_far, o.word), array_agg(o.rows ORDER BY o.so_far, o.word),
         array_agg(o.word) FILTER (WHERE o.so_far <= most_read),
         array_agg(o.word ORDER BY o.so_far, o.word) FILTER (WHERE o.so_far > most_read)
    INTO known, often, rare, common FROM ordered o;
  -- Rows that have rare words of the question; where there are none, rows that have several of its common ones.
  step := CASE WHEN rare IS NOT NULL THEN 5 ELSE least(cardinality(common), 4) END;
  LOOP
    condition := CASE WHEN is_all THEN format('x.words @> %L::bigint[]', asked)
                      WHEN step = 5 THEN format('x.words && %L::bigint[]', rare)
                      ELSE format('x.words @> %L::bigint[]', common[1:step]) END;
    RETURN QUERY EXECUTE format($q$
      WITH near AS MATERIALIZED (
        SELECT x.id, x.kind::text AS kind, x.target, x.size, x.words, x.head
        FROM recall_entry x WHERE %2$s AND %3$s LIMIT %7$s
      ), word AS (
        -- How many rows have it: counted among these where all of them are here, else as the statistics say.
        SELECT w.word, CASE WHEN w.often > 0 THEN w.often ELSE count(n.id)::double precision END AS rows
        FROM unnest(%1$L::bigint[], %8$L::double precision[]) w(word, often)
        LEFT JOIN near n ON w.often = 0 AND w.word = ANY (n.words) GROUP BY w.word, w.often
      ), weight AS MATERIALIZED (
        SELECT word, ln(1 + (greatest(%4$s, rows) - rows + 0.5) / (rows + 0.5)) AS worth FROM word WHERE rows > 0
      ), average AS MATERIALIZED (
        SELECT greatest(avg(size), 1) AS size, greatest((SELECT sum(worth) FROM weight), 0.000001) AS every FROM near
      ), scored AS (
        SELECT n.id, n.kind, n.target, b.found, b.has / a.every AS share,
               b.has * 2.2 / (1 + 1.2 * (0.25 + 0.75 * n.size / a.size)) + b.heads AS score
        FROM near n CROSS JOIN average a CROSS JOIN LATERAL (
          SELECT sum(w.worth) AS has, array_agg(w.word ORDER BY w.worth DESC) AS found,
                 coalesce(sum(w.worth) FILTER (WHERE w.word = ANY (n.head)), 0) AS heads
          FROM weight w WHERE w.word = ANY (n.words)) b
        -- Of equals the newer: keys of things grow with time.
        WHERE b.has IS NOT NULL ORDER BY score DESC, n.target DESC LIMIT %5$s
      )
      SELECT s.id, s.kind, s.target, s.score::double precision, s.share::double precision, s.found,
             %6$L <> '' AND strpos(e.folded, %6$L) > 0
      FROM scored s JOIN recall_entry e ON e.id = s.id ORDER BY s.score DESC, s.target DESC
    $q$, known, reach, condition, total, most, needle, most_read, often);
    GET DIAGNOSTICS read_rows = ROW_COUNT;
    step := least(step - 1, coalesce(cardinality(common), 0));
    EXIT WHEN read_rows > 0 OR is_all OR step < 1;
  END LOOP;
END $$;
"""

# Signs ("=>") and parts of words have no index: the newest rows are read.
TEXT = """
CREATE FUNCTION search_text(kinds text[], readers uuid[], places uuid[], in_thread uuid, needle text, most integer)
RETURNS TABLE (entry_id uuid, kind text, target uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  RETURN QUERY EXECUTE 'SELECT r.id, r.kind, r.target FROM (SELECT x.id, x.kind::text AS kind, x.target, x.folded'
    || ' FROM recall_entry x WHERE ' || search_reach(kinds, readers, places, in_thread)
    || ' ORDER BY x.id DESC LIMIT 10000) r WHERE strpos(r.folded, $1) > 0 ORDER BY r.id DESC LIMIT $2'
    USING needle, most;
END $$;
"""

MEANING = """
CREATE FUNCTION search_meaning(kinds text[], readers uuid[], places uuid[], in_thread uuid,
                               maker text, asked text, length integer, most integer)
RETURNS TABLE (entry_id uuid, kind text, target uuid, likeness double precision, is_by_index boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  reach text := search_reach(kinds, readers, places, in_thread)
    || format(' AND x.made_with = %L AND x.dimensions = %s', maker, length);
  whole real := greatest((SELECT reltuples FROM pg_class WHERE oid = 'recall_vector'::regclass), 0);
  -- Measured on 500,000 rows of 384 numbers: 25,000 compared one by one take about as long as the index, which finds
  -- 93 of 100 of them.
  most_exact integer := greatest(30000, least(whole / 100, 100000))::integer;
  has_index boolean := to_regclass('public.recall_vector_near_' || length) IS NOT NULL;
  near text := format('x.embedding::halfvec(%s) <#> %L::halfvec(%s)', length, asked, length);
  in_reach bigint;
BEGIN
  -- Only what the index itself knows, or counting would cost as much as comparing.
  EXECUTE 'SELECT count(*) FROM (SELECT FROM recall_vector x WHERE ' || search_reach(kinds, NULL, places, in_thread)
    || format(' LIMIT %s) r', most_exact + 1) INTO in_reach;
  IF has_index AND in_reach > most_exact THEN
    -- Plain HNSW looks at 40 rows and then drops those out of reach: 1 to 4 of 10 were left.
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '200', true),
            set_config('hnsw.max_scan_tuples', '100000', true), set_config('enable_sort', 'off', true);
  ELSE
    near := '(' || near || ') + 0';  -- a sum has no index: every row in reach is compared
    has_index := false;
  END IF;
  RETURN QUERY EXECUTE format('SELECT r.entry_id, r.kind, e.target, r.likeness, %L::boolean FROM ('
    || 'SELECT x.entry_id, x.kind::text AS kind, -(%s) AS likeness FROM recall_vector x WHERE %s ORDER BY %s LIMIT %s'
    || ') r JOIN recall_entry e ON e.id = r.entry_id', has_index, near, reach, near, most);
  PERFORM set_config('enable_sort', 'on', true);
END $$;
"""

SPELLING = """
CREATE FUNCTION search_spelling(typed text[], enough real)
RETURNS TABLE (asked text, word text, likeness real)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE owner uuid := coalesce(nullif(current_setting('app.tenant_id', true), ''),
                               '00000000-0000-0000-0000-000000000000')::uuid;
BEGIN
  PERFORM set_config('pg_trgm.similarity_threshold', enough::text, true);
  RETURN QUERY SELECT t.one, n.word::text, n.likeness FROM unnest(typed) t(one), LATERAL (
    SELECT w.word, similarity(w.word, t.one) AS likeness FROM recall_word w
    WHERE w.word % t.one AND w.tenant_id = owner ORDER BY 2 DESC, 1 LIMIT 3) n;
END $$;
"""

DUE = """
CREATE FUNCTION search_due(maker text) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE made integer;
BEGIN
  -- Vectors of another maker stand before or after those of this one in the index: no row of this maker is read.
  INSERT INTO tenants_due (id, tenant_id, task, argument, due_at, attempts, owner)
  SELECT gen_random_uuid(), t.id, 'search', '', clock_timestamp(), 0, ''
  FROM tenants_tenant t
  WHERE t.suspended_at IS NULL
    AND (EXISTS (SELECT FROM recall_mark m WHERE m.tenant_id = t.id)
      OR maker <> '' AND (EXISTS (SELECT FROM recall_vector v WHERE v.tenant_id = t.id AND v.made_with < maker)
                       OR EXISTS (SELECT FROM recall_vector v WHERE v.tenant_id = t.id AND v.made_with > maker)))
  ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  RETURN made;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("recall", "0004_search"),
        ("graph", "0004_chain_isolation"),
        ("events", "0003_record"),
        ("notes", "0002_isolation"),
    ]

    operations = [
        migrations.RunSQL(MARK_KEY, MARK_KEY_BACK),
        protect("recall_mark"),
        ends_with_tenant("recall_mark"),
        migrations.RunSQL(
            "ALTER TABLE recall_word ADD CONSTRAINT recall_word_tenant FOREIGN KEY (tenant_id)"
            " REFERENCES tenants_tenant (id) ON DELETE CASCADE",
            "ALTER TABLE recall_word DROP CONSTRAINT recall_word_tenant",
        ),
        protect("recall_word"),
        *owned("recall_entry"),
        *owned("recall_vector"),
        tie("recall_vector", "entry_id", "recall_entry"),
        migrations.RunSQL(INDEXES, NO_INDEXES),
        migrations.RunSQL(MARK, MARK_BACK),
        migrations.RunSQL(marking(), UNMARKING),
        function(REACH, drop="search_reach(text[], uuid[], uuid[], uuid)"),
        function(WORDS, drop="search_words(text[], uuid[], uuid[], uuid, bigint[], boolean, text, integer)"),
        function(TEXT, drop="search_text(text[], uuid[], uuid[], uuid, text, integer)"),
        function(MEANING, drop="search_meaning(text[], uuid[], uuid[], uuid, text, text, integer, integer)"),
        function(SPELLING, drop="search_spelling(text[], real)"),
        function(DUE, drop="search_due(text)"),
    ]
