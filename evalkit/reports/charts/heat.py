"""A rate by family and strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reports.charts.style import TITLE, one, readable_on
from evalkit.reports.figures import RATE_NAMES, Row, count, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NONE: Row = {"scenario_rate": None, "scenario_count": 0, "scenario_base": 0}


def heat_chart(summary: Row, rows: list[Row], name: str) -> Figure:
    """A map of counts: dark is much. Blue where much is good, orange where it is bad."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    families = sorted({row["family"] for row in summary["rows"]} - {"all"})
    cells: dict[tuple[str, str], Row] = {
        (label(row), row["family"]): row[name] for row in summary["rows"] if row["checks"] == "all"
    }
    names = [label(row) for row in rows]
    figure, axes = one(2.8 + 0.66 * len(rows), 2.0 + 0.36 * len(families))
    colours = colormaps["Blues" if name == "correct" else "Oranges"]
    grid = [[cells.get((strategy, family), _NONE) for strategy in names] for family in families]
    tiles = [
        [
            (0.91, 0.91, 0.91, 1.0)
            if (value := cell["scenario_rate"]) is None
            else colours(0.04 + 0.9 * value)
            for cell in line
        ]
        for line in grid
    ]
    axes.pcolormesh(tiles, edgecolors="white", linewidth=1.5)
    axes.invert_yaxis()
    for y, line in enumerate(grid):
        for x, cell in enumerate(line):
            known = cell["scenario_rate"] is not None
            text = f"{count(cell['scenario_count'])}/{cell['scenario_base']}" if known else "n/a"
            ink = readable_on(to_hex(tiles[y][x]))
            words = axes.text(
                x + 0.5, y + 0.5, text, ha="center", va="center_baseline", fontsize=8.5, color=ink
            )
            # Inside its tile by construction: the layout need not measure it.
            words.set_in_layout(False)
    axes.set_xticks(
        [x + 0.5 for x in range(len(names))], names, rotation=38, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(
        [y + 0.5 for y in range(len(families))], [family.replace("_", " ") for family in families]
    )
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(f"{RATE_NAMES[name].capitalize()}, scenarios by family", gid=TITLE)
    return figure
