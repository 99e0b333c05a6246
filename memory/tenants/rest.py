"""How DRF reads and writes here: strict JSON in, orjson out, the key's actor as the user."""

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotAuthenticated
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from memory.problems import Problem

MAX_DEPTH: Final = 64


def nested_too_deeply() -> Problem:
    return Problem(400, "nested_too_deeply", f"JSON may be nested {MAX_DEPTH} levels deep, not more.")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def strict_json(raw: bytes) -> Any:
    """The JSON value of a body. Raises Problem 400 invalid_json or nested_too_deeply; takes lone surrogates."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = _lenient(raw)
    # Depth needs as many brackets, so a small document is not walked at all.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        raise nested_too_deeply()
    return value


def _lenient(raw: bytes) -> Any:
    """orjson refuses lone surrogates, which real tool output holds; the standard library takes them."""
    try:
        return json.loads(raw.decode("utf-8", "replace"), parse_constant=_refuse_constant)
    except RecursionError:
        raise nested_too_deeply() from None
    except ValueError as exc:
        raise Problem(400, "invalid_json", f"The body is not JSON: {str(exc)[:200]}.") from None


def _deeper(value: Any, limit: int) -> bool:
    """Iterative: the limit is ours, not the interpreter's."""
    layer = [value]
    for _ in range(limit + 1):
        layer = [
            child
            for node in layer
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not layer:
            return False
    return any(isinstance(node, dict | list) for node in layer) or bool(layer)


class OrjsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data, default=str)


class StrictJSONParser(BaseParser):
    """Whatever content type was sent, a body here is JSON."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        return strict_json(stream.read())


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


def describe_doors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """drf-spectacular's post-processing: add the hot doors, in order of their address."""
    for path, methods in DOORS.items():
        result["paths"].setdefault(path, {}).update(methods)
    result["paths"] = dict(sorted(result["paths"].items()))
    result.setdefault("components", {}).setdefault("securitySchemes", {})["agentKey"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An agent key, tm_live_…",
    }
    result["security"] = [{"agentKey": []}]
    return result
