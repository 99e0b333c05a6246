"""A note is of the project that its row names, and of the one that its path names; what hangs on it follows."""

from django.db import migrations

from memory.tenants.rls import follows, limit, of_project, opening

OF_NOTE = follows("note_open(note_id)")
OF_PROPOSAL = follows("proposal_open(proposal_id)")


class Migration(migrations.Migration):
    dependencies = [("notes", "0006_findings"), ("events", "0030_limited_projects")]

    operations = [
        opening("note_open", "notes_note"),
        opening("revision_open", "notes_revision"),
        opening("proposal_open", "notes_proposal"),
        limit("notes_note", f"{of_project()} AND ({follows('path_open(path_key)')})"),
        limit("notes_revision", OF_NOTE),
        limit("notes_proposal", follows("note_open(note_id)", "path_open(target)")),
        limit(
            "notes_source",
            follows(
                "(proposal_id IS NULL OR proposal_open(proposal_id))",
                "(revision_id IS NULL OR revision_open(revision_id))",
                "event_open(event_id)",
            ),
        ),
        limit("notes_tombstone", OF_NOTE),
        limit("notes_redirect", follows("note_open(note_id)", "path_open(path_key)")),
        limit("notes_rule", follows("path_open(glob)")),
        limit("notes_autosaved", follows("(note_id IS NULL OR note_open(note_id))", "path_open(path)")),
        limit("notes_notereport", OF_NOTE),
        limit("notes_comment", OF_PROPOSAL),
        limit("notes_notice", OF_PROPOSAL),
        limit("notes_finding", follows("note_open(note_id)", "(other_id IS NULL OR note_open(other_id))")),
    ]
