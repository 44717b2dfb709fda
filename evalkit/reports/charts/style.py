"""What all charts share: colours told apart by colour-blind readers, sizes that read on a slide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, RED, PINK, GREY = "#E69F00", "#D55E00", "#CC79A7", "#999999"
#: Text and axes; a page replaces this very colour by the reader's own (dark mode).
INK = "#1f2328"

#: Before the name of a place in the page, in the links of a chart's own file.
PAGE = "../index.html#"

#: Inches: a chart on a screen and on paper, and the same on a phone, where its words are as large.
WIDE, NARROW = 10.5, 5.0

#: Points between a title and axes that have columns with heads beside them.
HEADED = 26

#: Marks the title of a chart: a page says it in its own words and size.
TITLE = "title"

RC: dict[Any, Any] = {
    "svg.hashsalt": "evalkit",
    # Text stays text: it can be searched, read aloud and restyled, and the file is small.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GREY,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
}


def one(width: float, height: float, *, margin: float = 0.0) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, sizes in inches; ``margin`` is kept free on the right for words."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, rect=(0, 0, 1 - margin / width, 1))
    figure = Figure(figsize=(width, height), layout=engine)
    return figure, figure.subplots()


def fixed(width: float, height: float, place: tuple[float, float, float, float]) -> tuple[Figure, Axes]:
    """A figure whose axes stand at a fixed place (left, bottom, width, height, as shares of it)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.add_axes(place)


def slim(names: list[str], row: float, *, below: float, margin: float = 0.15) -> tuple[Figure, Axes]:
    """As :func:`one`, for a phone: ``row`` inches for each name, and ``below`` of them free at the foot."""
    above, left = 0.65, inches(names, 11) + 0.12
    rows = row * max(len(names), 2)
    height = above + rows + below
    # Where the words leave less than an inch it is drawn wider, and shown smaller.
    width = max(NARROW, left + 1 + margin)
    return fixed(width, height, (left / width, below / height, 1 - (left + margin) / width, rows / height))


def inches(words: list[str], size: float) -> float:
    """About how wide the longest of some words is, in a size of points; a little more than it is."""
    return max(map(len, words), default=0) * size * 0.66 / 72


def beside(axes: Axes, head: str, lines: list[str], away: float, size: float) -> None:
    """A column of words right of the axes, ``away`` points from them: a line for each row, a head above."""
    for words, height in zip(lines, range(len(lines)), strict=True):
        axes.annotate(
            words,
            (1, height),
            xycoords=axes.get_yaxis_transform(),
            xytext=(away, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=size,
            annotation_clip=False,
        ).set_in_layout(False)
    axes.annotate(
        head,
        (1, 1),
        xycoords="axes fraction",
        xytext=(away, 5),
        textcoords="offset points",
        va="bottom",
        fontsize=size,
        weight="bold",
        annotation_clip=False,
    ).set_in_layout(False)


def readable_on(colour: str) -> str:
    """Black or white, whichever has more contrast with a colour (WCAG's relative luminance)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def spread(values: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near ``values`` (descending) that are at least ``gap`` apart and within bounds.

    Labels that would overlap are pushed apart around their mean, group by group.
    """
    groups = [[value, 1.0] for value in values]
    place = 0
    while place < len(groups) - 1:
        (upper, n), (lower, m) = groups[place], groups[place + 1]
        if upper - lower < gap * (n + m) / 2:
            groups[place : place + 2] = [[(upper * n + lower * m) / (n + m), n + m]]
            place = max(0, place - 1)
        else:
            place += 1
    found = []
    for centre, size in groups:
        half = gap * (size - 1) / 2
        centre = min(max(centre, low + half), high - half)
        found += [centre + half - gap * step for step in range(int(size))]
    for place in range(1, len(found)):
        found[place] = min(found[place], found[place - 1] - gap)
    return found
