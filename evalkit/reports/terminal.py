"""A run on a terminal: the answer, the comparison, what to do next. Fits 80 columns, and 60."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.core.names import counted
from evalkit.fit.uncertainty import HEADS as POPULATION_HEADS
from evalkit.fit.uncertainty import legend, table_rows
from evalkit.reports.answer import answer, facts, prevents, show_command
from evalkit.reports.formatting import (
    LEVEL_MEANINGS,
    LEVELS,
    RATE_NAMES,
    Row,
    at_level,
    count,
    label,
    levels,
    number,
    percent,
)
from evalkit.reports.layout import console_of, print_prose, print_rows
from evalkit.reports.spending import spending_lines

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of rates: (rate, its head in two lines).
_HEADS = {
    "correct": "correct",
    "false_done": "false\ndone",
    "premature_stop": "stopped\nearly",
    "over_continuation": "went on\ntoo long",
    "unclosed": "not\nclosed",
}
#: Narrower than this, bases other than the scenarios and the means are left out.
_NARROW = 78
assert set(_HEADS) == set(RATE_NAMES)


def print_table(
    summary: dict[str, Any],
    *,
    folder: str = "",
    report: str | None = None,
    worst: str = "",
    notes: Sequence[str] = (),
    undrawn: bool = False,
    width: int | None = None,
) -> None:
    """Print the answer, the comparison by level of checks, notes in a line each, and what to do next.

    ``folder`` is the run's, ``report`` the report's where that is another; empty where none was written.
    ``worst`` names the episode to look at where none tells contenders apart, ``undrawn`` says that there are
    no charts because nobody asked for them.
    """
    console = console_of(width)
    for line in answer_lines(summary, folder, console.width):
        console.print(line, soft_wrap=True)
    for level in levels(summary):
        console.print()
        _print_level(console, summary, level)
    _print_populations(console, summary)
    console.print()
    report = folder if report is None else report
    print_prose(console, end_lines(summary, report, notes))
    for line in next_lines(summary, folder, report, worst, undrawn=undrawn):
        console.print(line, soft_wrap=True)


def _print_populations(console: Console, summary: Row) -> None:
    """The figures of fitted populations, with their widths."""
    for fitted in summary.get("populations", ()):
        console.print()
        print_prose(console, (fitted["says"], legend(fitted)))
        print_rows(console, POPULATION_HEADS, table_rows(fitted["rows"]))


def answer_lines(summary: Row, folder: str, width: int) -> Iterator[str]:
    """The answer as lines of a width; a command to paste is never broken."""
    found = answer(summary)
    if found.warning:
        yield found.warning
    yield from textwrap.wrap(found.sentence, width)
    for pick in found.picks:
        yield ""
        yield f"{pick.asked}: {pick.name or 'nothing'}"
        for name, text in facts(pick):
            yield from textwrap.wrap(
                f"{name}: {text}" if name else text,
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        if pick.telling is not None:
            told = f"prevents: {prevents(pick)}"
            yield from textwrap.wrap(
                told, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
            if folder:
                yield f"    {show_command(folder, pick.telling.episode)}"


def _print_level(console: Any, summary: Row, level: str) -> None:
    from rich import box
    from rich.table import Table

    rows = at_level(summary, level)
    wide = console.width >= _NARROW
    scenarios = max(row["scenarios"] for row in rows)
    title = f"{LEVELS[level]}, {counted(scenarios, 'scenario')}: {LEVEL_MEANINGS[level]}"
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left"
    )
    table.add_column("strategy", overflow="fold")
    for head in _HEADS.values():
        table.add_column(head, justify="right", vertical="bottom", no_wrap=True)
    if wide:
        table.add_column("turns", justify="right", vertical="bottom", no_wrap=True)
        table.add_column("tokens", justify="right", vertical="bottom", no_wrap=True)
    for row in rows:
        cells = [_cell(row[name], scenarios, full=name == "correct", wide=wide) for name in _HEADS]
        means = [number(row["turns"]), number(row["tokens"])] if wide else []
        table.add_row(label(row), *cells, *means)
    console.print(table)


def _cell(cell: Row, scenarios: int, *, full: bool, wide: bool) -> str:
    """A rate in few characters: its base where it is not the scenarios of the table, if there is room."""
    if not cell["base"]:
        return "n/a"
    text = count(cell["scenario_count"])
    if full and wide and cell["scenario_base"] >= 20 and cell["scenario_base"] == scenarios:
        return f"{text} {percent(cell['scenario_rate'])}"
    if full or (wide and cell["scenario_base"] != scenarios):
        return f"{text}/{cell['scenario_base']}"
    return text


def end_lines(summary: Row, report: str, notes: Sequence[str]) -> Iterator[str]:
    """What was run, and what else is to be known, each in one line with where to read more."""
    run = summary["run"]
    model = "scripted model" if run["model"] == "scripted" else run["model"]
    scenarios = counted(run["scenarios"], "scenario" if run["sampled"] else "written scenario")
    said = f"{scenarios}, {counted(run['episodes'], 'episode')}, {run['void']} void ({model})"
    written = "counts of scenarios, no estimate of how often a live model does this"
    yield said if run["sampled"] else f"{said}; {written}"
    if "spending" in summary:
        yield from spending_lines(summary["spending"])
    skipped = len(run["not_expressible"])
    if skipped:
        where = f"{report}/report.md" if report else "report.md"
        one = "scenario was" if skipped == 1 else "scenarios were"
        yield f"{skipped} {one} left out, nobody here can play them: which and why, in {where}"
    yield from notes


def next_lines(
    summary: Row, folder: str, report: str, worst: str = "", *, undrawn: bool = False
) -> Iterator[str]:
    """What to do next, as commands to paste."""
    if not folder:
        return
    yield ""
    yield "next:"
    if report:
        place = shlex.quote(f"{report}/index.html")
        yield f"  open {place}"
    told = [pick.telling.episode for pick in answer(summary).picks if pick.telling is not None]
    episode = told[0] if told else worst
    if episode:
        yield f"  {show_command(folder, episode)}"
    if undrawn:
        elsewhere = f" --out {shlex.quote(report)}" if report != folder else ""
        yield f"  evalkit report {shlex.quote(folder)} --charts{elsewhere}"
