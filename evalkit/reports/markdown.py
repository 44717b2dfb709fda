"""``report.md``: the answer and the comparison as text that a review can quote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.core.escaping import for_markdown
from evalkit.fit.uncertainty import HEADS as POPULATION_HEADS
from evalkit.fit.uncertainty import legend, table_rows
from evalkit.reports.answer import answer, caveats, facts, meaning, prevents
from evalkit.reports.charts.tables import PAIR_HEADS, pair_cells
from evalkit.reports.formatting import LEVELS, RATE_MEANINGS, RATE_NAMES, count, label, share
from evalkit.reports.spending import HEADS as SPENT_HEADS
from evalkit.reports.spending import spending_rows
from evalkit.reports.tables import (
    HEADS,
    Cell,
    causes_table,
    level_tables,
    stops_table,
    sweep_table,
)


def report_markdown(summary: dict[str, Any], created: str = "") -> str:
    """The whole report."""
    run = summary["run"]
    dated = f" of {created}" if created else ""
    parts = [
        "# Does the harness know when its task is over?",
        f"Run `{run['id']}`{dated}, evalkit {run['evalkit']}: {run['scenarios']} scenarios, "
        f"{run['episodes']} episodes, {run['void']} void, model: {run['model']}.",
        *_answer(summary),
        "\n".join(f"- {line}" for line in caveats(summary)),
    ]
    for fitted in summary.get("populations", ()):
        parts += [
            f"## Population {fitted['population']}",
            for_markdown(fitted["says"]),
            _table(list(POPULATION_HEADS), table_rows(fitted["rows"])),
            for_markdown(legend(fitted)),
        ]
    for table in level_tables(summary):
        title = f"## {table['title']}: {table['meaning']}, {table['scenarios']} scenarios"
        parts += [title, _cells(HEADS, table["rows"])]
        if table["pass_k"]:
            heads = ["strategy", *(f"pass^{k}" for k in table["pass_k"]["ks"])]
            parts.append("Tries that are all correct, over the scenarios in which seeds matter:")
            parts.append(_table(heads, [[row["name"], *row["cells"]] for row in table["pass_k"]["rows"]]))
    if summary["pairs"]:
        parts += ["## Compared with the baseline", _pairs(summary["pairs"])]
    if summary["twins"]:
        parts += ["## Twins", _twins(summary["twins"])]
    parts += _more(summary)
    if "spending" in summary:
        parts += ["## Spent", _table(list(SPENT_HEADS), spending_rows(summary["spending"]))]
    if run["not_expressible"]:
        lines = [
            f"- `{for_markdown(name)}`: {for_markdown(why)}" for name, why in run["not_expressible"].items()
        ]
        parts += ["## Not expressible here", "\n".join(lines)]
    meanings = "\n".join(f"- **{RATE_NAMES[name]}**: {RATE_MEANINGS[name]}." for name in RATE_NAMES)
    parts += ["## What the rates mean", meanings]
    parts.append(
        "Token counts of scripted runs are of evalkit's counter (UTF-8 bytes over 4, rounded up, the "
        "conversation so far counted at each turn); dollars are at an assumed price."
    )
    return "\n\n".join(parts) + "\n"


def _answer(summary: dict[str, Any]) -> Iterator[str]:
    found = answer(summary)
    if found.warning:
        yield f"**{found.warning}**"
    yield f"**{found.sentence}**"
    for pick in found.picks:
        lines = [f"- **{pick.asked}: {pick.name or 'nothing'}** ({meaning(pick)})"]
        lines += [f"  - {name}: {text}" if name else f"  - {text}" for name, text in facts(pick)]
        if pick.telling is not None:
            lines.append(f"  - prevents: [{prevents(pick)}](index.html#{pick.telling.view})")
        yield "\n".join(lines)


def _more(summary: dict[str, Any]) -> list[str]:
    parts = []
    causes = causes_table(summary)
    if causes["moves"]:
        rows = [[move["move"], *(cell.text for cell in move["cells"])] for move in causes["moves"]]
        parts += ["## What they fell for", "Called done that was not + finished work not closed there.\n\n"]
        parts[-1] += _table(["move", *causes["names"]], rows)
    sweep = sweep_table(summary)
    if sweep:
        heads = ["strategy", "error", *sweep["rates"], f"no better than {sweep['rival']} from"]
        rows = [[row["name"], row["kind"], *row["cells"], row["below"]] for row in sweep["rows"]]
        parts += ["## If the verifier errs", _table(heads, rows)]
    stops = stops_table(summary)
    heads = ["strategy", "text-only stops, work open", "truncated finals"]
    heads += [f"ended {name}" for name in stops["endings"]] + stops["reasons"]
    rows = [[row["name"], *map(str, row["cells"])] for row in stops["rows"]]
    return [*parts, "## Stop reasons and endings", _table(heads, rows)]


def _cells(heads: tuple[Cell, ...], rows: list[list[Cell]]) -> str:
    return _table([head.text for head in heads], [[cell.text for cell in row] for row in rows])


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_line(heads), _line(["---"] * len(heads)), *map(_line, rows)])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(map(for_markdown, cells)) + " |"


def _pairs(pairs: list[dict[str, Any]]) -> str:
    heads = [PAIR_HEADS[0], "checks", *PAIR_HEADS[1:]]
    rows = []
    for row in sorted(pairs, key=lambda row: (["all", *LEVELS].index(row["checks"]), -row["difference"])):
        name, *cells = pair_cells(row)
        rows.append([name, row["checks"], *cells])
    return (
        f"By *correct*, on the same scenarios, against {pairs[0]['baseline']}. Holm is over all the tests of "
        "this table. They describe this set of scenarios.\n\n" + _table(heads, rows)
    )


def _twins(twins: list[dict[str, Any]]) -> str:
    rows = [
        [label(row), count(row["rate"] * row["pairs"]), str(row["pairs"]), share(row["rate"])]
        for row in twins
    ]
    return (
        "Pairs of scenarios with the same words over different worlds. A reader of words alone tells none "
        "apart (0), a coin at most a quarter (0.25).\n\n"
        + _table(["strategy", "pairs told apart", "of", "share"], rows)
    )
