"""How figures are named, ordered and written wherever they are shown."""

from __future__ import annotations

from typing import Any

from evalkit.stats.ranking import ranked
from evalkit.stats.scenario_results import contender_name

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
    "correct": "an accepted outcome, and nothing that spoils it (over-continuation, harm, broken rules)",
}
#: The levels of checks. They are never pooled in a headline.
LEVELS = {
    "full": "Full checks",
    "weak": "Weak checks",
    "none": "No checks",
}
LEVEL_MEANINGS = {
    "full": "a strategy may run the very checks that say what is true: an upper bound",
    "weak": "the checks see a part of the work",
    "none": "nothing mechanical to ask",
}
#: A rate in percent is shown from this base on; below it only counts.
PERCENT_FROM = 20

Row = dict[str, Any]


def rate(cell: Row) -> str:
    """``3 of 12`` scenarios, seeds averaged within each; ``n/a`` for an empty base.

    With the percentage where the base is large enough, and the interval where there is one.
    """
    if not cell["base"]:
        return "n/a"
    text = f"{count(cell['scenario_count'])} of {cell['scenario_base']}"
    if cell["scenario_base"] >= PERCENT_FROM:
        text += f" ({percent(cell['scenario_rate'])})"
    if cell.get("low") is not None:
        text += f" [{percent(cell['low'])}, {percent(cell['high'])}]"
    return text


def count(value: float) -> str:
    """A number of scenarios: whole, or with one decimal where seeds differ."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def percent(value: float) -> str:
    """``12 %``; one decimal where rounding would say 0 or 100 and it is not."""
    whole = f"{100 * value:.0f}"
    if (whole == "0" and value > 0) or (whole == "100" and value < 1):
        return f"{100 * value:.1f} %"
    return f"{whole} %"


def number(value: float | None) -> str:
    """A mean: one decimal below 100; ``n/a`` where there is none."""
    return "n/a" if value is None else f"{value:,.1f}" if abs(value) < 100 else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share with two decimals; ``n/a`` where there is none."""
    return "n/a" if value is None else f"{value:.2f}"


def dollars(value: float | None) -> str:
    """An assumed cost; ``n/a`` where there is none."""
    return "n/a" if value is None else f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def p_value(value: float | None) -> str:
    """A p-value as it is printed; a dash where none is given."""
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_in_words(value: float) -> str:
    """A p-value in a sentence: ``p < 0.001``, ``p = 0.048``."""
    said = p_value(value)
    return f"p {said}" if said.startswith("<") else f"p = {said}"


def points(value: float | None) -> str:
    """A difference of rates in percentage points."""
    return "n/a" if value is None else f"{100 * value:+.0f}"


def label(row: Row) -> str:
    """The name of a row's contender."""
    return contender_name(row["strategy"], row["harness"])


def at_level(summary: Row, level: str) -> list[Row]:
    """The rows over all families at one level of checks (or ``all``), best first; sweeps left out."""
    return ranked(summary["rows"], level)


def overall(summary: Row) -> list[Row]:
    """The rows over all families and levels of checks, best first; for orders, not for headlines."""
    return at_level(summary, "all")


def levels(summary: Row) -> list[str]:
    """The levels of checks that a run has."""
    return [level for level in LEVELS if at_level(summary, level)]
