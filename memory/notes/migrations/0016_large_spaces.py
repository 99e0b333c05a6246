"""What the pages of a hundred thousand notes are read by: the tree, the deleted ones, the kinds, and letters."""

from django.db import migrations

from memory.tenants.rls import function

# In the order of bytes, whatever the database's own is: a folder is a range of it. All that the tree counts by, and
# what row level security asks, stands in the index. The team's space has one of its own: behind a column that is
# null PostgreSQL takes no index to be in order.
TREE = """
CREATE INDEX notes_note_tree ON notes_note (tenant_id, path_key COLLATE "C") INCLUDE (path, project_id)
  WHERE member_id IS NULL AND deleted_at IS NULL AND current_id IS NOT NULL;
CREATE INDEX notes_note_own_tree ON notes_note (member_id, path_key COLLATE "C") INCLUDE (path, project_id, tenant_id)
  WHERE member_id IS NOT NULL AND deleted_at IS NULL AND current_id IS NOT NULL;
CREATE INDEX notes_note_gone ON notes_note (tenant_id, deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX notes_revision_kinds ON notes_revision (tenant_id, kind) WHERE kind <> '';
"""
NO_TREE = (
    "DROP INDEX notes_note_tree; DROP INDEX notes_note_own_tree; DROP INDEX notes_note_gone;"
    " DROP INDEX notes_revision_kinds"
)
LETTERS = """
CREATE INDEX notes_revision_letters ON notes_revision
  USING gin (upper(title || chr(10) || description || chr(10) || text) gin_trgm_ops);
CREATE INDEX notes_note_letters ON notes_note USING gin (upper(path) gin_trgm_ops);
"""
# The longest word, which stands first, decides where is looked, all of them what is found. As text for EXECUTE: the
# planner sees the letters, and takes the index unless most notes hold them, where it soon has as many as are asked for.
# What is hidden beside other members' notes (limited projects) is not seen by who then reads the notes by these ids.
HOLDING = """
CREATE FUNCTION notes_holding(patterns text[], reader uuid, most integer) RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  said constant text := '(upper(r.title || chr(10) || r.description || chr(10) || r.text))';
  first text := quote_literal(upper(patterns[1]));
  rows text := 'SELECT n.id FROM notes_note n JOIN notes_revision r ON r.id = n.current_id WHERE n.tenant_id = '
    || quote_literal(coalesce(nullif(current_setting('app.tenant_id', true), ''),
                              '00000000-0000-0000-0000-000000000000')::uuid)
    || ' AND n.deleted_at IS NULL AND (n.member_id IS NULL'
    || CASE WHEN reader IS NULL THEN '' ELSE ' OR n.member_id = ' || quote_literal(reader) END
    || ') AND (upper(n.path) || chr(10) || ' || said || ') LIKE ALL ('
    || quote_literal((SELECT array_agg(upper(one)) FROM unnest(patterns) one)) || '::text[])';
BEGIN
  RETURN QUERY EXECUTE rows || ' AND ' || said || ' LIKE ' || first || ' LIMIT ' || most;
  RETURN QUERY EXECUTE rows || ' AND upper(n.path) LIKE ' || first || ' AND NOT ' || said || ' LIKE ' || first
    || ' LIMIT ' || most;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("notes", "0015_limited_projects")]

    operations = [
        migrations.RunSQL(TREE, NO_TREE),
        migrations.RunSQL(LETTERS, "DROP INDEX notes_revision_letters; DROP INDEX notes_note_letters"),
        function(HOLDING, drop="notes_holding(text[], uuid, integer)"),
    ]
