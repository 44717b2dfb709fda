"""How runs ended and what was true of the work, as shares of scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

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

_Line: TypeAlias = "tuple[tuple[float, float], tuple[float, float]]"


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
    correct: list[_Line] = []
    for group, (colour, hatch) in GROUPS.items():
        shares = [_share(row, row["scenario_outcomes"], group) for row in rows]
        if not any(shares):
            continue
        _bars(axes, left, shares, group)
        for y, (start, share) in enumerate(zip(left, shares, strict=True)):
            right = _share(rows[y], rows[y]["correct_outcomes"], group)
            if right:
                # Under the part of a segment that counted as correct, a little short of its ends.
                correct.append(((start + 0.15, y + 0.425), (start + right - 0.15, y + 0.425)))
            if share >= 4.5 * WIDE / width:
                axes.text(
                    start + share / 2,
                    y,
                    f"{share:.0f}",
                    ha="center",
                    va="center_baseline",
                    fontsize=9.5,
                    color=readable_on(colour),
                    bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5} if hatch else None,
                )
        left = [before + share for before, share in zip(left, shares, strict=True)]
    _strokes(axes, correct)
    axes.set_yticks(range(len(rows)), names)
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


def _bars(axes: Axes, left: list[float], shares: list[float], group: str) -> None:
    """The segments of a group. They are one artist: each by itself takes much longer to make and to draw."""
    from matplotlib.collections import PolyCollection

    colour, hatch = GROUPS[group]
    boxes = [
        [(start, y - 0.37), (start + share, y - 0.37), (start + share, y + 0.37), (start, y + 0.37)]
        for y, (start, share) in enumerate(zip(left, shares, strict=True))
        if share
    ]
    segments = PolyCollection(
        boxes,
        facecolors=colour,
        hatch=hatch,
        edgecolors="#ffffff" if hatch else colour,
        linewidths=0,
        label=group,
    )
    axes.add_collection(segments, autolim=False)


def _strokes(axes: Axes, lines: list[_Line]) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(lines, colors=INK, linewidths=3, capstyle="butt"), autolim=False)


def _share(row: Row, outcomes: Row, group: str) -> float:
    """The share of a row's scenarios whose outcome is in a group, in percent."""
    found = sum(part for outcome, part in outcomes.items() if group_of(outcome) == group)
    return 100 * float(found) / int(row["scenarios"])
