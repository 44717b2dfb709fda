"""What charts show, as tables: for readers who cannot see them, and for exact figures."""

from __future__ import annotations

from typing import Any

from evalkit.reports.charts.groups import GROUPS, group_of
from evalkit.reports.formatting import RATE_NAMES, Row, at_level, count, label, overall, p_value, points

#: A chart's table: column heads, then rows of as many cells.
Table = dict[str, list[Any]]
PAIR_HEADS = (
    "strategy",
    "scenarios",
    "better",
    "worse",
    "points",
    "not rejected at 5 %",
    "p (sign-flip)",
    "p (Holm)",
)


def chart_table(summary: Row, name: str) -> Table | None:
    """The table of a chart by its name; None for a chart whose figures stand in another table."""
    kind, _, about = name.partition("-")
    if kind == "outcomes":
        return _outcomes(at_level(summary, about))
    if kind == "forest":
        pairs = [pair for pair in summary["pairs"] if pair["checks"] == about]
        pairs.sort(key=lambda pair: (-pair["difference"], label(pair)))
        return {"heads": list(PAIR_HEADS), "rows": [pair_cells(pair) for pair in pairs]}
    if kind == "heat":
        return _families(summary, about.replace("-", "_"))
    return _turns(summary) if kind == "turns" else None


def pair_cells(pair: Row) -> list[str]:
    """A paired comparison with the baseline, under :data:`PAIR_HEADS`."""
    spread = "–" if pair["low"] is None else f"{points(pair['low'])} to {points(pair['high'])}"
    p = p_value(pair["p"]) if pair["p"] is not None else pair["note"]
    cells = [pair["scenarios"], pair["better"], pair["worse"], points(pair["difference"]), spread, p]
    return [label(pair), *map(str, cells), p_value(pair["p_holm"])]


def _outcomes(rows: list[Row]) -> Table:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        groups = found.setdefault(label(row), dict.fromkeys(GROUPS, 0.0))
        for outcome, part in row["scenario_outcomes"].items():
            groups[group_of(outcome)] += part
    used = [group for group in GROUPS if any(groups[group] for groups in found.values())]
    lines = [[name, *(count(groups[group]) for group in used)] for name, groups in found.items()]
    return {"heads": ["strategy, scenarios", *used], "rows": lines}


def _families(summary: Row, name: str) -> Table | None:
    if name not in RATE_NAMES:
        return None
    names = [label(row) for row in overall(summary)]
    cells: dict[tuple[str, str], str] = {}
    for row in summary["rows"]:
        if row["checks"] == "all" and row["family"] != "all":
            cell = row[name]
            known = cell["scenario_rate"] is not None
            text = f"{count(cell['scenario_count'])}/{cell['scenario_base']}" if known else "n/a"
            cells[row["family"], label(row)] = text
    families = sorted({family for family, _ in cells})
    lines = [
        [family.replace("_", " "), *(cells.get((family, strategy), "–") for strategy in names)]
        for family in families
    ]
    return {"heads": ["family", *names], "rows": lines}


def _turns(summary: Row) -> Table:
    known = {label(row): row for row in summary["turns"]}
    order = [label(row) for row in overall(summary) if label(row) in known]
    quantiles = {"0.05": "5 %", "0.25": "25 %", "0.5": "median", "0.75": "75 %", "0.95": "95 %"}
    rows = []
    for name in order:
        row = known[name]
        cells = [row["least"], *(row["quantiles"][q] for q in quantiles), row["most"], row["never"]]
        rows.append([name, *map(str, cells)])
    return {
        "heads": ["strategy, turns", "least", *quantiles.values(), "most", "episodes that never ended"],
        "rows": rows,
    }
