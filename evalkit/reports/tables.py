"""The tables of a report as rows of cells, for whatever writes them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from evalkit.reports.formatting import (
    LEVEL_MEANINGS,
    LEVELS,
    RATE_MEANINGS,
    RATE_NAMES,
    Row,
    at_level,
    count,
    label,
    levels,
    number,
    overall,
    percent,
    rate,
    share,
)
from evalkit.reports.verifier_sweep import sweeps
from evalkit.stats.ranking import is_swept


class Cell(msgspec.Struct, frozen=True):
    """What a cell shows, what it is sorted by, what it says when pointed at.

    ``link`` is the place in the page that it leads to: the episodes that it counts.
    """

    text: str
    sort: str = ""
    title: str = ""
    css: str = ""
    link: str = ""


def failures(**wanted: str) -> str:
    """The place in the page that lists episodes, by strategy, family, checks, fault, words."""
    return "failures?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in wanted.items())


HEADS: tuple[Cell, ...] = (
    Cell("strategy"),
    Cell("correct", title=RATE_MEANINGS["correct"]),
    *(Cell(words, title=RATE_MEANINGS[name]) for name, words in RATE_NAMES.items() if name != "correct"),
    Cell("precision", title="of the runs ended as done the share where the work was complete"),
    Cell("recall", title="of the moments when the work was complete the share that ended the run"),
    Cell("turns", title="model turns per episode, mean"),
    Cell("tokens", title="tokens per episode, mean"),
    Cell("tokens per correct", title="all tokens over the correct episodes"),
)


def comparison_row(row: Row) -> list[Cell]:
    """A strategy's line in the comparison."""
    rates = ["correct", *(name for name in RATE_NAMES if name != "correct")]
    cells = [Cell(label(row))]
    checks = {} if row["checks"] == "all" else {"checks": row["checks"]}
    for name in rates:
        cell = row[name]
        title = ""
        if name == "premature_stop" and cell["count"]:
            title = f"{cell['silent']} silent, {cell['declared']} declared"
        # What is counted as correct is not in the list; what it leads to is the rest.
        counted = cell["base"] - cell["count"] if name == "correct" else cell["count"]
        fault = {} if name == "correct" else {"fault": RATE_NAMES[name]}
        link = failures(strategy=label(row), **checks, **fault) if counted else ""
        cells.append(Cell(rate(cell), _sort(cell["scenario_rate"]), title, link=link))
    for value in (row["precision"], row["recall"]):
        cells.append(Cell(share(value), _sort(value)))
    for value in (row["turns"], row["tokens"], row["per_correct"]["tokens"]):
        cells.append(Cell(number(value), _sort(value)))
    return cells


def _sort(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def level_tables(summary: Row) -> list[dict[str, Any]]:
    """For each level of checks its comparison, best strategy first, and pass^k where seeds matter."""
    tables = []
    for level in levels(summary):
        rows = at_level(summary, level)
        tables.append(
            {
                "level": level,
                "title": LEVELS[level],
                "meaning": LEVEL_MEANINGS[level],
                "scenarios": max(row["scenarios"] for row in rows),
                "rows": [comparison_row(row) for row in rows],
                "pass_k": _pass_k(rows),
            }
        )
    return tables


def _pass_k(rows: list[Row]) -> dict[str, Any] | None:
    """The chance that k tries of a scenario are all correct, over the scenarios in which seeds matter."""
    ks = sorted({line["k"] for row in rows for line in row["pass_k"]})
    if not ks:
        return None
    found = []
    for row in rows:
        by_k = {line["k"]: line for line in row["pass_k"]}
        cells = [_of_scenarios(by_k[k]["rate"], by_k[k]["scenarios"]) if k in by_k else "n/a" for k in ks]
        found.append({"name": label(row), "cells": cells})
    scenarios = max(line["scenarios"] for row in rows for line in row["pass_k"])
    return {"ks": ks, "rows": found, "scenarios": scenarios}


def _of_scenarios(value: float, scenarios: int) -> str:
    return rate(
        {
            "base": scenarios,
            "scenario_count": value * scenarios,
            "scenario_base": scenarios,
            "scenario_rate": value,
        }
    )


def causes_table(summary: Row, most: int = 25) -> dict[str, Any]:
    """Moves by strategy: how many wrong decisions each caused. The commonest moves; the rest in one line."""
    order = [label(row) for row in overall(summary)]
    by_move: dict[str, dict[str, tuple[int, int]]] = {}
    for line in summary["causes"]:
        if not is_swept(line):
            by_move.setdefault(line["move"], {})[label(line)] = (line["called_done"], line["missed"])
    moves = sorted(by_move, key=lambda move: (-sum(map(sum, by_move[move].values())), move))
    shown = [(move, by_move[move]) for move in moves[:most]]
    if len(moves) > most:
        rest: dict[str, tuple[int, int]] = {}
        for move in moves[most:]:
            for name, (called, missed) in by_move[move].items():
                before = rest.get(name, (0, 0))
                rest[name] = (before[0] + called, before[1] + missed)
        shown.append((f"{len(moves) - most} other moves", rest))
    return {
        "names": order,
        "moves": [
            {"move": move, "cells": [_cause(found.get(name, (0, 0)), move, name) for name in order]}
            for move, found in shown
        ],
    }


def _cause(counts: tuple[int, int], move: str, name: str) -> Cell:
    called, missed = counts
    if not called and not missed:
        return Cell("")
    title = f"{called} called done that were not; {missed} times finished work was not closed here"
    # Finished work that was not closed at once may have been closed later, and the episode be correct.
    listed = called and not move.endswith(" other moves")
    link = failures(strategy=name, words=f'"{move}"') if listed else ""
    text = f"{called}" if not missed else f"{called or ''} + {missed}" if called else f"+ {missed}"
    return Cell(text, title=title, css="wrong" if called else "late", link=link)


def twins_table(summary: Row) -> dict[str, Any]:
    """Pairs by strategy: told apart or not; beside them what a coin may expect at most."""
    rows = {label(row): row for row in summary["twins"] if not is_swept(row)}
    order = [label(row) for row in overall(summary) if label(row) in rows]
    pairs = sorted({pair for row in rows.values() for pair in (*row["told_apart"], *row["missed"])})
    lines = []
    for pair in pairs:
        cells = [
            True if pair in rows[name]["told_apart"] else False if pair in rows[name]["missed"] else None
            for name in order
        ]
        lines.append({"pair": pair, "cells": cells})
    return {
        "names": order,
        "pairs": len(pairs),
        "coin": f"{0.25 * len(pairs):g}",
        "totals": [count(rows[name]["rate"] * rows[name]["pairs"]) for name in order],
        "rows": lines,
    }


def sweep_table(summary: Row) -> dict[str, Any] | None:
    """Correct by assumed error rate; None where no sweep was run."""
    found = sweeps(summary)
    if not found:
        return None
    rates = sorted({value for sweep in found for value in sweep.rates})
    return {
        "rates": [percent(value) for value in rates],
        "rival": found[0].rival or "–",
        "rows": [
            {
                "name": sweep.strategy,
                "kind": sweep.kind,
                "cells": [rate(sweep.rates[value]) if value in sweep.rates else "–" for value in rates],
                "below": "–" if sweep.below is None else percent(sweep.below),
            }
            for sweep in found
        ],
    }


def stops_table(summary: Row) -> dict[str, Any]:
    """Stop reasons of turns and endings, by strategy and by family; best strategy first."""
    order = {label(row): place for place, row in enumerate(overall(summary))}
    lines = sorted(
        (line for line in summary["stops"] if not is_swept(line)),
        key=lambda line: order.get(label(line), len(order)),
    )
    reasons = sorted({reason for line in lines for reason in line["stops"]})
    endings = sorted({ending for line in lines for ending in line["endings"]})

    def of(line: Row) -> dict[str, Any]:
        cells = [line["text_only_open"], line["truncated_finals"]]
        cells += [line["endings"].get(ending, 0) for ending in endings]
        cells += [line["stops"].get(reason, 0) for reason in reasons]
        return {"name": label(line), "family": line["family"].replace("_", " "), "cells": cells}

    by_family = sorted((line for line in lines if line["family"] != "all"), key=lambda line: line["family"])
    return {
        "reasons": reasons,
        "endings": endings,
        "rows": [of(line) for line in lines if line["family"] == "all"],
        "by_family": [of(line) for line in by_family],
    }
