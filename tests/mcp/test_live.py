"""The SDK's own client against a real server, in both eras, and over several processes."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from tests import database
from tests.conftest import _await, free_port

# The runner needs a newer Node.js than many machines have; npm brings one.
RUNNER = ("-p", "node@22", "-p", "@modelcontextprotocol/conformance@0.1.16", "conformance", "server")
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)


@contextmanager
def served(workers: int):
    """The address of granian with several web processes, as `start` runs them."""
    address = f"http://127.0.0.1:{free_port()}"
    command = f"{sys.executable} -m granian --interface wsgi --port {address.rsplit(':', 1)[1]} --no-ws --http 1"
    command += f" --workers {workers} --blocking-threads 24 --workers-kill-timeout 5 memory.wsgi:application"
    environment = {**os.environ, "TEAM_MEMORY_PUBLIC_URL": address}
    server = subprocess.Popen(command.split(), env=environment, cwd=database.ROOT, stdout=subprocess.DEVNULL)
    try:
        for attempt in range(5):  # three processes that start at once on a small machine take their time
            with suppress(RuntimeError if attempt < 4 else ()):
                _await(address + "/healthz", server)
                break
        yield address
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            # Its workers tie their lives to it.
            server.kill()
            server.wait()


async def _calls(address: str, secret: str, mode: str, many: int) -> int:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
    ):
        listed = await client.list_tools()
        assert len(listed.tools) == 14
        answers = await asyncio.gather(*(client.call_tool("thread_index", {}) for _ in range(many)))
        refused = await client.call_tool("recall", {"id": "thr_none"})
        assert refused.is_error
        return sum(not one.is_error for one in answers)


def calls(address: str, secret: str, mode: str, many: int) -> int:
    """How many of the calls were answered."""
    # In a thread of its own: a browser test of the same process leaves its event loop in this one.
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, _calls(address, secret, mode, many)).result()


def status(address: str, secret: str) -> tuple[int, str | None]:
    sent = urllib.request.Request(
        f"{address}/mcp", b"{}", {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(sent, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["WWW-Authenticate"]


def test_the_sdks_client_speaks_with_a_real_server(live, agent) -> None:
    for mode in ("legacy", "auto", "2026-07-28"):
        assert calls(live, agent.secret, mode, 3) == 3
    # Read lazily, every answer would go out as 200.
    spoilt = agent.secret[:-1] + ("y" if agent.secret.endswith("x") else "x")
    assert status(live, spoilt) == (401, 'Bearer realm="team-memory"')


@pytest.mark.slow
def test_three_processes_answer_two_hundred_calls(agent) -> None:
    with served(3) as address:
        assert sum(calls(address, agent.secret, mode, 100) for mode in ("legacy", "2026-07-28")) == 200


def _npx(*arguments: str) -> str:
    if shutil.which("npx") is None:
        pytest.fail("npx is missing: install Node.js 20 or newer, and let npm reach its registry.")
    run = subprocess.run(["npx", "--yes", *arguments], capture_output=True, text=True, timeout=300)
    return run.stdout + run.stderr


@pytest.mark.slow
def test_the_inspector_lists_and_calls_tools(agent) -> None:
    with served(3) as address:
        key = f"Authorization: Bearer {agent.secret}"
        common = (INSPECTOR, "--cli", f"{address}/mcp", "--transport", "http", "--header", key, "--method")
        assert '"cache_lookup"' in _npx(*common, "tools/list")
        assert '"left_out"' in _npx(*common, "tools/call", "--tool-name", "thread_index")


@pytest.mark.slow
def test_it_conforms(agent) -> None:
    """The runner sends no key: a small proxy on loopback adds it."""
    from tests.mcp.keyed import keyed

    with served(1) as address, keyed(address, agent.secret) as proxied:
        for scenario in SCENARIOS:
            told = _npx(*RUNNER, "--url", f"{proxied}/mcp", "--scenario", scenario)
            print(scenario, told[-800:])
            passed = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", told)
            assert passed and passed[3] == "0" and passed[1] == passed[2], told
