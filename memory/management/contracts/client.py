"""One connection to a deployment, and what an answer must be."""

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT: Final = 30.0
# A key's rate limit is not a broken contract: wait as told, but not for ever.
LONGEST_WAIT: Final = 90.0
SHOWN: Final = 300


class Broken(Exception):
    """A contract does not hold. It names the hop: the request, what must come, and what came."""

    def __init__(self, request: str, *, expected: str, got: str) -> None:
        super().__init__(f"{request}: expected {expected}, got {got}")
        self.request = request
        self.expected = expected
        self.got = got


class Unusable(Exception):
    """Nothing can be checked with this address or key; the message says what to do."""


@dataclass(frozen=True)
class Answer:
    """What came back for one request."""

    request: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises Broken."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise self.broken("JSON") from None

    def object(self) -> dict[str, Any]:
        """The body as a JSON object. Raises Broken."""
        said = self.json()
        if not isinstance(said, dict):
            raise self.broken("a JSON object")
        return said

    def shown(self) -> str:
        """Status and the beginning of the body."""
        text = " ".join(self.body[: SHOWN * 4].decode("utf-8", "replace").split())
        return f"{self.status} {text[:SHOWN]}{'…' if len(text) > SHOWN else ''}".strip()

    def broken(self, expected: str, got: str | None = None) -> Broken:
        """The complaint about this answer."""
        return Broken(self.request, expected=expected, got=self.shown() if got is None else got)

    def must(self, *statuses: int, because: str = "") -> "Answer":
        """Itself, where the status is one of these. Raises Broken."""
        if self.status not in statuses:
            wanted = " or ".join(map(str, statuses))
            raise self.broken(f"{wanted} ({because})" if because else wanted)
        return self

    def must_hold(self, name: str, value: Any) -> "Answer":
        """Itself, where the JSON object has this value under the name. Raises Broken."""
        said = self.object()
        if name not in said or said[name] != value:
            raise self.broken(f"{name} {short(value)}", f"{name} {short(said.get(name, 'missing'))}")
        return self


def short(value: Any) -> str:
    """A value in few words."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def root_of(address: str) -> str:
    """The deployment's root from what was typed; /api/v1 behind it is left away. Raises Unusable."""
    parts = urlsplit(address.strip())
    try:
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        port_is_fine = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise Unusable(f"{address!r} is no address: give one like http://127.0.0.1:8000.")
    path = re.sub(r"/api(/v1)?$", "", parts.path.rstrip("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


@dataclass
class Door:
    """The REST API of one deployment as one agent calls it, over one kept connection. Not for two threads at once."""

    root: str
    key: str
    timeout: float = TIMEOUT
    spent: list[float] = field(default_factory=list)
    last: Answer | None = None
    _line: http.client.HTTPConnection | None = None

    def another(self) -> "Door":
        """A connection of its own, for another thread; its requests are counted together with these."""
        return Door(self.root, self.key, self.timeout, self.spent)

    def get(self, path: str, **query: Any) -> Answer:
        """GET below /api/v1/."""
        return self.call("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Answer:
        """POST of a JSON body."""
        return self.call("POST", path, body=body, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, again where the rate limit asks for patience. Raises Broken where no answer comes."""
        sent = {"Authorization": f"Bearer {self.key}", "Accept": "application/json", **(headers or {})}
        if body is not None:
            raw = json.dumps(body, ensure_ascii=False).encode()
            sent.setdefault("Content-Type", "application/json")
        until = time.monotonic() + LONGEST_WAIT
        while True:
            answer = self._once(method, path, raw, sent)
            wait = _asked_to_wait(answer)
            if wait is None or time.monotonic() + wait > until:
                return answer
            time.sleep(wait)

    def _once(self, method: str, path: str, raw: bytes | None, headers: Mapping[str, str]) -> Answer:
        parts = urlsplit(self.root)
        target = f"{parts.path}/api/v1/{path}"
        request = f"{method} {target if len(target) <= SHOWN else target[:SHOWN] + '…'}"
        began = time.monotonic()
        try:
            status, told, body = self._exchange(method, target, raw, headers)
        except (OSError, http.client.HTTPException) as why:
            self.close()
            raise Broken(request, expected="an answer", got=reason(why)) from None
        except BaseException:  # Ctrl-C between request and answer: the next request must not read this one's answer
            self.close()
            raise
        self.spent.append(time.monotonic() - began)
        self.last = Answer(request, status, told, body)
        return self.last

    def _exchange(
        self, method: str, target: str, raw: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        was_kept = self._line is not None
        try:
            return self._talk(method, target, raw, headers)
        except (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
            # Servers close connections that were silent; one that was just opened has no such excuse.
            self.close()
            if not was_kept:
                raise
            return self._talk(method, target, raw, headers)

    def _talk(
        self, method: str, target: str, raw: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        line = self._line or self._opened()
        line.request(method, target, body=raw, headers=dict(headers))
        response = line.getresponse()
        body = response.read()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, body

    def _opened(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.root)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._line = kind(parts.hostname or "", parts.port, timeout=self.timeout)
        self._line.connect()
        if self._line.sock is not None:
            self._line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._line

    def close(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
        self._line = None


def reason(why: BaseException) -> str:
    """Why no answer came, in words."""
    if isinstance(why, TimeoutError):
        return f"no answer within {TIMEOUT:.0f} s"
    if isinstance(why, socket.gaierror):
        return "no such host"
    if isinstance(why, ssl.SSLError):
        return f"no TLS ({why.reason or why})"
    return str(getattr(why, "strerror", None) or why) or type(why).__name__


def _asked_to_wait(answer: Answer) -> float | None:
    if answer.status != 429:
        return None
    told = answer.headers.get("retry-after", "1")
    return max(0.05, float(told)) if told.replace(".", "", 1).isdigit() else 1.0


def encoded(text: str) -> str:
    """Any text as one segment of a path."""
    return quote(text, safe="")
