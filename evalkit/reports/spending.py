"""What a live run has spent, in words and as a table."""

from __future__ import annotations

from typing import Any

HEADS = (
    "spent on",
    "for",
    "attempts",
    "requests",
    "input",
    "from cache",
    "to cache",
    "output",
    "thinking",
    "US $",
)


def spending_lines(spending: dict[str, Any]) -> list[str]:
    """The sums in a few sentences: all that was answered, what came to nothing, and who counted."""
    said = f"Spent: {_sum(spending)} in {spending['requests']:,} requests{_limits(spending)}."
    nothing = spending["nothing"]
    if nothing["requests"]:
        said += f" Of these {_sum({**nothing, 'priced': spending['priced']})} came to nothing."
    lines = [said]
    counted = spending["counted_by"]
    if counted.get("counter"):
        lines.append(
            f"{counted['counter']:,} answers came without their usage: evalkit's counter stands for it "
            "(UTF-8 bytes over 4)."
        )
    if counted.get("worst case"):
        lines.append(
            f"{counted['worst case']:,} requests have no whole answer, cut off or lost with a kill: they "
            "count with their worst case."
        )
    for status, found in spending["waited"].items():
        lines.append(
            f"{found['times']:,} refusals with status {status} were waited out ({found['seconds']:.0f} s in "
            "all): they are no faults of the episodes."
        )
    return lines


def _sum(part: dict[str, Any]) -> str:
    tokens = f"{_tokens(part):,} tokens"
    return f"${part['usd']:.4f} ({tokens})" if part["priced"] else tokens


def _tokens(part: dict[str, Any]) -> int:
    return sum(count for kind, count in part["tokens"].items() if kind != "thinking")


def _limits(spending: dict[str, Any]) -> str:
    limits = []
    if spending["max_usd"] is not None:
        limits.append(f"${spending['max_usd']:g}")
    if spending["max_tokens"] is not None:
        limits.append(f"{spending['max_tokens']:,} tokens")
    return f", limit {' and '.join(limits)}" if limits else ""


def spending_rows(spending: dict[str, Any]) -> list[list[str]]:
    """The table: what was spent on episodes that were kept, and on what came to nothing, and why."""
    rows = [
        [part["on"], part["purpose"], f"{part['attempts']:,}", *_cells(part, spending["priced"])]
        for part in spending["on"]
    ]
    return [*rows, ["all", "", "", *_cells(spending, spending["priced"])]]


def _cells(part: dict[str, Any], priced: bool) -> list[str]:
    counts = (f"{count:,}" for count in part["tokens"].values())
    return [f"{part['requests']:,}", *counts, f"{part['usd']:.4f}" if priced else "no price"]
