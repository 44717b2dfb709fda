"""Strategies whose verifier errs: assumed rates, named in the strategy's name, for sweeps.

``gate@misses=0.1`` is ``gate`` with a verifier that calls finished work unfinished in a tenth of its
answers; ``fooled`` is the reverse. The rates are assumptions, printed wherever results are.
"""

from __future__ import annotations

import re
from dataclasses import replace

from evalkit.strategies.conditions import Condition, Not, _Composed, verifier
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy

#: Rates of ``--sweep``, of each kind of error in turn, the other kind absent.
SWEPT = (0.05, 0.1, 0.2, 0.4)

_NAME = re.compile(r"(?P<base>.+)@(?P<rates>(?:misses|fooled)=[^@]*)$")


def split_name(name: str) -> tuple[str, dict[str, float]]:
    """A name's strategy and its assumed error rates; no rates where it has none. ValueError for bad ones."""
    match = _NAME.match(name)
    if match is None:
        return name, {}
    rates = {}
    for part in match["rates"].split(","):
        kind, _, value = part.partition("=")
        if kind not in ("misses", "fooled") or kind in rates:
            raise ValueError(f"{name!r}: after @ misses=RATE and fooled=RATE are allowed, found {part!r}")
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


def has_verifier(condition: Condition) -> bool:
    """Whether a condition asks a verifier anywhere."""
    return _with(condition, {}) is not condition


def with_rates(strategy: Strategy, name: str, rates: dict[str, float]) -> Strategy:
    """The strategy with every verifier in it erring at these rates. ValueError where it has none."""
    if not has_verifier(strategy.done_when):
        raise ValueError(f"{name!r}: {strategy.name} has no verifier whose errors could be assumed")
    return strategy.but(name=name, done_when=_with(strategy.done_when, rates))


def _with(condition: Condition, rates: dict[str, float]) -> Condition:
    """The condition with its verifiers replaced; the same object where it has none."""
    if isinstance(condition, verifier):
        return replace(
            condition,
            misses=rates.get("misses", condition.misses),
            fooled=rates.get("fooled", condition.fooled),
        )
    if isinstance(condition, _Composed):
        parts = tuple(_with(part, rates) for part in condition.parts)
        same = all(new is old for new, old in zip(parts, condition.parts, strict=True))
        return condition if same else type(condition)(parts)
    if isinstance(condition, Not):
        part = _with(condition.part, rates)
        return condition if part is condition.part else Not(part)
    if isinstance(condition, ChecksFirst):
        return ChecksFirst(_with(condition.otherwise, rates))
    return condition
