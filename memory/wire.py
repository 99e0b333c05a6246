"""What comes over the wire, as all that is behind reads it: bodies that are whole, words in UTF-8, and who asks."""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest

from memory import ids, logs, problems

_BODIES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Cut(OSError):
    """The connection ended before the body did."""


class Whole:
    """A WSGI application that hands no body on that was cut: half a payload would be stored as if it were all of it.

    The server ends a body alike where it was sent to its end and where the connection broke. By its length that shows;
    a body in chunks has none, and is refused.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        size = environ.get("CONTENT_LENGTH") or ""
        if size.isdecimal():
            environ["wsgi.input"] = _Body(environ["wsgi.input"], int(size))
        elif "HTTP_TRANSFER_ENCODING" in environ and environ["REQUEST_METHOD"] in _BODIES:
            detail = "Send the body with its Content-Length, not in chunks: of those it can't be told whether all came."
            return problems.answered(start_response, problems.Problem(411, "length_required", detail))
        try:
            return self.application(environ, start_response)
        except Cut:
            return problems.answered(start_response, problems.incomplete())
        except Exception:
            # What rises to here came from outside of Django, which answers its own faults: a program is told all the
            # same in the shape that it reads.
            request_id = ids.new_key()
            with logs.of_request(request_id):
                logging.getLogger(__name__).exception("%s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            return problems.answered(start_response, problems.server_fault(), ("X-Request-Id", request_id))


class _Body:
    """A request's body of so many bytes. Raises Cut where it ends before them."""

    def __init__(self, body: Any, size: int) -> None:
        self._body = body
        self._left = size

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._wanted(size)
        parts = []
        while wanted > 0:
            parts.append(self._come(self._body.read(wanted)))
            wanted -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readline(self, size: int | None = -1) -> bytes:
        wanted = self._wanted(size)
        return self._come(self._body.readline(wanted)) if wanted else b""

    def _wanted(self, size: int | None) -> int:
        return self._left if size is None or size < 0 else min(size, self._left)

    def _come(self, part: bytes) -> bytes:
        if not part:
            raise Cut(f"{self._left} bytes of the body did not come")
        self._left -= len(part)
        return part


class Forwarded:
    """A WSGI application that believes these proxies (addresses or networks) who asked them, and whether by https.

    The server's own way takes any words for an address, and a page that keeps the address would fail on them.
    """

    def __init__(self, application: Application, proxies: Sequence[str]) -> None:
        self.application = application
        self._networks = [ip_network(one) for one in proxies]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        said = environ.get("HTTP_X_FORWARDED_FOR")
        if said and self._is_proxy(_address(environ["REMOTE_ADDR"])):
            environ["REMOTE_ADDR"] = self._asker(said, environ["REMOTE_ADDR"])
            # The nearest proxy speaks last.
            scheme = environ.get("HTTP_X_FORWARDED_PROTO", "").rpartition(",")[2].strip().lower()
            if scheme in ("http", "https"):
                environ["wsgi.url_scheme"] = scheme
        return self.application(environ, start_response)

    def _asker(self, said: str, proxy: str) -> str:
        """The last address that is no proxy of ours; what stands before it, or makes no sense, is anybody's word."""
        asker = proxy
        for one in reversed(said.split(",")):
            found = _address(one.strip())
            if found is None:
                break
            asker = str(found)
            if not self._is_proxy(found):
                break
        return asker

    def _is_proxy(self, address: IPv4Address | IPv6Address | None) -> bool:
        return address is not None and any(address in network for network in self._networks)


@lru_cache(maxsize=1024)
def _address(written: str) -> IPv4Address | IPv6Address | None:
    """The address in `203.0.113.9`, `203.0.113.9:5555`, `2001:db8::1` or `[2001:db8::1]:5555`; else None."""
    bare = written.partition("]")[0].removeprefix("[")
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    # A socket for both kinds writes one of the old ones so; a zone is a name on one machine.
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or ip_address(bare.partition("%")[0])


class Request(WSGIRequest):
    """A request whose words are UTF-8, whatever its Content-Type says: that could name a codec of Python that makes no
    text, or half characters, which no database takes.
    """

    @property
    def encoding(self) -> str | None:
        return None

    @encoding.setter
    def encoding(self, claimed: str | None) -> None:
        pass


class Handler(WSGIHandler):
    """Django, for such requests."""

    request_class = Request
