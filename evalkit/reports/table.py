"""The comparison on a terminal, one table for each level of checks."""

from __future__ import annotations

from typing import Any

from evalkit.reports.answer import answers
from evalkit.reports.figures import LEVEL_MEANINGS, LEVELS, RATE_NAMES, at_level, label, levels, number, rate


def print_table(summary: dict[str, Any], *, width: int | None = None) -> None:
    """Print the comparison, best strategy first, and the answer in one line a level."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=width) if width else Console()
    if not console.is_terminal and width is None:
        console = Console(width=150)
    names = ["correct", *(name for name in RATE_NAMES if name != "correct")]
    for level in levels(summary):
        title = f"{LEVELS[level]}: {LEVEL_MEANINGS[level]}"
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
        table.add_column("strategy", no_wrap=True)
        for name in names:
            table.add_column(RATE_NAMES[name], justify="right")
        table.add_column("turns", justify="right")
        table.add_column("tokens", justify="right")
        for row in at_level(summary, level):
            cells = [rate(row[name]) for name in names]
            table.add_row(label(row), *cells, number(row["turns"]), number(row["tokens"]))
        console.print(table)
    for answer in answers(summary):
        console.print(f"{answer.title}: {answer.best}, {answer.result}. {answer.runner_up}", highlight=False)
    run = summary["run"]
    model = "scripted model" if run["model"] == "scripted" else run["model"]
    console.print(
        f"{run['scenarios']} scenarios, {run['episodes']} episodes, {run['void']} void ({model}).",
        highlight=False,
    )
    skipped = run["not_expressible"]
    if skipped:
        console.print(f"{len(skipped)} scenarios are not expressible here: {', '.join(skipped)}.")
