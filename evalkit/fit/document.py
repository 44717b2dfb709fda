"""A population as a YAML document, to read and to keep: facts, one parameter a line."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from evalkit.scenarios.population import Population

_HEADER = (
    "# A population fitted to recordings by `evalkit fit`; docs/fit.md says what its names mean.",
    "# It is no scenario: `evalkit run THIS_FILE -s STRATEGY` draws tasks from it.",
)
#: What is written a line each.
_LISTED = ("estimates", "lengths", "assumed")


def document(population: Population) -> str:
    """The text."""
    values: dict[str, Any] = msgspec.to_builtins(population)
    lines = list(_HEADER)
    for name, value in values.items():
        if name not in _LISTED:
            lines.append(f"{name}: {_flow(value)}")
            continue
        lines.append(f"{name}:")
        lines += [f"  {_key(key)}: {_flow(inner)}" for key, inner in value.items()]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """JSON is YAML; keys that are words stand without quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)
