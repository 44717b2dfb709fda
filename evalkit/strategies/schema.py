"""Whether a text is typed output of a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


@lru_cache(maxsize=64)
def _validator(schema: str) -> Validator:
    # Imported when first used: it takes longer to load than all the rest.
    from jsonschema.validators import validator_for

    value = msgspec.json.decode(schema)
    kind = validator_for(value)
    kind.check_schema(value)
    return kind(value)


def schema_problem(schema: Any) -> str:
    """Why a value is not a usable JSON Schema; empty where it is."""
    from jsonschema.exceptions import SchemaError

    try:
        _validator(msgspec.json.encode(schema).decode())
    except SchemaError as error:
        return error.message.splitlines()[0]
    return ""


def matches(text: str, schema: Mapping[str, Any]) -> str:
    """Why a text is not JSON of a schema, in one line; empty where it is."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        return "not JSON"
    validator = _validator(msgspec.json.encode(schema).decode())
    for error in validator.iter_errors(value):
        return error.message.splitlines()[0][:200]
    return ""
