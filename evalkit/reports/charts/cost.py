"""Reliability against cost, with the Pareto line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reports.charts.style import BLUE, GREY, INK, ORANGE, TITLE, inches, one, spread
from evalkit.reports.figures import Row, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pareto(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points (cost, value) that none beats: no other costs less or the same and is worth more."""
    line: list[tuple[float, float]] = []
    for cost, value in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not line or value > line[-1][1]:
            line.append((cost, value))
    return line


def cost_chart(rows: list[Row], title: str) -> Figure:
    """Tokens per episode against scenarios that are correct; names stand in a column, led to their points."""
    shared: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        point = (row["tokens"] or 1.0, 100 * (row["correct"]["scenario_rate"] or 0.0))
        shared.setdefault(point, []).append(label(row))
    words = {point: _joined(names) for point, names in shared.items()}
    figure, axes = one(10.5, 6.2, margin=inches(list(words.values()), 9.5) + 0.35)
    points = sorted(shared, key=lambda point: (-point[1], point[0]))
    best = pareto(points)
    axes.set_xscale("log")
    costs = [cost for cost, _ in points]
    low, bend = min(costs) / 1.25, max(costs) * 1.2
    # From a point its line runs level to the bend, and from there to its name: no two cross.
    high = bend * (bend / low) ** 0.14
    axes.step(
        [*(x for x, _ in best), bend],
        [*(y for _, y in best), best[-1][1]],
        where="post",
        color=BLUE,
        linewidth=1.6,
        alpha=0.6,
        zorder=1,
        label="best for this cost",
    )
    places = spread([value for _, value in points], 4.4, 0.0, 100.0)
    edge = axes.get_yaxis_transform()
    for (cost, value), place in zip(points, places, strict=True):
        on_line = (cost, value) in best
        colour = BLUE if on_line else ORANGE
        axes.plot([cost, bend, high], [value, value, place], color=GREY, linewidth=0.7, alpha=0.8, zorder=0.5)
        axes.plot(
            cost,
            value,
            marker="o" if on_line else "s",
            markersize=8,
            color=colour,
            markeredgecolor="#ffffff",
            zorder=3,
        )
        axes.text(
            1.008,
            place,
            words[cost, value],
            transform=edge,
            va="center",
            fontsize=9.5,
            color=INK,
            weight="bold" if on_line else "normal",
        ).set_in_layout(False)
    axes.set_xlim(low, high)
    axes.set_ylim(-3, 104)
    ticks = [
        digit * 10**power for power in range(9) for digit in (1, 2, 5) if low <= digit * 10**power <= bend
    ]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.spines["bottom"].set_bounds(low, bend)
    axes.set_axisbelow(True)
    axes.set_xlabel("tokens per episode, mean (log scale)")
    axes.set_ylabel("correct, % of scenarios")
    axes.set_title(title, gid=TITLE)
    axes.legend(loc="lower right", fontsize=10)
    return figure


def _joined(names: list[str], most: int = 2) -> str:
    rest = f" +{len(names) - most}" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
