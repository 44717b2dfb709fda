"""False dones by the number of looks of a check that is sometimes fooled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.reports.charts.style import BLUE, GREEN, INK, ORANGE, PINK, RED, TITLE, WIDE, one, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (BLUE, ORANGE, GREEN, RED, PINK)
#: By kind of errors: marker, line, words.
_KINDS: dict[str, tuple[str, Any, str]] = {
    "independent": ("o", "-", "independent errors: line 1 − (1 − ε)^k"),
    "persistent": ("s", "--", "persistent errors: line ε"),
    "weighed": ("^", ":", "independent, weighed over time: alpha 5 %"),
}
#: Inches beside the axes for the names of the lines; inches below a narrow chart for its legend.
_MARGIN, _HEIGHT, _LEGEND = 0.75, 5.6, 1.1


def looks_chart(curves: list[dict[str, Any]], title: str, width: float = WIDE) -> Figure:
    """A line for each rate and kind: what must be is a line, what was found are marks."""
    from matplotlib.lines import Line2D

    narrow = width != WIDE
    figure, axes = one(width, _HEIGHT + _LEGEND * narrow, margin=_MARGIN)
    rates = sorted({curve["fooled"] for curve in curves})
    colours = dict(zip(rates, _COLOURS, strict=False))
    ends = []
    for curve in curves:
        marker, line, _ = _KINDS[curve["kind"]]
        looks = range(1, len(curve["false_done"]) + 1)
        found = [100 * share for share in curve["false_done"]]
        must = [100 * share for share in curve["must"]]
        colour = colours[curve["fooled"]]
        axes.plot(looks, must, color=colour, linestyle=line, linewidth=1.6)
        axes.plot(looks, found, color=colour, linestyle="none", marker=marker, markersize=5.5)
        if curve["kind"] == "independent":
            ends.append((found[-1], f"ε {100 * curve['fooled']:g} %"))
    ends.sort(reverse=True)
    for (_, words), place in zip(ends, spread([end[0] for end in ends], 5.0, 0.0, 100.0), strict=True):
        axes.text(
            1.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=10, color=INK
        ).set_in_layout(False)
    marks = [
        Line2D([], [], color=INK, linestyle=line, marker=marker, markersize=5.5, label=words)
        for marker, line, words in _KINDS.values()
    ]
    if narrow:
        axes.legend(handles=marks, loc="upper left", bbox_to_anchor=(-0.12, -0.13), fontsize=10)
    else:
        axes.legend(handles=marks, loc="upper left", fontsize=10)
    axes.set_xticks(range(1, 1 + max(len(curve["false_done"]) for curve in curves)))
    axes.set_ylim(0, 100)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel("looks")
    axes.set_ylabel("false done by then, % of episodes")
    axes.set_title(title, gid=TITLE)
    return figure
