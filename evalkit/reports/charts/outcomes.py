"""How runs ended and what was true of the work, as shares of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reports.charts.groups import GROUPS, group_of
from evalkit.reports.charts.style import (
    HEADED,
    INK,
    TITLE,
    WIDE,
    beside,
    inches,
    one,
    readable_on,
    slim,
)
from evalkit.reports.formatting import Row, count, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def outcomes_chart(rows: list[Row], title: str, width: float = WIDE) -> Figure:
    """Stacked bars, best strategy on top. What counted as correct is underlined and added up on the right."""
    counted = [f"{count(row['correct']['scenario_count'])} of {row['scenarios']}" for row in rows]
    names = [label(row) for row in rows]
    margin = inches([*counted, "correct"], 10) + 0.25
    if width == WIDE:
        figure, axes = one(width, 1.9 + 0.36 * len(rows), margin=margin)
    else:
        figure, axes = slim(names, 0.36, below=1.5, margin=margin)
    left = [0.0] * len(rows)
    for group, (colour, hatch) in GROUPS.items():
        shares = [_share(row, row["scenario_outcomes"], group) for row in rows]
        if not any(shares):
            continue
        bars = axes.barh(
            names,
            shares,
            left=left,
            height=0.74,
            color=colour,
            hatch=hatch,
            edgecolor="#ffffff" if hatch else colour,
            linewidth=0,
            label=group,
        )
        for y, (bar, share) in enumerate(zip(bars, shares, strict=True)):
            _underline(axes, y, bar.get_x(), _share(rows[y], rows[y]["correct_outcomes"], group))
            if share >= 4.5 * WIDE / width:
                axes.text(
                    bar.get_x() + share / 2,
                    bar.get_y() + bar.get_height() / 2,
                    f"{share:.0f}",
                    ha="center",
                    va="center_baseline",
                    fontsize=9.5,
                    color=readable_on(colour),
                    bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5} if hatch else None,
                )
        left = [before + share for before, share in zip(left, shares, strict=True)]
    beside(axes, "correct", counted, 8, 10)
    axes.set_ylim(len(rows) - 0.45, -0.62)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of scenarios, %")
    axes.set_title(title, gid=TITLE, pad=HEADED)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.plot([], [], color=INK, linewidth=3, label="counted as correct")
    if width == WIDE:
        figure.legend(loc="outside lower center", ncols=4, fontsize=10)
    else:
        figure.legend(loc="lower center", ncols=2, fontsize=10)
    return figure


def _underline(axes: Axes, y: int, start: float, share: float) -> None:
    """A stroke under the part of a segment that counted as correct, a little short of its ends."""
    if share:
        axes.plot(
            [start + 0.15, start + share - 0.15],
            [y + 0.425] * 2,
            color=INK,
            linewidth=3,
            solid_capstyle="butt",
        )


def _share(row: Row, outcomes: Row, group: str) -> float:
    """The share of a row's scenarios whose outcome is in a group, in percent."""
    found = sum(part for outcome, part in outcomes.items() if group_of(outcome) == group)
    return 100 * float(found) / int(row["scenarios"])
