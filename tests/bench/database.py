"""A database for a bench: its own embedded server in a folder that goes away, migrated, and Django over it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memory.management.postgres import Embedded  # noqa: E402


@contextmanager
def database(**settings: str) -> Iterator[Embedded]:
    """The running server; Django is set up as the runtime role once the block begins."""
    with tempfile.TemporaryDirectory(prefix="tm-bench-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        os.environ["TEAM_MEMORY_DATA"] = str(home)
        os.environ["TEAM_MEMORY_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "memory.settings"
        os.environ.pop("DATABASE_URL", None)
        server = Embedded(home, settings={"fsync": "off", "shared_buffers": "1GB", **settings})
        server.start()
        try:
            environment = {**os.environ, "TEAM_MEMORY_DB_ROLE": "migrator"}
            command = [sys.executable, "-m", "django", "migrate", "-v0", "--skip-checks"]
            subprocess.run(command, check=True, env=environment, cwd=ROOT)
            import django

            django.setup()
            yield server
        finally:
            server.stop()


def percentile(seconds: list[float], share: float) -> float:
    """In milliseconds."""
    return sorted(seconds)[min(int(len(seconds) * share), len(seconds) - 1)] * 1e3
