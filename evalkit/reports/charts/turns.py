"""Turns to the end."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from evalkit.reports.charts.style import BLUE, GREY, RED, SKY, TITLE, WIDE, one, slim
from evalkit.reports.formatting import Row, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def turns_chart(turns: list[Row], order: list[str], width: float = WIDE) -> Figure:
    """For each strategy the middle half as a bar, 5 to 95 % as a line, the median as a dot, the longest.

    Where the middle half is one number the bar is still as wide as a turn, so that it shows.
    """
    known = {label(row): row for row in turns}
    rows = [known[name] for name in order if name in known]
    names = [label(row) for row in rows]
    if width == WIDE:
        figure, axes = one(width, 1.9 + 0.32 * len(rows))
    else:
        figure, axes = slim(names, 0.32, below=1.0)
    for y, row in enumerate(rows):
        q = row["quantiles"]
        axes.plot([q["0.05"], q["0.95"]], [y, y], color=BLUE, linewidth=1.6, zorder=1)
        axes.barh(y, q["0.75"] - q["0.25"] + 1, left=q["0.25"] - 0.5, height=0.52, color=SKY, zorder=2)
        axes.plot(q["0.5"], y, marker="o", markersize=6.5, color=BLUE, markeredgecolor="#ffffff", zorder=3)
        never = row["never"]
        axes.plot(
            row["most"],
            y,
            marker="x" if never else "|",
            markersize=7 if never else 9,
            markeredgewidth=2,
            color=RED if never else GREY,
            zorder=2,
        )
        if never:
            axes.annotate(
                f"{never} never ended",
                (row["most"], y),
                xytext=(8, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    most = max((row["most"] for row in rows), default=1)
    axes.set_xlim(0, most * 1.16)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    said = "model turns: dot the median, bar 25 to 75 %, line 5 to 95 %, stroke the longest"
    if width == WIDE:
        axes.set_xlabel(said)
    else:
        figure.supxlabel(fill(said, 46), fontsize=10)
    axes.set_title("Turns to the end", gid=TITLE)
    return figure
