"""What assumed error rates of a verifier do to a strategy."""

from __future__ import annotations

from typing import Any

import msgspec

from evalkit.reports.formatting import Row, label, overall
from evalkit.stats.ranking import is_swept


class Sweep(msgspec.Struct, frozen=True):
    """One strategy, one kind of error: the rate of correct by assumed error rate, 0 first.

    ``below`` is the smallest rate at which it is not better than ``rival`` any more, the best strategy of
    the run that asks no verifier; None where it stays better at all of them, or there is no rival.
    """

    strategy: str
    kind: str
    rates: dict[float, dict[str, Any]]
    rival: str
    below: float | None


def sweeps(summary: Row) -> list[Sweep]:
    """The sweeps of a run, by strategy and kind of error; empty where none were run."""
    rows = [row for row in summary["rows"] if row["family"] == "all" and row["checks"] == "all"]
    found: dict[tuple[str, str], dict[float, Row]] = {}
    for row in rows:
        if is_swept(row) and row["episodes"]:
            base, _, assumed = row["strategy"].rpartition("@")
            kind, _, rate = assumed.partition("=")
            if "," not in assumed:
                found.setdefault((base, kind), {})[float(rate)] = row
    plain = {row["strategy"]: row for row in rows if not is_swept(row)}
    swept = {base for base, _ in found}
    rival = next((row for row in overall(summary) if row["strategy"] not in swept), None)
    result = []
    for (base, kind), by_rate in found.items():
        if base in plain:
            by_rate[0.0] = plain[base]
        rates = {rate: by_rate[rate]["correct"] for rate in sorted(by_rate)}
        below = None
        if rival is not None:
            bar = rival["correct"]["scenario_rate"] or 0.0
            below = next((rate for rate, cell in rates.items() if (cell["scenario_rate"] or 0) <= bar), None)
        result.append(Sweep(base, kind, rates, label(rival) if rival else "", below))
    return result
