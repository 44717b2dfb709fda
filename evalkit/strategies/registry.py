"""Strategies by name: presets, entry points, ``module:name``, and YAML files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec

from evalkit.core.names import among, did_you_mean
from evalkit.core.validation import refusal
from evalkit.scenarios.yaml_source import ScenarioError, read_file, read_yaml
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import All, Any_, Condition, Not
from evalkit.strategies.noisy_verifiers import split_name, with_rates
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_CONDITIONS: dict[str, Callable[..., Condition]] = {
    "silence": c.silence,
    "acceptance": c.acceptance,
    "checklist": c.checklist,
    "finish": c.finish,
    "keyword": c.keyword,
    "typed_output": c.typed_output,
    "verifier": c.verifier,
    "artifact": c.artifact,
    "certificate": c.certificate,
    "evidence_over_time": c.evidence_over_time,
    "no_progress": c.no_progress,
    "same_failure": c.same_failure,
    "out_of_budget": c.out_of_budget,
}


#: Strategies that a program has given as values, by name: known while it uses them.
_REGISTERED: dict[str, Strategy] = {}


@contextmanager
def registered(strategies: Mapping[str, Strategy]) -> Iterator[None]:
    """Know strategies by their names for a while. StrategyError for one without a name of its own."""
    for name in strategies:
        if name == "custom" or name in PRESETS:
            taken = "has no name" if name == "custom" else f"has the name of the preset {name!r}"
            raise StrategyError(f"a strategy {taken}; give it one: Strategy(name=..., ...)")
    before = dict(_REGISTERED)
    _REGISTERED.update(strategies)
    try:
        yield
    finally:
        _REGISTERED.clear()
        _REGISTERED.update(before)


class StrategyError(ValueError):
    """A strategy that cannot be used; one line that names it."""


#: The group of entry points under which packages offer strategies.
ENTRY_POINTS = "evalkit.strategies"


def _entry_points() -> dict[str, list[EntryPoint]]:
    """The entry points of installed packages by name; several where packages use the same one."""
    from importlib.metadata import entry_points

    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=ENTRY_POINTS):
        points.setdefault(point.name, []).append(point)
    return points


def _definition(point: EntryPoint) -> str:
    """An entry point as its package declares it, for messages."""
    package = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"entry point {point.name} = {point.value}{package}"


def strategy_names() -> tuple[str, ...]:
    """The names that :func:`find_strategy` knows without a path or module."""
    return (*PRESETS, *(name for name in _entry_points() if name not in PRESETS))


def usable_names() -> tuple[tuple[str, ...], list[str]]:
    """The same names without entry points that cannot be used, and a note on each of these.

    What some package has broken must not end a run that does not need it.
    """
    names = []
    notes = [
        f"left out: strategy {point.name!r}: {_definition(point)}: a preset has this name"
        for points in _entry_points().values()
        for point in points
        if point.name in PRESETS
    ]
    for name in strategy_names():
        try:
            find_strategy(name)
        except StrategyError as error:
            notes.append(f"left out: {error}")
        else:
            names.append(name)
    return tuple(names), notes


def find_strategy(name: str, home: str = "") -> Strategy:
    """A strategy by preset name, entry point, ``module:name`` or path of a YAML file.

    ``home`` is the folder that paths and modules are looked for from; empty: the one that this runs in.
    ``NAME@misses=0.1,fooled=0.05``: the same with a verifier that errs at these assumed rates.
    """
    if name in PRESETS:
        return PRESETS[name].strategy
    if name in _REGISTERED:
        return _REGISTERED[name]
    try:
        base, rates = split_name(name)
        if rates:
            return with_rates(find_strategy(base, home), name, rates)
    except StrategyError:
        raise
    except ValueError as error:
        raise StrategyError(str(error)) from None
    if name.endswith((".yaml", ".yml")):
        return read_strategy(Path(home, name))
    if ":" in name:
        return _from_module(name, home or os.getcwd())
    if name.endswith(".py"):
        raise StrategyError(_of_a_file(name, home))
    points = _entry_points().get(name, [])
    if not points:
        known = (*strategy_names(), *_REGISTERED)
        defined = _defined_here(name, home)
        guess = did_you_mean(name, known) if not defined else f" (did you mean {defined!r}?)"
        raise StrategyError(
            f"unknown strategy {name!r}{guess}; known: {', '.join(known)}, module:name, or a YAML file"
        )
    if len(points) > 1:
        defined = "; ".join(sorted(map(_definition, points)))
        raise StrategyError(f"strategy {name!r} is offered twice: {defined}")
    return _from_package(points[0])


def _from_package(point: EntryPoint) -> Strategy:
    try:
        loaded = point.load()
    except Exception as error:
        message = f"strategy {point.name!r}: {_definition(point)} cannot be loaded: {_message(error)}"
        raise StrategyError(message) from error
    try:
        return _strategy_of(loaded, point.name)
    except StrategyError as error:
        raise StrategyError(f"{error} ({_definition(point)})") from error.__cause__


def _defined_here(name: str, home: str) -> str:
    """``module:name`` of a file of the folder that defines a name; found by its text, nothing is run."""
    if not name.isidentifier():
        return ""
    pattern = re.compile(rf"^(?:def {name}\b|{name}\s*[:=])", re.MULTILINE)
    for file in sorted(Path(home or os.getcwd()).glob("*.py")):
        if file.stem.isidentifier() and pattern.search(file.read_text(encoding="utf-8", errors="replace")):
            return f"{file.stem}:{name}"
    return ""


#: What stands at the beginning of a line that makes a strategy, in a Python file.
_MAKES = re.compile(
    r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)*Strategy\(|^def (\w+)\([^)]*\)\s*->\s*Strategy:", re.M
)


def _of_a_file(name: str, home: str) -> str:
    """What is said of a Python file in the place of a strategy; found by its text, nothing is run."""
    file = Path(home, name)
    if not file.is_file():
        return f"strategy {name!r}: no such file; a strategy of a Python file is named module:name"
    parts = Path(name).with_suffix("").parts
    made = [one or other for one, other in _MAKES.findall(file.read_text(encoding="utf-8", errors="replace"))]
    if not all(part.isidentifier() for part in parts):
        return f"strategy {name!r} is a Python file: in its folder name a strategy of it, {file.stem}:NAME"
    names = ", ".join(f"{'.'.join(parts)}:{strategy}" for strategy in made or ["NAME"])
    return f"strategy {name!r} is a Python file; name a strategy of it: {names}"


def _message(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _strategy_of(value: Any, name: str) -> Strategy:
    """What a name stands for as a strategy under this name; StrategyError for what is and makes none."""
    if isinstance(value, Condition) or (isinstance(value, type) and issubclass(value, Condition)):
        raise StrategyError(f"{name!r} is a condition; a strategy is Strategy(done_when=...)")
    if callable(value) and not isinstance(value, Strategy):
        try:
            value = value()
        except Exception as error:
            raise StrategyError(f"strategy {name!r} cannot be made: {_message(error)}") from error
    if not isinstance(value, Strategy):
        raise StrategyError(f"{name!r} is not a Strategy: found {type(value).__name__}")
    return value.but(name=name) if value.name == "custom" else value


def _from_module(name: str, home: str) -> Strategy:
    module, _, attribute = name.partition(":")
    if home not in sys.path:
        sys.path.insert(0, home)
    try:
        imported = import_module(module)
    except ModuleNotFoundError as error:
        raise StrategyError(f"strategy {name!r}: no module named {error.name!r}") from error
    except Exception as error:
        raise StrategyError(f"strategy {name!r} cannot be imported: {_message(error)}") from error
    try:
        value = getattr(imported, attribute)
    except AttributeError as error:
        there = [key for key, value in vars(imported).items() if isinstance(value, Strategy)]
        raise StrategyError(
            f"strategy {name!r}: {module!r} has no {attribute!r}{among(attribute, there, 'strategies in it')}"
        ) from error
    return _strategy_of(value, name)


def read_strategy(path: Path) -> Strategy:
    """A strategy from a YAML file: the fields of :class:`Strategy`, ``done_when`` as a condition.

    A condition is a name (``acceptance``), a name with arguments (``{verifier: {sees: evidence}}``), or
    ``all``, ``any`` (lists) or ``not``.
    """
    try:
        documents = read_yaml(read_file(path), str(path))
    except ScenarioError as error:
        raise StrategyError(str(error)) from None
    value = documents[0].value if len(documents) == 1 else None
    if not isinstance(value, dict):
        raise StrategyError(f"{path}: a strategy is a mapping")
    source = documents[0]

    def wrong(field: str, message: str) -> StrategyError:
        return StrategyError(str(source.error((field,), message)))

    allowed = [field.name for field in fields(Strategy)]
    for key in value:
        if key not in allowed:
            guess = did_you_mean(str(key), allowed)
            raise wrong(str(key), f"unknown field{guess}; allowed: {', '.join(allowed)}")
    if "done_when" not in value:
        raise StrategyError(f"{path}: field 'done_when' is missing")
    given_fields = dict(value)
    conditions: dict[str, Condition] = {}
    for name in ("done_when", "give_up_when"):
        if given_fields.get(name) is None:
            continue
        try:
            conditions[name] = _condition(given_fields.pop(name))
        except (ValueError, TypeError) as error:
            raise wrong(name, " ".join(str(error).split())[:500].removeprefix("done_when: ")) from None
    if "done_when" not in conditions:
        raise wrong("done_when", "expected one condition, found nothing")
    done_when = conditions["done_when"]
    for name, inner in given_fields.items():
        # One at a time: an error is of the line of the field that it is about.
        try:
            _check_types(Strategy, {name: inner})
            Strategy(**{name: inner, "done_when": done_when})
        except (ValueError, TypeError) as error:
            raise wrong(name, " ".join(str(error).split())[:500].removeprefix(f"{name}: ")) from None
    return Strategy(**{"name": path.stem, **given_fields, **conditions})


def _condition(value: Any) -> Condition:
    if isinstance(value, str):
        value = {value: {}}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"done_when: expected one condition, found {str(value)[:100]!r}")
    ((name, arguments),) = value.items()
    if name in ("all", "any"):
        if not isinstance(arguments, list) or not arguments:
            raise ValueError(f"done_when: {name} takes a list of conditions")
        parts = tuple(_condition(part) for part in arguments)
        return All(parts) if name == "all" else Any_(parts)
    if name == "not":
        return Not(_condition(arguments))
    if name not in _CONDITIONS:
        raise ValueError(
            f"done_when: unknown condition {name!r}{did_you_mean(str(name), _CONDITIONS)}; "
            f"known: {', '.join(_CONDITIONS)}, all, any, not"
        )
    if not isinstance(arguments or {}, dict):
        raise ValueError(f"done_when: {name} takes a mapping of arguments")
    arguments = arguments or {}
    if name == "evidence_over_time" and "of" in arguments:
        arguments = {**arguments, "of": _condition(arguments["of"])}
    _check_types(_CONDITIONS[name], arguments)
    return _CONDITIONS[name](**arguments)


def _check_types(kind: Callable[..., Any], values: dict[str, Any]) -> None:
    """ValueError for a value that is not of its field's type; which values it allows the class says."""
    hints = get_type_hints(kind)
    for name, value in values.items():
        options = get_args(hints.get(name))
        if name not in hints or (options and all(isinstance(option, str) for option in options)):
            continue
        try:
            msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}: {refusal(error, hints[name]).message}") from None
