"""A rate by family and strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from evalkit.reports.charts.style import PAGE, TITLE, one
from evalkit.reports.formatting import RATE_NAMES, Row, count, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NONE: Row = {"scenario_rate": None, "scenario_count": 0, "scenario_base": 0}
_NOTHING = "#e8e8e8"
#: The darkest tile is still light enough for black words (a contrast of 6 and more).
_LIGHTEST, _DARKEST = 0.07, 0.56


def heat_chart(summary: Row, rows: list[Row], name: str) -> Figure:
    """A map of counts with a scale: dark is much. Blue where much is good, orange where it is bad.

    Each tile leads to the episodes behind it: those that are not correct, or have the fault.
    """
    families = sorted({row["family"] for row in summary["rows"]} - {"all"})
    cells: dict[tuple[str, str], Row] = {
        (label(row), row["family"]): row[name] for row in summary["rows"] if row["checks"] == "all"
    }
    names = [label(row) for row in rows]
    figure, axes = one(max(6.4, 3.0 + 0.78 * len(rows)), 2.5 + 0.36 * len(families))
    colours = _colours(name)
    _tiles(
        axes,
        [
            _Tile(x, y, cells.get((strategy, family), _NONE), _link(strategy, family, name))
            for y, family in enumerate(families)
            for x, strategy in enumerate(names)
        ],
        colours,
    )
    axes.set_xlim(0, len(names))
    axes.set_ylim(len(families), 0)
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
    _scale(figure, axes, colours)
    return figure


def _colours(name: str) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    whole = colormaps["Blues" if name == "correct" else "Oranges"]
    return ListedColormap([whole(_LIGHTEST + (_DARKEST - _LIGHTEST) * step / 255) for step in range(256)])


class _Tile(NamedTuple):
    """A figure, where it stands, and where it leads."""

    x: int
    y: int
    cell: Row
    link: str

    @property
    def known(self) -> bool:
        return self.cell["scenario_rate"] is not None

    @property
    def linked(self) -> str | None:
        return self.link if self.known and self.cell["scenario_base"] else None


def _tiles(axes: Any, tiles: list[_Tile], colours: Any) -> None:
    from matplotlib.collections import PolyCollection

    # All squares are one artist: each by itself takes longer to make and to draw than its words do. The axes'
    # limits are known; else it would be measured for them.
    squares = PolyCollection(
        [[(t.x, t.y), (t.x + 1, t.y), (t.x + 1, t.y + 1), (t.x, t.y + 1)] for t in tiles],
        facecolors=[colours(float(t.cell["scenario_rate"])) if t.known else _NOTHING for t in tiles],
        edgecolors="white",
        linewidths=1.5,
        urls=[t.linked for t in tiles],
    )
    axes.add_artist(squares).set_in_layout(False)
    # Inside their tiles by construction: the layout need not measure them.
    axes.add_artist(_words(tiles)).set_in_layout(False)


def _words(tiles: list[_Tile]) -> Any:
    """The words of all tiles: one text, drawn at each, since to make each takes as long as to draw it."""
    from matplotlib.text import Text

    class Words(Text):
        def draw(self, renderer: Any) -> None:
            for tile in tiles:
                cell = tile.cell
                self.set_position((tile.x + 0.5, tile.y + 0.5))
                self.set_text(
                    f"{count(cell['scenario_count'])}/{cell['scenario_base']}" if tile.known else "n/a"
                )
                self.set_url(tile.linked)
                super().draw(renderer)

    return Words(ha="center", va="center_baseline", fontsize=9.5, color="#000000")


def _link(strategy: str, family: str, name: str) -> str:
    fault = "" if name == "correct" else f"&fault={quote(RATE_NAMES[name])}"
    return f"{PAGE}failures?strategy={quote(strategy, safe='')}&family={quote(family)}{fault}"


def _scale(figure: Figure, axes: Any, colours: Any) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    # Few blocks: the picture is small, and no fine lines show between them.
    blocks = ListedColormap([colours(step / 19) for step in range(20)])
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, 100), blocks),
        ax=axes,
        location="bottom",
        fraction=0.03,
        aspect=30,
        pad=0.02,
        ticks=[0, 25, 50, 75, 100],
        format="{x:.0f} %",
        drawedges=False,
    )
    bar.set_label("share of the family's scenarios (grey: none counts)", fontsize=10)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9.5)
