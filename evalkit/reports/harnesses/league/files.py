"""The league's files: its figures, its page, its Markdown, its heat map."""

from __future__ import annotations

from pathlib import Path

from evalkit.extras import missing
from evalkit.reports.charts import ChartsMissing
from evalkit.reports.charts.groups import GROUPS, group_of
from evalkit.reports.charts.style import RC, one
from evalkit.reports.harnesses.league.document import in_order, league_markdown
from evalkit.reports.harnesses.league.figures import League, Result, keep_league
from evalkit.reports.harnesses.league.page import league_page

_CANNOT = ("#f0f0f0", "")


def write_league(league: League, folder: Path) -> list[str]:
    """Write ``league.json``, ``README.md``, ``index.html`` and ``heat.svg``; notes on what was left out."""
    keep_league(league, folder)
    notes = []
    # A league of what happens alone has no row to draw.
    heat = bool(league.rows)
    try:
        if heat:
            draw_heat(league, folder / "heat.svg")
    except ChartsMissing as error:
        heat = False
        notes.append(str(error))
    if not heat:
        # One that is there is of an earlier league.
        (folder / "heat.svg").unlink(missing_ok=True)
    (folder / "README.md").write_text(league_markdown(league, heat=heat), encoding="utf-8")
    (folder / "index.html").write_text(league_page(league), encoding="utf-8")
    return notes


def draw_heat(league: League, file: Path) -> None:
    """The heat map of harnesses and behaviours as SVG. ChartsMissing without matplotlib."""
    try:
        import matplotlib
        from matplotlib.patches import Patch, Rectangle
    except ImportError:
        raise ChartsMissing(str(missing("the heat map", "matplotlib"))) from None
    harnesses, names = in_order(league), [each.name for each in league.behaviours]
    used: dict[str, tuple[str, str]] = {}
    with matplotlib.rc_context(RC):
        figure, axes = one(3.6 + 0.46 * len(names), 3.4 + 0.32 * len(harnesses))
        for y, harness in enumerate(harnesses):
            for x, name in enumerate(names):
                cell = league.rows[harness].behaviours.get(name)
                group, (colour, hatch) = _look(cell)
                used[group] = colour, hatch
                square = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, hatch=hatch, edgecolor="white")
                axes.add_patch(square)
                if cell is not None and cell.correct:
                    box = {"facecolor": colour, "edgecolor": "none", "pad": 0.8}
                    axes.text(x, y, "✓", ha="center", va="center", fontsize=9, color="black", bbox=box)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_ylim(len(harnesses) - 0.5, -0.5)
        axes.set_xticks(
            range(len(names)), [name.replace("-", " ") for name in names], rotation=45, ha="right"
        )
        axes.set_yticks(range(len(harnesses)), harnesses)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_title("How each harness ended, by what the model did")
        patches = [Patch(facecolor=c, hatch=h, edgecolor="white", label=g) for g, (c, h) in used.items()]
        figure.legend(handles=patches, loc="outside lower center", ncols=4, title="✓ correct")
        figure.set_facecolor("white")
        figure.savefig(file, metadata={"Date": None, "Creator": None})


def _look(cell: Result | None) -> tuple[str, tuple[str, str]]:
    """The group of a cell, its colour and hatch."""
    if cell is None or cell.why:
        return "cannot come, or not be said in its API", _CANNOT
    group = group_of(cell.outcome)
    return group, GROUPS[group]
