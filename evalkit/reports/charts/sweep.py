"""What assumed error rates of a verifier do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reports.charts.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    RED,
    SKY,
    TITLE,
    inches,
    spread,
)
from evalkit.reports.formatting import Row, label
from evalkit.reports.verifier_sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = (
    (BLUE, "o", "-"),
    (RED, "s", "-"),
    (GREEN, "^", "-"),
    (ORANGE, "D", "-"),
    (SKY, "v", "--"),
    (PINK, "P", "--"),
    (INK, "X", "--"),
)
#: Inches that a panel is wide; names stand to its right.
_PANEL = 3.8
#: In words, by kind of error.
_KINDS = {"misses": "calls finished work unfinished", "fooled": "calls unfinished work finished"}


def sweep_chart(sweeps: list[Sweep], rows: list[Row]) -> Figure:
    """Correct by assumed error rate, a panel for each kind; dashed grey: the best without a verifier."""
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(sweep.kind for sweep in sweeps))
    names = list(dict.fromkeys(sweep.strategy for sweep in sweeps))
    style = dict(zip(names, _LINES * (1 + len(names) // len(_LINES)), strict=False))
    rival = sweeps[0].rival
    margin = inches([*names, rival], 9.5) + 0.2
    width, height = 0.8 + len(kinds) * (_PANEL + margin), 5.2
    figure = Figure(figsize=(width, height))
    panels = [
        figure.add_axes(
            ((0.8 + place * (_PANEL + margin)) / width, 0.7 / height, _PANEL / width, 1 - 1.15 / height)
        )
        for place in range(len(kinds))
    ]
    bar = next((100 * row["correct"]["scenario_rate"] for row in rows if label(row) == rival), None)
    for panel, kind in zip(panels, kinds, strict=True):
        mine = [sweep for sweep in sweeps if sweep.kind == kind]
        ends = []
        for sweep in mine:
            colour, marker, line = style[sweep.strategy]
            values = [100 * (cell["scenario_rate"] or 0.0) for cell in sweep.rates.values()]
            places = [100 * rate for rate in sweep.rates]
            panel.plot(
                places, values, color=colour, marker=marker, linestyle=line, linewidth=1.8, markersize=6
            )
            ends.append((values[-1], places[-1], sweep.strategy))
        if bar is not None:
            panel.axhline(bar, color=GREY, linestyle="--", linewidth=1.4, zorder=0)
            ends.append((bar, panel.get_xlim()[1], rival))
        ends.sort(key=lambda end: -end[0])
        for (_, _, name), place in zip(ends, spread([end[0] for end in ends], 5.2, 0.0, 100.0), strict=True):
            panel.text(
                1.02,
                place,
                name,
                transform=panel.get_yaxis_transform(),
                va="center",
                fontsize=9.5,
                color=INK,
                style="italic" if name == rival else "normal",
            ).set_in_layout(False)
        panel.set_xlabel(f"{_KINDS.get(kind, kind)}, % of the times")
        panel.grid(axis="both", alpha=0.25)
        panel.set_ylim(-3, 104)
    panels[0].set_ylabel("correct, % of scenarios")
    panels[0].set_title("Correct, if the verifier errs", gid=TITLE)
    return figure
