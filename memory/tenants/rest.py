"""How DRF reads and writes here: strict JSON in, orjson out, the key's actor as the user."""

import json
import re
from collections.abc import Callable, Mapping
from math import isinf
from typing import Any, Final, TypeVar

import orjson
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotAcceptable, NotAuthenticated
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils.mediatypes import media_type_matches

from memory.problems import Problem
from memory.sentences import sentence

View = TypeVar("View", bound=Any)
MAX_DEPTH: Final = 64
# A value costs microseconds wherever it is walked: ten million empty lists fit into 32 MB and held a worker for 20 s.
MAX_VALUES: Final = 250_000
# A longer whole number may be infinite to readers that take numbers as doubles.
MAX_DIGITS: Final = 300
# So many digits in a row may be a whole number beyond 64 bits.
_NINES: Final = bytes(ord("9") if char in b"0123456789" else ord(" ") for char in range(256))
_LONG_NUMBER: Final = b"9" * 19
# Half of a character, as JSON escapes it; whole ones outside the first plane match too.
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
# A string, closed or cut off, or what stands before a value.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|([,\[{])', re.DOTALL)


def nested_too_deeply() -> Problem:
    return Problem(
        400, "nested_too_deeply", sentence("JSON may be nested %(levels)s levels deep, not more.", levels=MAX_DEPTH)
    )


def _invalid_json(why: str) -> Problem:
    return Problem(400, "invalid_json", sentence("The body is not JSON: %(why)s.", why=why[:200]))


def strict_json(raw: bytes) -> Any:
    """The JSON value of a body; takes lone surrogates.

    Raises Problem 400 invalid_json, nested_too_deeply or too_many_values.
    """
    value, unreadable = fast_json(raw)
    if unreadable:
        raise _invalid_json("a number in it is infinite to most readers; send it as text")
    return value


def without_surrogates(value: Any) -> Any:
    """The same value with U+FFFD for lone halves of characters, which neither UTF-8 nor the database can hold."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case dict():
            return {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
        case list():
            return [without_surrogates(inner) for inner in value]
    return value


def fast_json(raw: bytes) -> tuple[Any, int]:
    """As `exact_json`, and quicker; whole numbers beyond 64 bits come as the double next to them."""
    refuse_too_many_values(raw, MAX_VALUES)
    try:
        return _shallow(raw, orjson.loads(raw)), 0
    except orjson.JSONDecodeError:
        return _slow_json(raw)


def exact_json(raw: bytes) -> tuple[Any, int]:
    """The value, and how many of its numbers are text now because readers of JSON refuse them (1e999, 4,000 digits).

    Whole numbers keep every digit. Raises Problem 400 as `strict_json`, but for such numbers.
    """
    if _LONG_NUMBER not in raw.translate(_NINES):
        return fast_json(raw)
    return _slow_json(raw)


def _slow_json(raw: bytes) -> tuple[Any, int]:
    refuse_too_many_values(raw, MAX_VALUES)
    unreadable: list[str] = []
    try:
        # orjson refuses lone surrogates too, which real tool output holds; the standard library takes them.
        value = json.loads(
            # Windows' shells put a byte order mark before what they pipe.
            raw.decode("utf-8-sig", "replace"),
            parse_int=lambda text: int(text) if len(text) <= MAX_DIGITS else _as_text(text, unreadable),
            parse_float=lambda text: _as_text(text, unreadable) if isinf(float(text)) else float(text),
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise nested_too_deeply() from None
    except ValueError as exc:
        raise _invalid_json(str(exc)) from None
    return _shallow(raw, value), len(unreadable)


def _as_text(text: str, unreadable: list[str]) -> str:
    unreadable.append(text)
    return text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def refuse_too_many_values(raw: bytes, most: int) -> None:
    """Count before parsing: the parsed values are what fills the memory. Raises Problem 400 too_many_values."""
    if len(raw) <= most or raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= most:
        return
    seen = 0
    for token in _TOKEN.finditer(raw):
        seen += token.lastindex is not None
        if seen > most:
            raise Problem(
                400,
                "too_many_values",
                sentence("JSON may hold %(most)s values, not more.", most=f"{most:,}"),
                limit=most,
            )


def _shallow(raw: bytes, value: Any) -> Any:
    """The value, if it is not too deep. Depth needs as many brackets, so a small document is not walked at all."""
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        raise nested_too_deeply()
    return value


def _deeper(value: Any, limit: int) -> bool:
    """Iterative: the limit is ours, not the interpreter's."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        layer = [
            child
            for node in layer
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


class OrjsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=str)


def gives(*types: str) -> Callable[[View], View]:
    """Says which media types a view answers with beside JSON: who asks for one of them is not refused. Stands above
    `api_view`.
    """

    def with_types(view: View) -> View:
        view.cls.gives = types
        return view

    return with_types


class Negotiation(DefaultContentNegotiation):
    """DRF's own, which knows renderers only: for what a view writes itself JSON's stands in, and renders its errors."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except NotAcceptable:
            own = getattr(request.parser_context.get("view"), "gives", ())
            if any(media_type_matches(asked, one) for asked in self.get_accept_list(request) for one in own):
                return renderers[0], renderers[0].media_type
            raise


class StrictJSONParser(BaseParser):
    """Whatever content type was sent, a body here is JSON."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        raw = stream.read()
        value = strict_json(raw)
        return without_surrogates(value) if _HALF.search(raw) else value


class KeyAuthentication(BaseAuthentication):
    """The middleware has checked the key and bound the tenant; DRF only takes over the actor."""

    def authenticate(self, request: Request) -> tuple[Any, None]:
        actor = getattr(request._request, "actor", None)
        if actor is None:
            raise NotAuthenticated
        return actor, None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="team-memory"'


DOORS: dict[str, dict[str, Any]] = {}


def describe(path: str, method: str, operation: dict[str, Any]) -> None:
    """Put a hot door, which DRF does not know, into the same OpenAPI file."""
    DOORS.setdefault(path, {})[method] = operation


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI description names the key."""

    target_class = "memory.tenants.rest.KeyAuthentication"
    name = "agentKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The security scheme object."""
        return {"type": "http", "scheme": "bearer", "description": "An agent key, tm_live_…"}


def describe_doors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's post-processing: add the hot doors, in order of their address."""
    for path, methods in DOORS.items():
        result["paths"].setdefault(path, {}).update(methods)
    result["paths"] = dict(sorted(result["paths"].items()))
    result["security"] = [{"agentKey": []}]
    return result
