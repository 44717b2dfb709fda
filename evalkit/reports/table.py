"""The comparison on a terminal."""

from __future__ import annotations

from typing import Any

from evalkit.reports.figures import RATE_NAMES, label, number, overall, rate


def print_table(summary: dict[str, Any], *, width: int | None = None) -> None:
    """Print the comparison, best strategy first."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=width) if width else Console()
    if not console.is_terminal and width is None:
        console = Console(width=150)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    for name in RATE_NAMES.values():
        table.add_column(name, justify="right")
    table.add_column("turns", justify="right")
    table.add_column("tokens", justify="right")
    for row in overall(summary):
        cells = [rate(row[name]) for name in RATE_NAMES]
        table.add_row(label(row), *cells, number(row["turns"]), number(row["tokens"]))
    console.print(table)
    run = summary["run"]
    console.print(
        f"{run['scenarios']} scenarios, {run['episodes']} episodes, {run['void']} void (scripted model)."
    )
    skipped = run["not_expressible"]
    if skipped:
        console.print(f"{len(skipped)} scenarios are not expressible here: {', '.join(skipped)}.")
