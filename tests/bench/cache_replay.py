"""Real sessions through the cache client: `python tests/bench/cache_replay.py FOLDER`, with a folder per project.

A call's digest comes from a tree rebuilt from the events before it; what it was served is compared with what the log
says the tool returned. Prints hit rate and tokens saved per project; ends with 1 where anything stale was served.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django  # noqa: E402

from tests import database  # noqa: E402

django.setup()

from django.db import connection  # noqa: E402

from cache_admin.client import Cache  # noqa: E402
from tests.cache.replay import replay, sessions_of  # noqa: E402
from tests.conftest import new_agent, new_team, served  # noqa: E402


def main(folder: Path) -> int:
    stale = 0
    _, people = new_team("bench", alice="owner")
    agent = new_agent(people["alice"])
    with served() as address:
        for project in sorted(path for path in folder.iterdir() if path.is_dir()):
            sessions = sessions_of(project)
            root = str(sessions[0][0]["payload"]["cwd"])
            cache = Cache(address, agent.secret, root=root, project=project.name, timeout=20)
            found = replay(sessions, cache)
            counts = found.counts
            print(
                f"{project.name:20} {counts['calls']} calls, {counts['unknown_state']} bypassed (state"
                f" not known), {counts['hit']} hits, {counts['miss']} misses, {counts['not_kept']} not kept;"
                f" hit rate {found.hit_rate:.1%}; {counts['tokens_saved']} of {counts['tokens_whole']} tokens saved;"
                f" {len(found.stale)} stale"
            )
            print(f"  {dict(counts)} {dict(cache.stats)}", *found.stale, sep="\n  ")
            stale += len(found.stale)
    return 1 if stale else 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    finally:
        connection.close()
        database.end()
