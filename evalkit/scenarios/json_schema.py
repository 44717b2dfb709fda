"""The JSON Schema of the scenario language, generated from the types that the loader checks with."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from evalkit.core.decisions import ENDINGS, TRUTHS
from evalkit.core.tasks import Limits
from evalkit.scenarios.moves import VERBS
from evalkit.scenarios.personas import PERSONAS
from evalkit.scenarios.scenario import Expect, TaskSpec
from evalkit.worlds import WorldSpec, world_class, world_kinds

_MOVE = {"$ref": "#/$defs/Move"}
#: Fields of moves that hold moves.
_NESTED = {
    ("TurnMove", "turn"),
    ("RepeatSpec", "do"),
    ("DelegateSpec", "do"),
    ("Option", "do"),
}


def schema_text() -> str:
    """The schema as JSON text."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


def schema() -> dict[str, Any]:
    """The schema of one scenario document."""
    types = [*VERBS.values(), TaskSpec, Limits, WorldSpec, Expect]
    refs, definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for name, field in _NESTED:
        definitions[name]["properties"][field] = {"type": "array", "items": _MOVE, "minItems": 1}
    for name in definitions:
        stop = definitions[name].get("properties", {}).get("stop")
        if stop is not None:
            definitions[name]["properties"]["stop"] = _or_list({"type": ["string", "null"]})
    definitions["Move"] = {"anyOf": list(refs[: len(VERBS)])}
    definitions["WorldSpec"] = _world(definitions["WorldSpec"])
    definitions["Limits"] = {
        "type": "object",
        "properties": {
            "turns": _or_list({"type": ["integer", "null"], "exclusiveMinimum": 0}),
            "tokens": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "usd": {"type": ["number", "null"], "exclusiveMinimum": 0},
            "calls": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "per": {"enum": ["episode", "query"]},
        },
        "additionalProperties": False,
    }
    outcomes = [f"{ending}/{truth}" for ending in ENDINGS[:5] for truth in TRUTHS]
    persona_type = {
        "type": "object",
        "properties": {"persona": {"enum": list(PERSONAS)}},
        "required": ["persona"],
        "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
    }
    text = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "evalkit scenario",
        "type": "object",
        "properties": {
            "scenario": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]*$"},
            "family": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
            "summary": text,
            "source": text,
            "task": {"$ref": "#/$defs/TaskSpec"},
            "limits": {"$ref": "#/$defs/Limits"},
            "world": {"$ref": "#/$defs/WorldSpec"},
            "model": {"anyOf": [{"type": "array", "items": _MOVE, "minItems": 1}, persona_type]},
            "accept": {"type": "array", "items": {"enum": outcomes}, "minItems": 1},
            "expect": {"$ref": "#/$defs/Expect"},
            "restarts": {"type": "boolean"},
            "twin": text,
        },
        "required": ["scenario", "family", "task", "world", "model"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _or_list(value: dict[str, Any]) -> dict[str, Any]:
    """A value, or a list of values that names one variant for each."""
    return {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]}


def _world(common: dict[str, Any]) -> dict[str, Any]:
    properties = dict(common["properties"])
    for derived in ("options", "later"):
        properties.pop(derived, None)
    properties["kind"] = {"enum": list(world_kinds())}
    for kind in world_kinds():
        for name in world_class(kind).option_names:
            properties.setdefault(name, {})
    return {**common, "properties": properties}
