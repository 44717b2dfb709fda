"""Turns saved on work that nobody can finish, against what is lost of work that can be finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.experiments.studies.giving_up import MOST_LOST
from evalkit.reports.charts.cost import pareto
from evalkit.reports.charts.style import BLUE, GREEN, GREY, INK, ORANGE, PINK, RED, TITLE, WIDE, one

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: By family: colour, marker, and where its numbers stand beside their points, in points; None: nowhere.
_LOOKS: dict[str, tuple[str, str, tuple[float, float] | None]] = {
    "nudges": (BLUE, "o", (0, 9)),
    "no progress": (RED, "s", (0, -15)),
    "same failure": (GREEN, "^", (9, -4)),
    "budget": (PINK, "v", (9, -4)),
    "together": (ORANGE, "D", None),
}
_HATCHES = ("//", "..", "")
#: Inches that the chart is high, and below a narrow one for its legend.
_HEIGHT, _LEGEND = 6.2, 1.9


def giving_up_chart(figures: dict[str, Any], title: str, width: float = WIDE) -> Figure:
    """A line for each family, from patient to impatient; grey boxes: what published early stops claim."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    narrow = width != WIDE
    figure, axes = one(width, _HEIGHT + _LEGEND * narrow)
    rows = [row for row in figures["rows"] if row["family"] != "none" and 100 * row["lost"] <= MOST_LOST]
    for each, hatch in zip(figures["published"], _HATCHES, strict=False):
        (left, right), (low, high) = each["saves"], each["loses"]
        box = Rectangle(
            (left, low - 0.25), right - left, max(high - low, 0.0) + 0.5,
            facecolor=GREY, alpha=0.35, edgecolor=INK, hatch=hatch, zorder=0,
        )  # fmt: skip
        axes.add_patch(box)
    for family, (colour, marker, beside) in _LOOKS.items():
        mine = [row for row in rows if row["family"] == family]
        x, y = ([100 * row[name] for row in mine] for name in ("saved", "lost"))
        axes.plot(x, y, color=colour, marker=marker, markersize=7, linewidth=1.4, alpha=0.9)
        for row, across, up in zip(mine, x, y, strict=True):
            # At the corner nothing is saved and nothing lost, whoever it is.
            if beside is None or across < 1:
                continue
            axes.annotate(
                row["strategy"].removeprefix(family).split()[0], (across, up), xytext=beside,
                textcoords="offset points", fontsize=9, color=colour, ha="center", weight="bold",
            ).set_in_layout(False)  # fmt: skip
    best = pareto([(100 * row["lost"], 100 * row["saved"]) for row in rows])
    axes.step([saved for _, saved in best], [lost for lost, _ in best], where="pre", color=INK, linewidth=0.8)
    marks: list[Any] = [
        Line2D([], [], color=colour, marker=marker, label=family)
        for family, (colour, marker, _) in _LOOKS.items()
    ]
    marks.append(Line2D([], [], color=INK, linewidth=0.8, label="nothing saves more and loses less"))
    marks += [
        Patch(facecolor=GREY, alpha=0.35, edgecolor=INK, hatch=hatch, label=_claim(each))
        for each, hatch in zip(figures["published"], _HATCHES, strict=False)
    ]
    if narrow:
        axes.legend(handles=marks, loc="upper left", bbox_to_anchor=(-0.12, -0.12), fontsize=9)
    else:
        axes.legend(handles=marks, loc="upper left", fontsize=9)
    axes.set_xlim(0, 100)
    axes.set_ylim(-3, MOST_LOST)
    axes.grid(axis="both")
    axes.set_axisbelow(True)
    axes.set_xlabel("turns saved on stuck work, %")
    axes.set_ylabel("finished work lost, %")
    axes.set_title(title, gid=TITLE)
    return figure


def _claim(each: dict[str, Any]) -> str:
    return f"{each['name']} claims ({each['of']})"
