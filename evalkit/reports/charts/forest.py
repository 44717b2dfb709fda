"""Paired differences against the baseline."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from evalkit.reports.charts.style import (
    BLUE,
    GREY,
    HEADED,
    INK,
    ORANGE,
    TITLE,
    WIDE,
    beside,
    inches,
    one,
    slim,
)
from evalkit.reports.formatting import Row, label, p_in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def forest_chart(pairs: list[Row], title: str, width: float = WIDE) -> Figure:
    """A point for the difference, a line for what the sign-flip test does not reject at 5 %.

    Blue and round: better after Holm; orange and square: worse; grey: not told apart, or counts only.
    """
    pairs = sorted(pairs, key=lambda pair: (-pair["difference"], label(pair)))
    counted = [f"+{pair['better']} −{pair['worse']} of {pair['scenarios']}" for pair in pairs]
    tested = [_tested(pair) for pair in pairs]
    first = inches([*counted, "scenarios"], 9.5)
    margin = first + inches([*tested, "p, Holm"], 9.5) + 0.3
    names = [label(pair) for pair in pairs]
    if width == WIDE:
        figure, axes = one(width, 1.9 + 0.34 * len(pairs), margin=margin)
    else:
        figure, axes = slim(names, 0.34, below=1.35, margin=margin)
    lowest = min([0.0, *(100 * float(pair["difference"]) for pair in pairs)])
    for y, pair in enumerate(pairs):
        sure = pair["p_holm"] is not None and pair["p_holm"] <= 0.05
        better = pair["difference"] > 0
        colour = (BLUE if better else ORANGE) if sure else GREY
        if pair["low"] is not None:
            axes.plot([100 * pair["low"], 100 * pair["high"]], [y, y], color=colour, linewidth=2.4, zorder=2)
            lowest = min(lowest, 100 * pair["low"])
        axes.plot(
            100 * pair["difference"],
            y,
            marker="o" if better or not sure else "s",
            markersize=8,
            color=colour,
            markeredgecolor="#ffffff",
            zorder=3,
        )
    for column, (head, lines) in enumerate((("scenarios", counted), ("p, Holm", tested))):
        beside(axes, head, lines, 8 + column * (first * 72 + 6), 9.5)
    axes.axvline(0, color=INK, linewidth=1)
    axes.set_yticks(range(len(pairs)), names)
    axes.set_ylim(len(pairs) - 0.4, -0.7)
    axes.set_xlim(max(-103.0, lowest - 6), 103)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    said = (
        f"correct, difference from {pairs[0]['baseline']} in percentage points",
        "(line: what the test does not reject at 5 %, before Holm; colour: after Holm)",
    )
    if width == WIDE:
        axes.set_xlabel("\n".join(said))
    else:
        figure.supxlabel("\n".join(fill(line, 46) for line in said), fontsize=10)
    axes.set_title(title, pad=HEADED, gid=TITLE)
    return figure


def _tested(pair: Row) -> str:
    if pair["p"] is None:
        return "counts only" if "counts" in pair["note"] else str(pair["note"])
    return p_in_words(pair["p_holm"])
