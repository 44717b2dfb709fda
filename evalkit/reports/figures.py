"""How figures are written wherever they are shown."""

from __future__ import annotations

from typing import Any

RATE_NAMES = {
    "premature_stop": "premature stop",
    "false_done": "false done",
    "over_continuation": "over-continuation",
    "unclosed": "unclosed",
    "correct": "correct",
}
#: In words, for a reader who sees the table first.
RATE_MEANINGS = {
    "premature_stop": "ended while the work could still have been finished",
    "false_done": "ended as done while it was not",
    "over_continuation": "went on for nothing, or never ended",
    "unclosed": "the work was complete and the run did not end as done",
    "correct": "an accepted outcome, with none of the other faults",
}
#: A rate in percent is shown from this base on; below it only counts.
PERCENT_FROM = 20


def rate(cell: dict[str, Any]) -> str:
    """``3 of 12``, with the percentage where the base is large enough, ``n/a`` for an empty base."""
    if not cell["base"]:
        return "n/a"
    text = f"{cell['count']} of {cell['base']}"
    if cell["base"] >= PERCENT_FROM:
        text += f" ({percent(cell['rate'])})"
    if cell.get("low") is not None:
        text += f" [{percent(cell['low'])}, {percent(cell['high'])}]"
    return text


def percent(value: float) -> str:
    """``12 %``; one decimal where that is all there is."""
    return f"{100 * value:.0f} %" if value == 0 or value >= 0.01 else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """A mean, with one decimal; ``n/a`` where there is none."""
    return "n/a" if value is None else f"{value:,.1f}"


def p_value(value: float | None) -> str:
    """A p-value as it is printed; a dash where none is given."""
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def label(row: dict[str, Any]) -> str:
    """The name of a contender: the strategy, or the harness where it is not the reference loop."""
    return str(row["strategy"] if row["harness"] == "loop" else row["harness"])


def overall(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows over all families and levels of checks, best first."""
    rows = [row for row in summary["rows"] if row["family"] == "all" and row["checks"] == "all"]
    return sorted(rows, key=lambda row: (-(row["correct"]["rate"] or 0), row["turns"] or 0, row["strategy"]))


def macro(summary: dict[str, Any], row: dict[str, Any], name: str) -> float | None:
    """The mean of a rate over families: each family has the same weight; None where no family has a base."""
    rates = [
        other[name]["rate"]
        for other in summary["rows"]
        if other["strategy"] == row["strategy"]
        and other["harness"] == row["harness"]
        and other["family"] != "all"
        and other[name]["rate"] is not None
    ]
    return sum(rates) / len(rates) if rates else None
