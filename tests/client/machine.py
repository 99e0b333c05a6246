"""A developer's machine with its own home, on which the hook client runs as harnesses run it."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory.hooks import client

SCRIPT = Path(client.__file__)
SAMPLES = Path(__file__).parents[1] / "data" / "harness"
KEY = "tm_live_" + "a1" * 23


class Machine:
    """A home folder, what the client keeps there, and calls of the client."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.config = home / ".config" / "team-memory"
        self.state = home / ".local" / "state" / "team-memory"
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TMPDIR": str(home / "tmp"), "LANG": "C"}
        (home / "tmp").mkdir(exist_ok=True)

    def connect(self, url: str, key: str = KEY) -> "Machine":
        """Address and key in the user's file, as install leaves them."""
        self.config.mkdir(parents=True, exist_ok=True)
        path = self.config / "credentials.json"
        path.write_text(json.dumps({"default": {"url": url, "key": key}}))
        path.chmod(0o600)
        return self

    def run(self, *arguments: str, stdin: bytes = b"", **more: Any) -> "subprocess.CompletedProcess[bytes]":
        command = [sys.executable, "-I", "-S", str(SCRIPT), *arguments]
        environment = {**self.environment, **more.pop("env", {})}
        # The limit is only there to end a test that hangs.
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, timeout=60, **more)

    def hook(self, name: str, event: str, payload: Any, **more: Any) -> Any:
        """What the client prints for one hook call: a JSON object, or None for nothing."""
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        done = self.run("--client", name, "--event", event, stdin=raw, **more)
        assert (done.returncode, done.stderr) == (0, b""), done
        if not done.stdout:
            return None
        said = json.loads(done.stdout.decode("ascii"))
        assert isinstance(said, dict)
        return said

    def spools(self) -> list[Path]:
        return sorted(path for path in (self.state / "spool").glob("*") if path.is_dir())

    def waiting(self) -> list[dict[str, Any]]:
        """The events in the spool, in their order."""
        lines = []
        for spool in self.spools():
            for segment in sorted(spool.glob("[0-9]*.ndjson")):
                lines += [json.loads(line) for line in segment.read_bytes().splitlines() if line.strip()]
        return lines

    def flusher(self) -> int:
        """The process that holds the flush lock; 0 where there is none."""
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            inode = int(fields[5].rpartition(":")[2])
            if any((spool / "flush.lock").stat().st_ino == inode for spool in self.spools()):
                return int(fields[4])
        return 0

    def wake(self) -> None:
        """Spare a test the pause of a flusher that waits for its server."""
        for spool in self.spools():
            (spool / "wake").touch()

    def leave(self) -> None:
        """Flushers end when their folder is gone."""
        for folder in (self.state, self.home / "tmp"):
            shutil.rmtree(folder, ignore_errors=True)


def until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain until {what}")


def tool_call(session: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "session_id": session,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{session}_{number}",
        "tool_input": {"command": f"echo {number}"},
        "tool_response": {"stdout": str(number)},
        "cwd": "/nowhere/shop",
        **more,
    }
