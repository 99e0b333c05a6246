"""A scripted model provider on loopback: speaks OpenAI chat completions and Anthropic messages over real HTTP."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loopback import serving


@dataclass(frozen=True)
class Reply:
    """What the provider does with one call."""

    text: str = ""
    status: int = 200
    finish: str = "stop"
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False


def cut_off(text: str) -> Reply:
    return Reply(text, finish="length")


def refusing(text: str = "") -> Reply:
    return Reply(text, finish="content_filter")


def too_many(retry_after: int = 7) -> Reply:
    return Reply("slow down", status=429, headers={"Retry-After": str(retry_after)})


def slow(seconds: float) -> Reply:
    return Reply('{"notes": []}', delay=seconds)


Script = Sequence[Reply | str] | Callable[[str], Reply | str]


class Provider:
    """The calls it got, and its script: one reply a call (the last one again), or a function of the prompt."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[dict[str, Any]] = []
        self.address = ""

    def reply(self, body: dict[str, Any]) -> Reply:
        self.calls.append(body)
        if callable(self.script):
            said = self.script(prompt_of(body))
        else:
            said = self.script[min(len(self.calls), len(self.script)) - 1]
        return Reply(said) if isinstance(said, str) else said

    @property
    def prompts(self) -> list[str]:
        return [prompt_of(body) for body in self.calls]


def prompt_of(body: dict[str, Any]) -> str:
    """All text of a call, instructions first."""
    system = body.get("system", "")
    parts = [system if isinstance(system, str) else "".join(part["text"] for part in system)]
    for message in body["messages"]:
        content = message["content"]
        parts.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
    return "\n".join(parts)


def _openai(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {
            "prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    }  # fmt: skip


def _anthropic(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    finish = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[reply.finish]
    usage = {"input_tokens": 600, "output_tokens": 50, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 0}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None,
        "content": [{"type": "text", "text": reply.text}] if reply.text else [], "stop_reason": finish, "usage": usage,
    }  # fmt: skip


@contextmanager
def provider(script: Script, *, host: str = "127.0.0.1") -> Iterator[Provider]:
    """A provider that runs while the block does; `.address` is its base URL."""
    served = Provider(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = served.reply(body)
            time.sleep(reply.delay)
            if reply.hang_up:
                self.connection.close()
                return
            if reply.status == 200:
                shape = _anthropic if self.path.endswith("/messages") else _openai
                answer: dict[str, Any] = shape(reply, body)
            else:
                answer = {"type": "error", "error": {"type": "scripted_error", "message": reply.text}}
            raw = json.dumps(answer).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                pass  # the caller did not wait

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    served.address = f"http://{host}:{server.server_address[1]}"
    with serving(server):
        yield served
