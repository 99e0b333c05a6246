"""What a tool takes and gives, as JSON Schema; arguments are read kindly and refused clearly."""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import orjson

from memory.problems import Problem

Schema = dict[str, Any]
# Models send lists, objects, numbers and yes or no as text now and then; what stays text is never touched.
_READ_AS: Final = ("array", "object", "integer", "number", "boolean")
MOST_SHOWN: Final = 5


def shape(properties: Mapping[str, Schema], *, needed: tuple[str, ...] = ()) -> Schema:
    """What goes in: an object with these fields and no others."""
    made: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return made | ({"required": list(needed)} if needed else {})


def answer(properties: Mapping[str, Schema], *, needed: tuple[str, ...] = ()) -> Schema:
    """What comes out: an object with at least these fields."""
    made: Schema = {"type": "object", "properties": dict(properties)}
    return made | ({"required": list(needed)} if needed else {})


def text(about: str, **more: Any) -> Schema:
    return {"type": "string", "description": about, **more}


def number(about: str, least: int, most: int, default: int) -> Schema:
    return {"type": "integer", "description": about, "minimum": least, "maximum": most, "default": default}


def flag(about: str) -> Schema:
    return {"type": "boolean", "description": about}


def obj(about: str, **more: Any) -> Schema:
    return {"type": "object", "description": about, **more}


def listed(about: str, of: Schema, **more: Any) -> Schema:
    return {"type": "array", "description": about, "items": of, **more}


def one_of(about: str, *values: str) -> Schema:
    return {"type": "string", "description": about, "enum": list(values)}


STRING: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
MAYBE: Final[Schema] = {"type": ["string", "null"]}
MAYBE_WHOLE: Final[Schema] = {"type": ["integer", "null"]}
YES_OR_NO: Final[Schema] = {"type": "boolean"}
OBJECT: Final[Schema] = {"type": "object"}
OBJECTS: Final[Schema] = {"type": "array", "items": OBJECT}
STRINGS: Final[Schema] = {"type": "array", "items": STRING}


def taken(schema: Schema, given: Mapping[str, Any], *, tool: str) -> dict[str, Any]:
    """The arguments as the tool reads them. Raises Problem 400 that names each field and what it should be."""
    properties = schema["properties"]
    # What is null was left out: some clients send every field.
    fit = {name: _read(value, properties.get(name, {})) for name, value in given.items() if value is not None}
    wrong = sorted(jsonschema.Draft202012Validator(schema).iter_errors(fit), key=lambda one: list(map(str, one.path)))
    if wrong:
        said = "; ".join(_said(one, properties) for one in wrong[:MOST_SHOWN])
        raise Problem(400, "invalid_arguments", f"{tool}: {said}. Call it again with these mended.")
    for name, one in fit.items():
        if isinstance(one, str) and "\0" in one and properties[name].get("type") == "string":
            fit[name] = one.replace("\0", "\ufffd")
    return fit


def _read(value: Any, schema: Schema) -> Any:
    """The value itself, or what a text of JSON says where the field is no text."""
    kind = schema.get("type")
    if not isinstance(value, str) or kind not in _READ_AS:
        return value
    try:
        read = orjson.loads(value)
    except orjson.JSONDecodeError:
        # One word where a list of words is due is a list of one.
        is_words = kind == "array" and schema["items"].get("type") == "string" and value.strip()[:1] not in ("[", "{")
        return [value] if is_words and value.strip() else value
    if kind == "array" and isinstance(read, str):
        return [read]
    return read


def _said(error: jsonschema.ValidationError, properties: Mapping[str, Schema]) -> str:
    place = ".".join(str(part) for part in error.path)
    if error.validator == "required":
        missing = next((name for name in error.validator_value if name not in error.instance), "a field")
        about = properties.get(missing, {}).get("description", "")
        return f"{missing} is needed ({about})" if about else f"{missing} is needed"
    if error.validator == "additionalProperties" and not place:
        unknown = sorted(set(error.instance) - set(properties))
        return f"unknown {', '.join(name[:60] for name in unknown)}; known are {', '.join(sorted(properties))}"
    return f"{place}: {error.message[:200]}"
