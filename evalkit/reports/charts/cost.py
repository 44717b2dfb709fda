"""Reliability against cost, with the Pareto line; each name at its point."""

from __future__ import annotations

from collections.abc import Iterator
from math import log10
from typing import TYPE_CHECKING, TypeAlias

from evalkit.reports.charts.style import BLUE, GREY, INK, ORANGE, TITLE, WIDE, fixed, inches
from evalkit.reports.formatting import Row, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point: TypeAlias = tuple[float, float]
#: Left, bottom, right, top, in points.
Box: TypeAlias = tuple[float, float, float, float]

#: Inches that the chart is high, and that are left beside its axes: left, bottom, right, top.
_HEIGHT, _LEFT, _BOTTOM, _RIGHT, _TOP = 6.4, 0.79, 0.67, 0.16, 0.51
#: Inches below a narrow chart for its legend: within it there is no room.
_LEGEND = 0.6
_SIZE = 9.5
#: Half of what a marker takes, in points.
_MARK = 5.0


def pareto(points: list[Point]) -> list[Point]:
    """The points (cost, value) that none beats: no other costs less or the same and is worth more."""
    line: list[Point] = []
    for cost, value in sorted(set(points), key=lambda point: (point[0], -point[1])):
        if not line or value > line[-1][1]:
            line.append((cost, value))
    return line


def cost_chart(rows: list[Row], title: str, width: float = WIDE) -> Figure:
    """Tokens per episode against scenarios that are correct. Points that are the same share a label."""
    shared: dict[Point, list[str]] = {}
    for row in rows:
        point = (row["tokens"] or 1.0, 100 * (row["correct"]["scenario_rate"] or 0.0))
        shared.setdefault(point, []).append(label(row))
    points = sorted(shared, key=lambda point: (-point[1], point[0]))
    best = pareto(points)
    below = 0.0 if width == WIDE else _LEGEND
    high, wide = _HEIGHT - _BOTTOM - _TOP, width - _LEFT - _RIGHT
    whole = _HEIGHT + below
    place = _LEFT / width, (_BOTTOM + below) / whole, wide / width, high / whole
    figure, axes = fixed(width, whole, place)
    across, up = 72 * wide, 72 * high
    low, most = _span([cost for cost, _ in points], 1.5 if below else 1.25)
    bottom = max(-3.0, min(value for _, value in points) - 8)
    top = 104.0
    axes.set_xscale("log")
    axes.set_xlim(low, most)
    axes.set_ylim(bottom, top)
    _draw_points(axes, points, best, most)
    at = {
        (cost, value): (
            across * log10(cost / low) / log10(most / low),
            up * (value - bottom) / (top - bottom),
        )
        for cost, value in points
    }
    words = {point: _joined(names) for point, names in shared.items()}
    # The legend keeps its corner free of names, and names keep off the line.
    taken: list[Box] = [] if below else [(across - 240, 0.0, across, 46.0)]
    taken += _strokes([at[point] for point in best], across)
    taken += [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in at.values()]
    for point in points:
        x, y = at[point]
        box = place_label((x, y), 72 * inches([words[point]], _SIZE), _SIZE * 1.3, taken, (across, up))
        taken.append(box)
        _name(axes, words[point], point, (x, y), box, bold=point in best)
    ticks = _ticks(low, most)
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel("tokens per episode, mean (log scale)")
    axes.set_ylabel("correct, % of scenarios")
    axes.set_title(title, gid=TITLE)
    if below:
        axes.legend(loc="upper left", bbox_to_anchor=(0, -_BOTTOM / high), borderaxespad=0, fontsize=10)
    else:
        axes.legend(loc="lower right", fontsize=10)
    return figure


def _span(costs: list[float], room: float) -> tuple[float, float]:
    """The ends of the axis: room for names at both, and at least a factor of two between them."""
    low, high = min(costs) / room, max(costs) * room
    if high / low < 2.5:
        middle = (low * high) ** 0.5
        low, high = middle / 1.6, middle * 1.6
    return low, high


def _draw_points(axes: Axes, points: list[Point], best: list[Point], high: float) -> None:
    axes.step(
        [*(x for x, _ in best), high],
        [*(y for _, y in best), best[-1][1]],
        where="post",
        color=BLUE,
        linewidth=1.6,
        alpha=0.6,
        zorder=1,
    )
    kinds = (
        (best, "o", BLUE, "best for this cost"),
        ([point for point in points if point not in best], "s", ORANGE, "another costs no more, is better"),
    )
    for mine, marker, colour, words in kinds:
        if mine:
            axes.plot(
                [x for x, _ in mine],
                [y for _, y in mine],
                linestyle="none",
                marker=marker,
                markersize=8,
                color=colour,
                markeredgecolor="#ffffff",
                zorder=3,
                label=words,
            )


def _name(axes: Axes, words: str, point: Point, at: Point, box: Box, *, bold: bool) -> None:
    """A name in its box, in points from its own point; led to it by a line where it is not beside it."""
    centre = ((box[0] + box[2]) / 2 - at[0], (box[1] + box[3]) / 2 - at[1])
    reach = max(box[0] - at[0], at[0] - box[2], box[1] - at[1], at[1] - box[3])
    axes.annotate(
        words,
        point,
        xytext=centre,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=_SIZE,
        color=INK,
        weight="bold" if bold else "normal",
        zorder=4,
        arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        if reach > 14
        else None,
        annotation_clip=False,
    ).set_in_layout(False)


def place_label(at: Point, width: float, height: float, taken: list[Box], room: Point) -> Box:
    """The free box nearest to a point, beside, above or below it, within ``room``; all in points.

    Where nothing near is free, the last one tried: crowded, but there.
    """
    box = (0.0, 0.0, 0.0, 0.0)
    for x, y in _centres(at, width, height):
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        inside = box[0] >= 0 and box[1] >= 0 and box[2] <= room[0] and box[3] <= room[1]
        if inside and not any(_overlap(box, other) for other in taken):
            return box
    return box


def _centres(at: Point, width: float, height: float) -> Iterator[Point]:
    beside = width / 2 + _MARK + 2
    for away in range(0, 160, 6):
        for side in (1, -1):
            yield at[0] + side * beside, at[1] + away
            yield at[0] + side * beside, at[1] - away
        for share in (0.0, 0.5, -0.5):
            yield at[0] + share * width, at[1] + height / 2 + _MARK + away
            yield at[0] + share * width, at[1] - height / 2 - _MARK - away
        if away:
            for side in (1, -1):
                yield at[0] + side * (beside + away), at[1] + away
                yield at[0] + side * (beside + away), at[1] - away


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers on the axis: 1, 2, 5 of each power of ten; finer ones where those are under three."""
    for digits in ((1, 2, 5), (1, 2, 3, 4, 5, 6, 8), tuple(n / 2 for n in range(2, 20))):
        ticks = [digit * 10.0**power for power in range(9) for digit in digits]
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) >= 3:
            return found
    return found or [low]


def _strokes(line: list[Point], across: float) -> Iterator[Box]:
    """The strokes of the line through the best points, as boxes."""
    ends = [*(x for x, _ in line[1:]), across]
    before = None
    for (x, y), end in zip(line, ends, strict=True):
        yield (x, y - 1, end, y + 1)
        if before is not None:
            yield (x - 1, before, x + 1, y)
        before = y


def _joined(names: list[str], most: int = 2) -> str:
    rest = f" +{len(names) - most}" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
