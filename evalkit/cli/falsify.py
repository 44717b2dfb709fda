"""``evalkit falsify``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalkit.cli.counterexamples import (
    distinct_counterexamples,
    line_now_and_then,
    report_saved,
    save_scenarios,
    shortened,
)
from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.harness_setup import set_up_all
from evalkit.core import thresholds
from evalkit.extras import need
from evalkit.harnesses.find import find_harness

if TYPE_CHECKING:
    from evalkit.search.falsification.counterexample_search import Looked, Progress
    from evalkit.search.falsification.falsify import Falsified
    from evalkit.search.proofs.counterexample import Counterexample

#: Where findings are kept; ``.hypothesis`` is where Hypothesis keeps its own.
DATABASE = Path(".hypothesis") / "evalkit"


@click.command()
@click.argument("harness")
@click.option("--items", default=2, show_default=True, type=click.IntRange(1, 8), help="Items of the world.")
@click.option("--property", "properties", multiple=True, help="A property; without it, all. Repeatable.")
@click.option(
    "--max-runs", default=400, show_default=True, type=click.IntRange(1),
    help="Runs that look for a first failure; as many again make each finding small.",
)  # fmt: skip
@click.option(
    "--max-seconds", default=300.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Time for everything.",
)  # fmt: skip
@click.option(
    "--run-seconds", type=click.FloatRange(0, min_open=True),
    help="Time for one run; without it, the harness's own time limit.",
)  # fmt: skip
@click.option(
    "--max-moves", default=24, show_default=True, type=click.IntRange(1, 50),
    help="Moves of the model before it does all of the work.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Another seed looks elsewhere.")
@click.option(
    "--nudges", default=thresholds.FRUITLESS_NUDGES, show_default=True, type=click.IntRange(0),
    help="Nudges in a row that are allowed without a new effect.",
)  # fmt: skip
@click.option(
    "--repeats", default=thresholds.RESENDS, show_default=True, type=click.IntRange(0),
    help="Times in a row that it may ask again after a pause, a cut-off or a refusal.",
)  # fmt: skip
@click.option("--max-calls", type=click.IntRange(1), help="The task's limit of tool calls.")
@click.option(
    "--without", multiple=True, metavar="MOVE",
    help="Leave out moves of that name, as 'does * wrongly*' or 'undoes *'. Repeatable.",
)  # fmt: skip
@click.option(
    "--database", type=click.Path(path_type=Path, file_okay=False), default=DATABASE, show_default=True,
    help="Where findings are kept, to be tried first the next time.",
)  # fmt: skip
@click.option(
    "--save", type=click.Path(path_type=Path, dir_okay=False),
    help="Write the counterexamples as scenarios.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON and nothing else.")
def command(
    harness: str,
    items: int,
    properties: tuple[str, ...],
    max_runs: int,
    max_seconds: float,
    run_seconds: float | None,
    max_moves: int,
    seed: int,
    nudges: int,
    repeats: int,
    max_calls: int | None,
    without: tuple[str, ...],
    database: Path,
    save: Path | None,
    as_json: bool,
) -> None:
    """Look for what a model could do that makes HARNESS break a property, and make it as small as can be.

    HARNESS is a shipped name, a folder with harness.toml, a program, or module:function. Exit code 0: nothing
    refuted, which is no proof; 1: a property is refuted.
    """
    need("falsify", "hypothesis", "h11")
    from evalkit.search.falsification.counterexample_search import HarnessFailed
    from evalkit.search.falsification.falsify import falsify
    from evalkit.search.falsification.trials import NoSuchMove
    from evalkit.search.falsification.violations import OF_HARNESSES, Caps
    from evalkit.search.proofs.environment import Setting
    from evalkit.search.properties import find_properties

    names = tuple(name.replace(" ", "_") for name in properties)
    try:
        find_properties(names, OF_HARNESSES)
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    with one_line_errors():
        found = find_harness(harness)
        set_up_all((harness,))
        try:
            falsified = falsify(
                found,
                Setting(items, "none", calls=max_calls),
                names,
                called=harness,
                seed=seed,
                max_runs=max_runs,
                max_seconds=max_seconds,
                max_moves=max_moves,
                run_seconds=run_seconds,
                caps=Caps(nudges, repeats),
                without=without,
                database=database,
                progress=None if as_json else _progress(found.name),
            )
        except (HarnessFailed, NoSuchMove) as error:
            raise UsageProblem(str(error)) from None
    if save is not None:
        save_scenarios(falsified.results, save)
    if as_json:
        click.echo(_json(falsified))
    else:
        _show(falsified, harness, save)
    sys.exit(0 if falsified.holds else 1)


# Showing


def _show(falsified: Falsified, called: str, save: Path | None) -> None:
    left_out = f" ({len(falsified.left_out)} more cannot be said to it)" if falsified.left_out else ""
    items = falsified.setting.items
    click.echo(
        f"{falsified.harness} against a model with {falsified.moves} moves{left_out};"
        f" {items} item{'s' if items > 1 else ''}, seed {falsified.seed};"
        f" {falsified.runs} runs in {falsified.seconds:.1f} s"
    )
    width = max(len(result.property) for result in falsified.results)
    for result in falsified.results:
        name = result.property.replace("_", " ")
        click.echo(f"  {name:<{width}}  {_answer(result, falsified.searched)}")
    for counterexample, names in distinct_counterexamples(falsified.results):
        click.echo(f"\nrefuted: {', '.join(name.replace('_', ' ') for name in names)}")
        for number, move in enumerate(counterexample.moves, 1):
            click.echo(f"  {number}. the model {move}")
        if not counterexample.moves:
            click.echo("  the model does all of the work and says so")
        click.echo(_transcript(falsified, names[0], counterexample))
    if save is not None:
        report_saved(save, refuted=not falsified.holds)
        if not falsified.holds:
            click.echo(f"run again: evalkit run {save} --harness {called}", err=True)


def _answer(result: Looked, searched: int) -> str:
    how = f"; {result.how}" if result.how else ""
    if result.answer == "not_applicable":
        return f"not applicable{how}"
    if result.counterexample is None:
        return f"not refuted in {searched} run{'s' if searched > 1 else ''}{how}"
    count = len(result.counterexample.moves)
    where = "found again from the database" if result.replayed else f"found in run {result.run}"
    small = f", made small in {result.shrinking}" if result.shrinking else ""
    return f"refuted by {count} move{'' if count == 1 else 's'}: {where}{small}{how}"


def _transcript(falsified: Falsified, name: str, counterexample: Counterexample) -> str:
    from evalkit.reports.foreign_transcript import episode_figures, kept_text

    kept, episode = falsified.transcripts[name]
    scenario, items = counterexample.document["scenario"], falsified.setting.items
    return shortened(kept_text(kept, scenario, items, episode_figures(episode)))


def _json(falsified: Falsified) -> str:
    import msgspec

    answers = msgspec.to_builtins(msgspec.structs.replace(falsified, transcripts={}))
    del answers["transcripts"]
    return msgspec.json.format(msgspec.json.encode({"schema": "evalkit.falsified/1", **answers})).decode()


# Progress


def _progress(name: str) -> Progress:
    say = line_now_and_then()

    def tell(looked_at: str, runs: int, refuted: int) -> None:
        say(lambda: f"{name}, {looked_at.replace('_', ' ')}: {runs} runs, {refuted} refuted")

    return tell
