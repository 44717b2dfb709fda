"""JSON Schemas of typed output: which can be used, and whether a text is JSON of one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from evalkit.core.turns import (
    Finish,
)

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

#: Parts of a schema at most, each reference written out: so many there are to look at for one text.
MAX_PARTS = 10_000


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    # Imported when first used: it takes longer to load than all the rest.
    from jsonschema.validators import validator_for
    from referencing import Registry

    value = msgspec.json.decode(schema)
    kind = validator_for(value)
    kind.check_schema(value)
    # An empty registry: nothing is ever fetched.
    return kind(value, registry=Registry())


def schema_problem(schema: Any) -> str:
    """Why a value is not a usable JSON Schema; empty where it is.

    Patterns are refused, since one can take for ever on a short text, and so are references that lead out of
    the schema, round in a circle, or to more than :data:`MAX_PARTS` parts.
    """
    from jsonschema.exceptions import SchemaError

    try:
        _validator(msgspec.json.encode(schema).decode())
        _count(schema, schema, ())
    except SchemaError as error:
        return error.message.splitlines()[0][:200]
    except (ValueError, RecursionError) as error:
        return " ".join(str(error).split())[:200]
    return ""


def _count(part: Any, whole: Any, refs: tuple[str, ...], count: int = 0) -> int:
    """The parts of a schema, references written out, added to ``count``. ValueError for what is refused."""
    count += 1
    if count > MAX_PARTS:
        raise ValueError(f"has more than {MAX_PARTS:,} parts, its references written out")
    if isinstance(part, list):
        for inner in part:
            count = _count(inner, whole, refs, count)
        return count
    if not isinstance(part, dict):
        return count
    for key, inner in part.items():
        # Where the name is a property's, what stands there is a schema and no text.
        if (key == "pattern" and isinstance(inner, str)) or key == "patternProperties":
            raise ValueError(f"{key!r} is not supported: a pattern can take for ever")
        if key in ("$dynamicRef", "$recursiveRef", "$id", "id", "$anchor") and isinstance(inner, str):
            raise ValueError(f"{key!r} is not supported; refer to a part by '#/...'")
        if key == "$ref" and isinstance(inner, str):
            if inner in refs:
                raise ValueError(f"$ref {inner!r} leads round in a circle")
            count = _count(_target(whole, inner), whole, (*refs, inner), count)
        else:
            count = _count(inner, whole, refs, count)
    return count


def _target(whole: Any, reference: str) -> Any:
    """The part that a reference within the schema names."""
    if not reference.startswith("#"):
        raise ValueError(f"$ref {reference!r} leads out of the schema")
    at = whole
    for name in reference[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        else:
            raise ValueError(f"$ref {reference!r} leads nowhere")
    return at


def matches(text: str, schema: Mapping[str, Any]) -> str:
    """Why a text is not JSON of a usable schema, in one line; empty where it is."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        return "not JSON"
    validator = _validator(msgspec.json.encode(schema).decode())
    for error in validator.iter_errors(value):
        return error.message.splitlines()[0][:200]
    return ""


def typed_output(schema: Mapping[str, Any] | None, words: str, told: Finish) -> Any:
    """Output of a schema's shape that says what a claim says; without a schema, of the default shape."""
    if schema is None:
        return {"summary": words, "completed": list(told.completed), "skipped": list(told.skipped)}
    return _instance(schema, words, told, "")


def _instance(schema: Any, words: str, told: Finish, name: str) -> Any:
    if not isinstance(schema, Mapping):
        return words
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        wanted = schema.get("required", properties)
        return {key: _instance(properties.get(key, {}), words, told, key) for key in wanted}
    if kind == "array":
        return list(told.skipped if "skip" in name else told.completed)
    if kind in ("integer", "number"):
        return len(told.completed)
    if kind == "boolean":
        return True
    return words


def _union(sets: Any) -> int:
    union = 0
    for items in sets:
        union |= items
    return union


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
