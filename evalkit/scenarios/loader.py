"""From YAML to scenarios: validation, variants, and errors that say where and what."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any

import msgspec

from evalkit.core.decisions import ENDINGS, TRUTHS
from evalkit.core.names import NAME_ALLOWED, among, is_name
from evalkit.core.tasks import Limits
from evalkit.core.validation import SOME, refusal
from evalkit.scenarios.drawn_scenarios import drawn_documents
from evalkit.scenarios.move_checks import MAX_LABEL, check_known, check_move, kind_of
from evalkit.scenarios.moves import (
    EVENTS,
    VERBS,
    AnyMove,
    CrashMove,
    DelegateMove,
    EitherMove,
    Option,
    RepeatMove,
    TurnMove,
    UserMove,
    verb_of,
)
from evalkit.scenarios.output_schema import schema_problem
from evalkit.scenarios.personas import PERSONAS, persona_moves
from evalkit.scenarios.population import POPULATION, Population
from evalkit.scenarios.scenario import Expect, Scenario, TaskSpec, walk
from evalkit.scenarios.yaml_source import Path, ScenarioError, Source, read_file, read_yaml
from evalkit.worlds import WorldError, WorldSpec, world_class

__all__ = ["ScenarioError", "load_file", "load_text"]

_FAMILY = re.compile(r"[a-z][a-z0-9_]*\Z")
_TOP = (
    "scenario",
    "family",
    "summary",
    "source",
    "task",
    "limits",
    "world",
    "model",
    "accept",
    "expect",
    "restarts",
    "twin",
)
_REQUIRED = ("scenario", "family", "task", "world", "model")
#: Bounds on what one document may ask for, far above any use.
MAX_VARIANTS = 500
MAX_ITEMS = 1_000
MAX_ID = 200
MAX_NOISE = 10_000
#: What may stand in a ``turn``: moves that are one turn by themselves, and a crash among its calls.
_PARTS = frozenset(
    ("call", "work", "undo", "say", "think", "empty", "finish", "tick", "output", "pause", "truncate")
) | {"refuse", "raw", "delegate", "crash"}
#: What a child agent may do: all but what happens to a whole harness.
_CHILD = frozenset(VERBS) - frozenset(EVENTS)
_LIMITS = ("turns", "tokens", "usd", "calls", "per")


def load_file(path: FilePath) -> list[Scenario]:
    """The scenarios of a YAML file, variants included. ScenarioError in one line for whatever is wrong."""
    return load_text(read_file(path), str(path))


def load_text(text: str, file: str = "<text>") -> list[Scenario]:
    """The scenarios of a YAML text."""
    sources = read_yaml(text, file)
    if not sources:
        raise ScenarioError(file, None, "", "holds no scenario")
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return [
        _read(variant, name, digest)
        for source in sources
        for name, variant in (_drawn(source) if _is_population(source) else _variants(source))
    ]


# Populations


def _is_population(source: Source) -> bool:
    return isinstance(source.value, dict) and POPULATION in source.value


def _drawn(source: Source) -> Iterator[tuple[str, Source]]:
    """One document for each drawn task of a fitted population, at each level of what is assumed."""
    try:
        population = msgspec.convert(source.value, Population)
    except msgspec.ValidationError as error:
        raise _explained(source, (), Population, error) from None
    problem = population.problem()
    if problem is not None:
        raise source.error(*problem)
    for name, drawn in drawn_documents(population):
        yield name, Source(source.file, drawn, {}, population.population)


def document_of(scenario: Scenario) -> dict[str, Any]:
    """The document that a scenario was read from, of its variant alone. ScenarioError where it is gone."""
    for source in read_yaml(read_file(FilePath(scenario.place)), scenario.place):
        for name, variant in _variants(source):
            if name == scenario.name:
                return copy.deepcopy(dict(variant.value))
    raise ScenarioError(scenario.place, None, "", f"holds no scenario {scenario.name!r} any more")


# Variants


def _variants(source: Source) -> Iterator[tuple[str, Source]]:
    """One document for each value of a list in ``limits.turns`` or in a ``stop``."""
    if not isinstance(source.value, dict):
        raise source.error((), f"a scenario is a mapping, found {kind_of(source.value)}")
    name = source.value.get("scenario")
    places = sorted(_lists(source.value, ()), key=str)
    if not places:
        yield str(name), source
        return
    for places_of in places:
        if not _at(source.value, places_of):
            raise source.error(places_of, "is an empty list; a list names one variant for each value")
    count = math.prod(len(_at(source.value, place)) for place in places)
    if count > MAX_VARIANTS:
        raise source.error(places[0], f"the lists name {count:,} variants together; at most {MAX_VARIANTS}")
    for values in itertools.product(*(_at(source.value, place) for place in places)):
        document = copy.deepcopy(source.value)
        parts = []
        for place, value in zip(places, values, strict=True):
            _at(document, place[:-1])[place[-1]] = value
            parts.append(f"{place[-1]}={'null' if value is None else value}")
        yield f"{name}[{','.join(parts)}]", Source(source.file, document, source.lines)


def _lists(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            here = (*path, key)
            if isinstance(inner, list) and (
                here == ("limits", "turns") or (key == "stop" and path[:1] == ("model",))
            ):
                yield here
            else:
                yield from _lists(inner, here)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _lists(inner, (*path, place))


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


# One document


def _unknown(field: str, allowed: Iterable[str]) -> str:
    """What is said of a field that nobody knows."""
    return f"unknown field{among(str(field), allowed, 'allowed')}"


def _read(source: Source, name: str, digest: str) -> Scenario:
    document = source.value
    for key in document:
        if key not in _TOP:
            raise source.error((key,), _unknown(key, _TOP))
    for key in _REQUIRED:
        if document.get(key) is None:
            raise source.error((), f"field {key!r} is missing")
    bare = _text(source, ("scenario",))
    if not is_name(bare):
        raise source.error(("scenario",), f"{bare!r} is not a name; allowed: {NAME_ALLOWED}")
    family = _text(source, ("family",))
    if not _FAMILY.match(family):
        raise source.error(("family",), f"{family!r} is not a family; allowed: a-z, 0-9, '_'")
    world = _world(source)
    moves, persona = _model(source, world)
    world = msgspec.structs.replace(world, later=_later(source, world, moves))
    return Scenario(
        name=name,
        family=family,
        summary=_text(source, ("summary",), ""),
        source=_text(source, ("source",), ""),
        task=_task(source),
        limits=_limits(source),
        world=world,
        moves=moves,
        accept=_accept(source),
        twin=_text(source, ("twin",), "") or None,
        expect=_expect(source),
        restarts=_restarts(source),
        persona=persona if source.drawn_from is None else source.drawn_from,
        digest=digest,
        place=source.file,
    )


def _later(source: Source, world: WorldSpec, moves: tuple[AnyMove, ...]) -> tuple[str, ...]:
    """The items that are part of the task only when a later message asks for them."""
    asked = {item for move in walk(moves) if isinstance(move, UserMove) for item in move.user.asks}
    if len(asked) == len(world.items):
        raise source.error(("model",), "every item is asked for later; the task itself needs one at least")
    return tuple(item for item in world.items if item in asked)


def _expect(source: Source) -> Expect | None:
    if source.value.get("expect") is None:
        return None
    expect: Expect = _convert(source, ("expect",), Expect)
    return expect


def _restarts(source: Source) -> bool | None:
    value = source.value.get("restarts")
    if value is not None and not isinstance(value, bool):
        raise source.error(("restarts",), f"expected true or false, found {value!r}")
    return value


def _task(source: Source) -> TaskSpec:
    task: TaskSpec = _convert(source, ("task",), TaskSpec)
    if task.output is not None:
        problem = schema_problem(task.output)
        if problem:
            raise source.error(("task", "output"), f"is no JSON Schema that can be used: {problem}")
    return task


def _text(source: Source, path: Path, default: str | None = None) -> str:
    value = source.value.get(path[0], default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise source.error(path, f"expected text, found {kind_of(value)}; quote it")
    return value


def _convert(source: Source, path: Path, kind: Any, value: Any = None) -> Any:
    value = _at(source.value, path) if value is None else value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _explained(source, path, kind, error) from None


def _explained(source: Source, path: Path, kind: Any, error: msgspec.ValidationError) -> ScenarioError:
    """What msgspec refuses, at its place in the document."""
    refused = refusal(error, kind)
    return source.error((*path, *(0 if step == SOME else step for step in refused.path)), refused.message)


def _limits(source: Source) -> Limits:
    if source.value.get("limits") is None:
        return Limits()
    value = source.value["limits"]
    if not isinstance(value, dict):
        raise source.error(("limits",), f"expected a mapping, found {kind_of(value)}")
    for key, amount in value.items():
        if key not in _LIMITS:
            raise source.error(("limits", key), _unknown(key, _LIMITS))
        if key == "per":
            if amount not in ("episode", "query"):
                raise source.error(("limits", key), f"expected episode or query, found {amount!r}")
            continue
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if amount is not None and (
            not number or not 0 < amount < 1e12 or (key != "usd" and not isinstance(amount, int))
        ):
            raise source.error(
                ("limits", key), f"expected a number above 0, found {amount!r}; leave it out for no limit"
            )
    return Limits(**value)


def _world(source: Source) -> WorldSpec:
    value = source.value["world"]
    if not isinstance(value, dict):
        raise source.error(("world",), f"expected a mapping, found {kind_of(value)}")
    kind = value.get("kind")
    if not isinstance(kind, str):
        raise source.error(("world",), "field 'kind' is missing")
    try:
        world = world_class(kind)
    except WorldError as error:
        raise source.error(("world", "kind"), str(error)) from None
    common = {*WorldSpec.__struct_fields__} - {"options", "later"}
    for key in value:
        if key not in common | world.option_names:
            raise source.error(("world", key), _unknown(key, (*sorted(common), *sorted(world.option_names))))
    plain = {key: inner for key, inner in value.items() if key in common}
    plain["options"] = {key: inner for key, inner in value.items() if key in world.option_names}
    spec: WorldSpec = _convert(source, ("world",), WorldSpec, plain)
    if not spec.items:
        raise source.error(("world", "items"), "a world needs at least one item")
    for field in ("items", "forbidden"):
        _ids(source, ("world", field), getattr(spec, field))
    if len(spec.noise) > MAX_NOISE:
        raise source.error(("world", "noise"), f"{len(spec.noise):,} characters; at most {MAX_NOISE:,}")
    for field, known in (
        ("skippable", spec.items),
        ("gated", spec.items),
        ("masked", spec.items),
        ("weak_checks", spec.items),
    ):
        for place, item in enumerate(getattr(spec, field) or ()):
            check_known(source, ("world", field, place), item, known)
    try:
        world(spec).close()
    except WorldError as error:
        raise source.error(("world",), str(error)) from None
    return spec


def _ids(source: Source, path: Path, names: tuple[str, ...]) -> None:
    """Ids are short, on one line, and each stands once."""
    if len(names) > MAX_ITEMS:
        raise source.error(path, f"{len(names)} items; at most {MAX_ITEMS}")
    for place, name in enumerate(names):
        here = (*path, place)
        if not name.strip():
            raise source.error(here, "an item id cannot be blank")
        if len(name) > MAX_ID or not name.isprintable():
            raise source.error(
                here, f"an item id is one line of at most {MAX_ID} characters, found {name[:40]!r}"
            )
        if name in names[:place]:
            raise source.error(here, f"{name!r} stands here twice")


def _accept(source: Source) -> tuple[str, ...] | None:
    value = source.value.get("accept")
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise source.error(("accept",), "expected a list of outcomes such as done/complete")
    for place, outcome in enumerate(value):
        ending, _, truth = outcome.partition("/") if isinstance(outcome, str) else ("", "", "")
        if ending not in ENDINGS[:5] or truth not in TRUTHS:
            raise source.error(
                ("accept", place),
                f"{outcome!r} is not an outcome; allowed: ENDING/TRUTH of {', '.join(ENDINGS[:5])}"
                f" and {', '.join(TRUTHS)}",
            )
    return tuple(value)


# Moves


def _model(source: Source, world: WorldSpec) -> tuple[tuple[AnyMove, ...], str | None]:
    value = source.value["model"]
    if isinstance(value, dict):
        name = value.get("persona")
        if name not in PERSONAS:
            raise source.error(
                ("model", "persona"), f"unknown persona {name!r}; known: {', '.join(PERSONAS)}"
            )
        parameters = {key: inner for key, inner in value.items() if key != "persona"}
        try:
            raw = persona_moves(name, parameters, world)
        except ValueError as error:
            raise source.error(("model",), str(error)) from None
        return _moves(source, ("model",), raw, world, frozenset(VERBS)), name
    if not isinstance(value, list) or not value:
        raise source.error(("model",), "expected a list of moves or a persona")
    return _moves(source, ("model",), value, world, frozenset(VERBS)), None


def _moves(
    source: Source, path: Path, value: Any, world: WorldSpec, allowed: frozenset[str]
) -> tuple[AnyMove, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise source.error(path, f"expected a list of moves, found {kind_of(value)}")
    return tuple(_move(source, (*path, place), inner, world, allowed) for place, inner in enumerate(value))


def _move(source: Source, path: Path, value: Any, world: WorldSpec, allowed: frozenset[str]) -> AnyMove:
    if not isinstance(value, dict):
        raise source.error(path, f"expected a move, found {kind_of(value)}")
    verb = next((verb for verb in VERBS if verb in value), None)
    if verb is None or verb not in allowed:
        name = verb or next(iter(value), "")
        problem = "not allowed here" if verb else "unknown move"
        there = among(str(name), [v for v in VERBS if v in allowed], "allowed")
        raise source.error(path, f"{problem}: {name!r}{there}")
    move: Any = _convert(source, path, VERBS[verb], value)
    if verb in EVENTS or verb in ("repeat", "either"):
        for field in ("until", "stop"):
            if field in value:
                kind = "an event" if verb in EVENTS else "several moves"
                raise source.error((*path, field), f"{verb} is {kind} and no turn; it has no {field!r}")
    if isinstance(move.stop, str) and len(move.stop) > MAX_LABEL:
        raise source.error((*path, "stop"), f"a label has at most {MAX_LABEL} characters")
    if isinstance(move, TurnMove):
        inner = _moves(source, (*path, "turn"), move.turn, world, _PARTS)
        if all(isinstance(part, CrashMove) for part in inner):
            raise source.error((*path, "turn"), "a turn needs a move besides crash")
        for place, part in enumerate(inner):
            if isinstance(part, CrashMove) and part.spec.at != "tool":
                here = (*path, "turn", place, "crash", "at")
                raise source.error(here, f"expected tool within a turn, found {part.spec.at!r}")
        return msgspec.structs.replace(move, turn=inner)
    if isinstance(move, RepeatMove):
        inner = _moves(source, (*path, "repeat", "do"), move.repeat.do, world, allowed)
        if all(verb_of(part) in {*EVENTS, "repeat", "either"} for part in walk(inner)):
            raise source.error((*path, "repeat", "do"), "holds events only; a repeat needs a turn")
        return msgspec.structs.replace(move, repeat=msgspec.structs.replace(move.repeat, do=inner))
    if isinstance(move, DelegateMove):
        inner = _moves(source, (*path, "delegate", "do"), move.delegate.do, world, _CHILD)
        return msgspec.structs.replace(move, delegate=msgspec.structs.replace(move.delegate, do=inner))
    if isinstance(move, EitherMove):
        return _either(source, path, move, world, allowed)
    check_move(source, path, move, world)
    return move  # type: ignore[no-any-return]


def _either(
    source: Source, path: Path, move: EitherMove, world: WorldSpec, allowed: frozenset[str]
) -> EitherMove:
    if not move.either:
        raise source.error((*path, "either"), "a choice needs at least one option")
    if sum(option.p for option in move.either) > 1 + 1e-9:
        raise source.error(
            (*path, "either"), f"probabilities add up to {sum(o.p for o in move.either):g}; at most 1"
        )
    options = tuple(
        Option(
            p=option.p,
            do=_moves(source, (*path, "either", place, "do"), option.do, world, allowed) if option.do else (),
        )
        for place, option in enumerate(move.either)
    )
    return msgspec.structs.replace(move, either=options)
