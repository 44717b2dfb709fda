"""A fit in words and tables: what was seen, what is assumed, what is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalkit.fit.bounds import MEASURES, Bound, Row
from evalkit.scenarios.population import Estimate, Population

HEADS = ("parameter", "of", "seen", "tasks", "rate", "90 %", "alike")
BOUND_HEADS = ("strategy", "completed", "handed over", "false done", "turns")


def parameter_rows(population: Population) -> list[list[str]]:
    """A row for each parameter of which there is enough for a number."""
    return [[name, *_cells(found)] for name, found in population.estimates.items() if not found.too_few]


def too_few_line(population: Population) -> str:
    """The others, with why; empty where there are none."""
    few = [f"{name} ({found.too_few})" for name, found in population.estimates.items() if found.too_few]
    return f"too few for a number: {'; '.join(few)}" if few else ""


def _cells(found: Estimate) -> list[str]:
    seen = f"{found.count} of {found.base}"
    interval = f"{found.low:.2f} to {found.high:.2f}"
    return [found.of, seen, str(found.tasks), f"{found.rate:.2f}", interval, f"{found.correlation:.2f}"]


def assumed_lines(population: Population) -> list[str]:
    """What nobody saw, with its range."""
    return [
        f"assumed: {name}, {found.low:g} to {found.high:g}: {found.says}"
        for name, found in population.assumed.items()
    ]


def bound_rows(rows: Iterable[Row], regime: str) -> list[list[str]]:
    """The bounds of a regime, a row for each strategy; shares of the recorded dones, turns of one run."""
    return [
        [row.strategy, *(_bound(name, row) for name in MEASURES)]
        for row in rows
        if row.regime == regime and not empty(row)
    ]


def empty(row: Row) -> bool:
    """Whether nothing is bounded: each share may be anything."""
    shares = [row.bounds[name] for name in MEASURES if name != "turns"]
    return all(bound.least == 0 and bound.most == bound.base for bound in shares)


def unbounded_line(rows: Iterable[Row], regime: str) -> str:
    """The strategies of which nothing is bounded; empty where there are none."""
    names = [row.strategy for row in rows if row.regime == regime and empty(row)]
    return f"of {', '.join(names)}: nothing, each share may be anything from 0 to 100 %" if names else ""


def _bound(name: str, row: Row) -> str:
    bound: Bound = row.bounds[name]
    if not bound.base:
        return "n/a"
    if name == "false_done" and row.constructed:
        return "0, by construction"
    low, high = bound.least / bound.base, bound.most / bound.base
    if name == "turns":
        return _span(f"{low:.1f}", f"{high:.1f}")
    told = _span(f"{100 * low:.0f}", f"{100 * high:.0f}") + " %"
    if bound.low is None or bound.high is None:
        return told
    return f"{told} ({100 * bound.low:.0f} to {100 * bound.high:.0f})"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def head_lines(population: Population) -> list[str]:
    """What it was fitted to, and what it is not."""
    lines = [
        f"{population.recordings} recordings of {population.tasks} tasks ({population.grouped}), "
        f"about {population.trials} of each."
    ]
    if population.refused:
        lines.append(f"No truth: {population.refused}.")
    few = sum(bool(found.too_few) for found in population.estimates.values())
    lines.append(f"{len(population.estimates)} parameters, {few} of them too few for a number.")
    return lines


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
