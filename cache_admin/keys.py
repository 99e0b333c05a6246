"""The key of a call: SHA-256 of one canonical document (RFC 8785) that names all the answer depends on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import rfc8785

from cache_admin.normalize import NotKeyable, Rules, exact, fraction, normal
from cache_admin.normalize import place as place_of
from memory.problems import Problem
from memory.tenants.rest import MAX_VALUES, nested_too_deeply, refuse_too_many_values, without_surrogates

VERSION: Final = 1
MAX_DEPTH: Final = 64


@dataclass(frozen=True)
class Call:
    """A tool call as it came, and where it was made."""

    tool: str
    arguments: Mapping[str, Any]
    server: str = ""
    version: str = ""
    root: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    content_hash: str = ""


@dataclass(frozen=True)
class Key:
    """The key, the document it was made of, and the same call's identity whatever the content is."""

    digest: bytes
    document: str
    identity: bytes
    paths: tuple[str, ...] = ()

    @property
    def hex(self) -> str:
        return self.digest.hex()


def tool_key(call: Call, *, tenant: str, scope: str, salt: str, rules: Rules, place: str = "") -> Key:
    """The key of a call; `place` is the project where the scope does not say it. Raises NotKeyable."""
    arguments = normal(call.arguments, rules=rules, root=call.root)
    about = {
        "key_version": VERSION,
        "tenant": tenant,
        "scope": scope,
        "salt": salt,
        "server": call.server,
        "tool": call.tool,
        "tool_version": call.version,
        "arguments": arguments,
        "environment": exact(call.environment),
        **({"project": place} if place else {}),
    }
    document = canonical({**about, "content_hash": call.content_hash})
    paths = tuple(sorted({place_of(text) for name in rules.paths for text in _texts(arguments.get(name))}))
    return Key(_sha256(document), document.decode(), _sha256(canonical(about)), paths)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def canonical(value: Any) -> bytes:
    """RFC 8785. Raises NotKeyable where the value has no canonical form."""
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, ValueError, TypeError, RecursionError):
        raise NotKeyable("not_canonical") from None


def parameters_hash(parameters: Mapping[str, Any]) -> str:
    """One name for a set of parameters; none for none."""
    return hashlib.sha256(canonical(exact(parameters))).hexdigest() if parameters else ""


def _sha256(document: bytes) -> bytes:
    return hashlib.sha256(document).digest()


def read_call(raw: bytes) -> dict[str, Any]:
    """The body of a lookup. Every digit of a number counts here, and no name may come twice. Raises Problem 400."""
    refuse_too_many_values(raw, MAX_VALUES)
    try:
        value = json.loads(
            raw.decode("utf-8", "replace"),
            object_pairs_hook=_once,
            parse_constant=_refuse_constant,
            parse_float=fraction,
        )
    except RecursionError:
        raise nested_too_deeply() from None
    except ValueError as exc:
        raise Problem(400, "invalid_json", f"The body is not JSON: {str(exc)[:200]}.") from None
    if not isinstance(value, dict):
        raise Problem(400, "invalid_json", "The body is a JSON object.")
    if _depth(value) > MAX_DEPTH:
        raise nested_too_deeply()
    # The arguments stay as they are: what can't be spelt has no key. All else goes into rows.
    return {name: inner if name == "arguments" else without_surrogates(inner) for name, inner in value.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    layer, depth = [value], 0
    while layer and depth <= MAX_DEPTH:
        depth += 1
        layer = [
            inner
            for node in layer
            for inner in (node.values() if isinstance(node, dict) else node)
            if isinstance(inner, dict | list)
        ]
    return depth
