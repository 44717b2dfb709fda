"""Charts for a design review, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.reports.figures import RATE_NAMES, label, overall

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, told apart by colour-blind readers.
_BLUE, _SKY, _GREEN, _YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
_ORANGE, _RED, _PINK, _GREY = "#E69F00", "#D55E00", "#CC79A7", "#999999"

#: Outcomes are grouped for the stacked chart: what a reader has to know first.
_GROUPS: dict[str, tuple[str, str]] = {
    "done, complete": (_GREEN, ""),
    "not done, stuck task": (_SKY, ""),
    "complete, not closed": (_YELLOW, "//"),
    "stopped early, said so": (_ORANGE, ""),
    "called done, was not": (_RED, "xx"),
    "never ended": (_PINK, ".."),
    "spoiled": ("#000000", ""),
}


class ChartsMissing(RuntimeError):
    """matplotlib is not installed; the message says what to do."""


def group_of(outcome: str) -> str:
    """The group of the stacked chart that an outcome is in."""
    ending, truth = outcome.split("/")
    if ending == "never":
        return "never ended"
    if ending == "done":
        return "done, complete" if truth == "complete" else "called done, was not"
    if truth == "complete":
        return "complete, not closed"
    if truth == "spoiled":
        return "spoiled"
    return "stopped early, said so" if truth == "reachable" else "not done, stuck task"


def write_charts(summary: dict[str, Any], folder: Path) -> list[Path]:
    """Draw all charts; the files written. ChartsMissing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise ChartsMissing("charts need matplotlib: pip install 'evalkit[report]'") from None
    matplotlib.rcParams.update(
        {"svg.hashsalt": "evalkit", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
    )
    rows = overall(summary)
    if not rows:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    charts: dict[str, Callable[[], Figure]] = {
        "outcomes": lambda: _outcomes(rows),
        "cost": lambda: _cost(rows),
    }
    families = sorted({row["family"] for row in summary["rows"]} - {"all"})
    for name in RATE_NAMES:
        charts[f"heat-{name.replace('_', '-')}"] = lambda name=name: _heat(summary, rows, families, name)  # type: ignore[misc]
    written = []
    for name, draw in charts.items():
        figure = draw()
        for kind in ("svg", "png"):
            file = folder / f"{name}.{kind}"
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(file, dpi=160, bbox_inches="tight", metadata=metadata)
            written.append(file)
    return written


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _outcomes(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = _figure(10, 1.6 + 0.36 * len(rows))
    names = [label(row) for row in rows]
    left = [0.0] * len(rows)
    for group, (colour, hatch) in _GROUPS.items():
        shares = []
        for row in rows:
            count = sum(count for outcome, count in row["outcomes"].items() if group_of(outcome) == group)
            shares.append(100 * count / row["episodes"])
        if not any(shares):
            continue
        bars = axes.barh(
            names, shares, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.6, label=group
        )
        for bar, share in zip(bars, shares, strict=True):
            if share >= 6:
                dark = colour in (_GREEN, _RED, "#000000")
                axes.text(
                    bar.get_x() + share / 2,
                    bar.get_y() + bar.get_height() / 2,
                    f"{share:.0f}",
                    ha="center",
                    va="center",
                    fontsize=9,
                    color="white" if dark else "black",
                    bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.2} if hatch else None,
                )
        left = [before + share for before, share in zip(left, shares, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of episodes, %")
    axes.set_title("How runs ended, and what was true of the work", loc="left", fontweight="bold")
    axes.legend(loc="upper center", bbox_to_anchor=(0.42, -0.09 - 0.6 / len(rows)), ncols=4, frameon=False)
    axes.tick_params(axis="y", length=0)
    return figure


def _heat(summary: dict[str, Any], rows: list[dict[str, Any]], families: list[str], name: str) -> Figure:
    from matplotlib import colormaps

    cells: dict[tuple[str, str], dict[str, Any]] = {
        (label(row), row["family"]): row[name] for row in summary["rows"] if row["checks"] == "all"
    }
    figure, axes = _figure(2.6 + 0.62 * len(rows), 1.8 + 0.36 * len(families))
    values = [
        [(cells.get((label(row), family)) or {"rate": None})["rate"] for row in rows] for family in families
    ]
    plain = [[-0.01 if value is None else value for value in line] for line in values]
    good = name == "correct"
    map_ = colormaps["Blues" if good else "Oranges"].copy()
    map_.set_under("#eeeeee")
    axes.imshow(plain, cmap=map_, vmin=0, vmax=1, aspect="auto")
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            cell = cells.get((label(rows[x]), families[y]))
            text = "n/a" if cell is None or value is None else f"{cell['count']}/{cell['base']}"
            colour = "white" if value is not None and value > 0.6 else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(rows)), [label(row) for row in rows], rotation=40, ha="right")
    axes.set_yticks(range(len(families)), [family.replace("_", " ") for family in families])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(f"{RATE_NAMES[name].capitalize()}, by family", loc="left", fontweight="bold")
    return figure


def _cost(rows: list[dict[str, Any]]) -> Figure:
    figure, axes = _figure(9, 5.6)
    points = [(row["turns"], 100 * row["correct"]["rate"], label(row)) for row in rows]
    best = -1.0
    line: list[tuple[float, float]] = []
    for turns, correct, _ in sorted(points, key=lambda point: (point[0], -point[1])):
        if correct > best:
            line.append((turns, correct))
            best = correct
    axes.step(
        [x for x, _ in line],
        [y for _, y in line],
        where="post",
        color=_GREY,
        linewidth=1.2,
        zorder=1,
        label="best at this cost",
    )
    on_line = set(line)
    for turns, correct, _ in points:
        best_here = (turns, correct) in on_line
        axes.scatter(
            turns,
            correct,
            s=46,
            color=_BLUE if best_here else _ORANGE,
            marker="o" if best_here else "s",
            zorder=2,
            edgecolor="white",
        )
    _annotate(axes, points)
    axes.set_xlabel("model turns per episode, mean")
    axes.set_ylabel("correct, % of episodes")
    axes.set_ylim(0, 104)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)
    axes.set_title("Reliability against cost", loc="left", fontweight="bold")
    axes.legend(loc="lower right", frameon=False)
    return figure


def _annotate(axes: Axes, points: list[tuple[float, float, str]]) -> None:
    """Labels beside their points, pushed apart where they would overlap; equal points share one label."""
    shared: dict[tuple[float, float], list[str]] = {}
    for turns, correct, name in points:
        shared.setdefault((round(turns, 2), round(correct, 1)), []).append(name)
    placed: list[tuple[float, float]] = []
    width = max(turns for turns, _, _ in points) or 1.0
    for (turns, correct), names in sorted(shared.items(), key=lambda item: (-item[0][1], item[0][0])):
        y = correct
        while any(abs(y - other) < 3.6 and abs(turns - x) < 0.22 * width for x, other in placed):
            y -= 1.2
        placed.append((turns, y))
        axes.annotate(
            ", ".join(names), (turns, correct), xytext=(turns + 0.012 * width, y), fontsize=9, va="center"
        )
