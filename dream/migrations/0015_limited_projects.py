"""What a dream read and changed is seen by who sees the session and the note."""

from django.db import migrations

from memory.tenants.rls import follows, limit, of_project

OF_SESSION = follows("session_open(session_id)")


class Migration(migrations.Migration):
    dependencies = [("dream", "0007_gardener"), ("notes", "0015_limited_projects")]

    operations = [
        limit("dream_window", OF_SESSION),
        limit("dream_change", follows("(proposal_id IS NULL OR proposal_open(proposal_id))", "path_open(path)")),
        limit("dream_watermark", OF_SESSION),
        limit("dream_quarantined", OF_SESSION),
        limit("dream_sessiongist", OF_SESSION),
        limit("dream_digest", of_project()),
        limit("dream_folder", follows("path_open(path)")),
    ]
