"""Strategies whose verifier errs: assumed rates, named in the strategy's name, for sweeps.

``gate@misses=0.1`` is ``gate`` with a verifier that calls finished work unfinished in a tenth of its
answers; ``fooled`` is the reverse. Errors are independent from look to look; ``errors=persistent`` behind the
rates draws them once for a run. The rates are assumptions, printed wherever results are.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec

from evalkit.strategies.condition import Composed, Condition, Not, parts_of
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import evidence_over_time, verifier

#: Rates of ``--sweep``, of each kind of error in turn, the other kind absent.
SWEPT = (0.05, 0.1, 0.2, 0.4)

_NAME = re.compile(r"(?P<base>.+)@(?P<rates>(?:misses|fooled|errors)=[^@]*)$")


def split_name(name: str) -> tuple[str, dict[str, Any]]:
    """A name's strategy and what is assumed of its verifier's errors. ValueError for what cannot be."""
    match = _NAME.match(name)
    if match is None:
        return name, {}
    rates: dict[str, Any] = {}
    for part in match["rates"].split(","):
        kind, _, value = part.partition("=")
        if kind not in ("misses", "fooled", "errors") or kind in rates:
            raise ValueError(
                f"{name!r}: after @ misses=RATE, fooled=RATE and errors=KIND are allowed, found {part!r}"
            )
        if kind == "errors":
            rates[kind] = value
            continue
        try:
            rates[kind] = float(value)
        except ValueError:
            raise ValueError(f"{name!r}: {kind} is a probability from 0 to 1, got {value!r}") from None
    return match["base"], rates


def swept_names(name: str) -> list[str]:
    """The names of a sweep over a strategy: each kind of error at each rate of :data:`SWEPT`."""
    return [f"{name}@{kind}={rate:g}" for kind in ("misses", "fooled") for rate in SWEPT]


def with_sweeps(strategies: dict[str, Strategy]) -> tuple[str, ...]:
    """The names, each that holds a verifier followed by its sweep."""
    return tuple(
        name
        for base, strategy in strategies.items()
        for name in (base, *(swept_names(base) if has_verifier(strategy.done_when) else ()))
    )


class AssumedErrors(msgspec.Struct, frozen=True):
    """What is assumed of one verifier: what it sees, how often it errs, whether that is drawn once."""

    sees: str
    misses: float
    fooled: float
    errors: str


def assumed_errors(strategy: Strategy) -> tuple[AssumedErrors, ...]:
    """What is assumed of each verifier that a strategy asks."""
    return tuple(
        AssumedErrors(part.sees, part.misses, part.fooled, part.errors)
        for part in parts_of(strategy.done_when)
        if isinstance(part, verifier)
    )


def has_verifier(condition: Condition) -> bool:
    """Whether a condition asks a verifier anywhere."""
    return _with_verifiers(condition, {}) is not condition


def with_rates(strategy: Strategy, name: str, rates: dict[str, Any]) -> Strategy:
    """The strategy with every verifier in it erring at these rates. ValueError where it has none."""
    if not has_verifier(strategy.done_when):
        raise ValueError(f"{name!r}: {strategy.name} has no verifier whose errors could be assumed")
    return strategy.but(name=name, done_when=_with_verifiers(strategy.done_when, rates))


def _with_verifiers(condition: Condition, rates: dict[str, Any]) -> Condition:
    """The condition with its verifiers replaced; the same object where it has none."""
    if isinstance(condition, verifier):
        # A new object even where nothing changes: that is how it is seen that there is a verifier.
        return replace(condition, **rates)
    if isinstance(condition, evidence_over_time):
        of = _with_verifiers(condition.of, rates)
        return condition if of is condition.of else replace(condition, of=of)
    if isinstance(condition, Composed):
        parts = tuple(_with_verifiers(part, rates) for part in condition.parts)
        same = all(new is old for new, old in zip(parts, condition.parts, strict=True))
        return condition if same else type(condition)(parts)
    if isinstance(condition, Not):
        part = _with_verifiers(condition.part, rates)
        return condition if part is condition.part else Not(part)
    if isinstance(condition, ChecksFirst):
        return ChecksFirst(_with_verifiers(condition.otherwise, rates))
    return condition
