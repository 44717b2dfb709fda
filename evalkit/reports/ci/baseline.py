"""A baseline: what a run says of each scenario, as a small file that a review can read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from evalkit.runs.store import Store
from evalkit.stats.scenario_results import Record, records
from evalkit.stats.tally import make_tally

SCHEMA = "evalkit.baseline/1"


class BaselineError(ValueError):
    """A file that is no baseline; one line."""


class Incompatible(ValueError):
    """A baseline of another version; one line."""


class Baseline(msgspec.Struct, frozen=True):
    """``scenarios`` are digests by name; ``contenders`` hold a record for each scenario."""

    schema: str
    evalkit: str
    run: str
    created: str
    seeds: int
    scenarios: dict[str, str]
    contenders: dict[str, dict[str, Record]]


def baseline_of(store: Store) -> Baseline:
    """The baseline of a run."""
    make_tally(store)
    recipe = store.recipe
    return Baseline(
        SCHEMA,
        recipe.evalkit,
        recipe.id,
        store.created,
        recipe.seeds,
        {entry.name: entry.digest for entry in sorted(recipe.entries, key=lambda entry: entry.name)},
        records(store),
    )


def baseline_text(baseline: Baseline) -> str:
    """The baseline as JSON, one line for each scenario, so that a diff shows what changed."""
    head = {name: getattr(baseline, name) for name in ("schema", "evalkit", "run", "created", "seeds")}
    lines = ["{"]
    lines += [f" {_json(name)}: {_json(value)}," for name, value in head.items()]
    lines.append(' "scenarios": {')
    lines += _members(baseline.scenarios, "  ")
    lines.append(' },\n "contenders": {')
    for place, (name, found) in enumerate(baseline.contenders.items()):
        lines.append(f"  {_json(name)}: {{")
        lines += _members(found, "   ")
        lines.append("  }" + ("," if place < len(baseline.contenders) - 1 else ""))
    lines.append(" }\n}")
    return "\n".join(lines) + "\n"


def _members(values: dict[str, str] | dict[str, Record], indent: str) -> list[str]:
    lines = [f"{indent}{_json(name)}: {_json(value)}," for name, value in values.items()]
    if lines:
        lines[-1] = lines[-1][:-1]
    return lines


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def read_baseline(file: Path) -> Baseline:
    """A baseline from a file. BaselineError where it is none, Incompatible for another version's."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BaselineError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        schema = msgspec.json.decode(data, type=dict[str, object]).get("schema")
        if not isinstance(schema, str) or not schema.startswith("evalkit.baseline/"):
            raise BaselineError(
                f"{file}: is no baseline (schema {schema!r}); make one with: evalkit baseline RUN"
            )
        if schema != SCHEMA:
            raise Incompatible(f"{file}: the baseline is of {schema}, this evalkit reads {SCHEMA}")
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BaselineError(f"{file}: is no baseline: {error}") from None
