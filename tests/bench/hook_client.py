"""What one hook call costs the agent: `python tests/bench/hook_client.py [CALLS]`.

Installs the client into a home of its own and calls it as a harness does, against a server that answers at once, that
is not there, that answers 500, and that says nothing for 30 s.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "memory" / "hooks" / "client.py"
CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
START = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/nowhere"}
# What agents read most: code, with words in it that could name a secret.
CODE = "".join(path.read_text() for path in sorted(SCRIPT.parents[1].glob("tenants/*.py")))[:50_000]
READ = {"tool_name": "Read", "tool_response": {"text": CODE}}
TOOL = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}


class Handler(BaseHTTPRequestHandler):
    mode = "well"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Handler.mode == "silent":
            time.sleep(30)
        lines = body.count(b"\n") if self.path.endswith("/batch") else 0
        said = json.dumps({"accepted": lines, "repeated": 0, "refused": []} if lines else {}).encode()
        self.send_response(500 if Handler.mode == "broken" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Team-Memory-Event", "evt_1")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        return


def timed(home: Path, name: str, event: str, payload: dict[str, Any], calls: int) -> None:
    hook = home / ".config" / "team-memory" / "hook.py"
    command = [sys.executable, "-I", "-S", str(hook), "--client", "claude_code", "--event", event]
    environment = {"HOME": str(home), "TMPDIR": str(home)}
    took = []
    for number in range(calls):
        raw = json.dumps({**payload, "tool_use_id": f"t{name}{number}"} if event == "PostToolUse" else payload).encode()
        began = time.perf_counter()
        done = subprocess.run(command, input=raw, env=environment, capture_output=True)
        took.append((time.perf_counter() - began) * 1000)
        assert (done.returncode, done.stderr) == (0, b""), done
    took.sort()
    print(f"{name:<32} p50 {took[len(took) // 2]:7.1f} ms   p95 {took[int(len(took) * 0.95) - 1]:7.1f} ms", flush=True)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        install = ["install", "--client", "claude-code", "--url", url, "--key", "k" * 30, "--yes"]
        environment = {"HOME": folder, "TMPDIR": folder}
        subprocess.run([sys.executable, str(SCRIPT), *install], env=environment, check=True, capture_output=True)
        bare = []
        for _ in range(CALLS):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-S", "-c", "import json"], check=True)
            bare.append((time.perf_counter() - began) * 1000)
        print(f"{'Python alone, importing json':<32} p50 {sorted(bare)[len(bare) // 2]:7.1f} ms", flush=True)
        for mode in ("well", "broken", "silent"):
            Handler.mode = mode
            timed(home, f"PostToolUse, server {mode}", "PostToolUse", TOOL, CALLS)
            if mode == "well":
                timed(home, "PostToolUse with 50 KB of code", "PostToolUse", {**TOOL, **READ}, CALLS)
            timed(home, f"SessionStart, server {mode}", "SessionStart", START, CALLS if mode == "well" else 3)
        server.shutdown()
        server.server_close()
        timed(home, "PostToolUse, no server", "PostToolUse", TOOL, CALLS)
        timed(home, "SessionStart, no server", "SessionStart", START, 3)


if __name__ == "__main__":
    main()
