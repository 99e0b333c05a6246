"""Z3 proves from the policies as they lie in the database that no team reads or writes another's rows.

It needs the dependency group `proof`; TEAM_MEMORY_PGRLS names the program, if it is not beside this interpreter.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import database

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("committed")]
MODES = ("anon", "cross-tenant", "write")
# By default it takes no `id` for a team's; the table of teams is bound by it.
CONFIG = '[lint.rules.SEC021]\nidentity_columns = ["tenant_id", "id"]\n'


def verified(mode: str, folder: Path) -> tuple[int, dict[str, str]]:
    """The exit status of `pgrls verify --strict`, and its verdict on each table."""
    program = os.environ.get("TEAM_MEMORY_PGRLS", str(Path(sys.executable).with_name("pgrls")))
    assert Path(program).exists(), "install the group proof (pgrls, z3-solver), or name it by TEAM_MEMORY_PGRLS"
    config = folder / "pgrls.toml"
    config.write_text(CONFIG)
    address = database.url(database.SERVER_OF_TESTS.dsn("migrator", database.NAME), database.NAME)
    done = subprocess.run(
        [program, "verify", "--strict", "--schemas=public", f"--config={config}", f"--mode={mode}", "--format=json"],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": address},
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    tables: list[dict[str, Any]] = json.loads(done.stdout)["tables"]
    return done.returncode, {one["table"].removeprefix("public."): one["verdict"] for one in tables}


def owned() -> set[str]:
    """Each table with a team's rows, found by its column: one without row level security is none to the prover."""
    with database.migrator() as everything:
        rows = everything.execute(
            """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""
        ).fetchall()
    return {str(name) for (name,) in rows} | {"tenants_tenant"}


@pytest.mark.parametrize("mode", MODES)
def test_every_table_of_a_team_is_proven_isolated(mode: str, tmp_path: Path) -> None:
    status, verdicts = verified(mode, tmp_path)
    assert (status, set(verdicts.values())) == (0, {"isolated"})
    assert owned() <= set(verdicts)


@pytest.mark.parametrize("mode", ["cross-tenant", "write"])
def test_a_hole_is_not_proven(mode: str, tmp_path: Path) -> None:
    with database.migrator() as owner:
        owner.execute("CREATE POLICY hole ON notes_note FOR ALL TO tm_runtime USING (true) WITH CHECK (true)")
        try:
            status, verdicts = verified(mode, tmp_path)
        finally:
            owner.execute("DROP POLICY hole ON notes_note")
    assert status == 1 and [name for name, verdict in verdicts.items() if verdict != "isolated"] == ["notes_note"]
