"""``evalkit prove``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.counterexamples import (
    distinct_counterexamples,
    line_now_and_then,
    report_saved,
    save_scenarios,
    shortened,
)
from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import find_strategy

if TYPE_CHECKING:
    from evalkit.search.proofs.counterexample import Counterexample
    from evalkit.search.proofs.prove import Progress, Proof, Result
    from evalkit.strategies.strategy import Strategy


@click.command()
@click.argument("strategy", required=False)
@click.option(
    "--all", "every", is_flag=True, help="All presets, with both alphabets; exit code 0 whatever is refuted."
)
@click.option("--items", default=3, show_default=True, type=click.IntRange(1, 8), help="Items of the world.")
@click.option("--skippable", default=0, type=click.IntRange(0, 8), help="So many of them may be skipped.")
@click.option(
    "--checks", default="full", show_default=True, type=click.Choice(["full", "weak", "none"]),
    help="The acceptance checks that the strategy may run.",
)  # fmt: skip
@click.option(
    "--alphabet", default="plain", show_default=True, type=click.Choice(["plain", "full"]),
    help="Full: batches, late effects, messages, compactions, approvals too.",
)  # fmt: skip
@click.option("--worker", is_flag=True, help="Run by the durable worker, which is killed and resumed.")
@click.option("--property", "properties", multiple=True, help="A property; without it, all. Repeatable.")
@click.option("--depth", type=click.IntRange(1), help="Explore runs of at most so many turns.")
@click.option("--max-states", type=click.IntRange(1), help="Keep at most so many states.")
@click.option(
    "--save", type=click.Path(path_type=Path, dir_okay=False),
    help="Write the counterexamples as scenarios; with --all the table, and the scenarios beside it.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answers as JSON and nothing else.")
def command(
    strategy: str | None,
    every: bool,
    items: int,
    skippable: int,
    checks: Any,
    alphabet: Any,
    worker: bool,
    properties: tuple[str, ...],
    depth: int | None,
    max_states: int | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Explore everything a model could do against STRATEGY: a proof, or the shortest counterexample.

    STRATEGY is a preset, an entry point, module:name or a YAML file. Exit code 0: nothing refuted; 1: a
    property is refuted.
    """
    from evalkit.drivers.in_process import StrategyFailed
    from evalkit.search.proofs.environment import Setting
    from evalkit.search.proofs.prove import MAX_STATES, prove
    from evalkit.search.proofs.shipped_proofs import prove_larger, prove_presets
    from evalkit.search.properties import find_properties

    if every == (strategy is not None):
        raise UsageProblem("expected a STRATEGY or --all")
    names = tuple(name.replace(" ", "_") for name in properties)
    bounds: dict[str, Any] = {"depth": depth, "max_states": max_states or MAX_STATES}
    try:
        full = worker or alphabet == "full"
        setting = Setting(items, checks, skippable, "full" if full else "plain", worker)
        find_properties(names)
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    if strategy is None:
        proofs = prove_presets(setting, names, **bounds, progress=lambda name: _progress(name, as_json))
        larger = []
        if not full:
            larger = prove_larger(setting, names, progress=lambda name: _progress(f"{name}, full", as_json))
        _show_all(proofs, larger, save, as_json)
        return
    with one_line_errors():
        found = find_strategy(strategy)
    try:
        proof = prove(found, setting, names, **bounds, progress=_progress(found.name, as_json))
    except StrategyFailed as error:
        raise UsageProblem(f"strategy {strategy!r} failed {' '.join(str(error).split())}") from None
    if save is not None:
        save_scenarios(proof.results, save)
    if as_json:
        click.echo(_json([proof]))
    else:
        _show(proof, found, save)
    sys.exit(0 if proof.holds else 1)


# Showing


def _show(proof: Proof, strategy: Strategy, save: Path | None) -> None:
    setting = proof.setting
    skippable = f", {setting.skippable} skippable" if setting.skippable else ""
    click.echo(
        f"{proof.strategy} against a model with {proof.moves} moves; {setting.items} items{skippable},"
        f" checks {setting.checks}"
    )
    click.echo(f"  over {proof.over}")
    width = max(len(result.property) for result in proof.results)
    for result in proof.results:
        click.echo(f"  {result.property.replace('_', ' '):<{width}}  {_answer(result)}")
    preset = PRESETS.get(strategy.name)
    false_done = next((result for result in proof.results if result.property == "no_false_done"), None)
    if preset is not None and false_done is not None and false_done.answer == "proved":
        click.echo(f"  over these moves only; what it cannot catch beyond them: {preset.cannot}")
    for counterexample, names in distinct_counterexamples(proof.results):
        click.echo(f"\nrefuted: {', '.join(name.replace('_', ' ') for name in names)}")
        for number, move in enumerate(counterexample.moves, 1):
            click.echo(f"  {number}. the model {move}")
        click.echo(_transcript(counterexample, strategy, worker=setting.worker))
    if save is not None:
        report_saved(save, refuted=not proof.holds)


def _answer(result: Result) -> str:
    how = f"; {result.how}" if result.how else ""
    if result.answer == "not_applicable":
        return f"not applicable{how}"
    if result.counterexample is not None:
        turns = result.counterexample.turns
        return f"refuted in {turns} turn{'s' if turns > 1 else ''}{how}"
    if result.answer == "refused":
        return f"refused{how}"
    return (
        f"{result.answer}: {result.states:,} states, {result.transitions:,} transitions,"
        f" depth {result.depth}, {result.seconds:.1f} s{how}; {_reached(result)}"
    )


def _reached(result: Result) -> str:
    """What the exploration reached, and what it did not."""
    found = result.witnesses
    missing = f", not {', '.join(found.missing)}" if found.missing else ""
    never = f"; never made: {', '.join(found.never)}" if found.never else ""
    return f"reached {found.count}{missing}{never}"


def _transcript(counterexample: Counterexample, strategy: Strategy, *, worker: bool) -> str:
    from evalkit.reports.transcript import replay, transcript_text

    if worker:
        return f"outcome: {counterexample.outcome}; evalkit run SAVED --harness worker:{strategy.name}"
    return shortened(transcript_text(replay(counterexample.scenario, strategy, counterexample.seed)))


def _show_all(proofs: list[Proof], larger: list[Proof], save: Path | None, as_json: bool) -> None:
    from evalkit.search.proofs.shipped_proofs import table_text, write_table

    if save is not None:
        written = write_table(proofs, save, larger)
        click.echo(f"{save} and {len(written) - 1} scenarios in {save.with_suffix('')}", err=True)
    if as_json:
        click.echo(_json([*proofs, *larger]))
    elif save is None:
        click.echo(table_text(proofs, "proofs", larger), nl=False)


def _json(proofs: list[Proof]) -> str:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode({"schema": "evalkit.proofs/1", "proofs": proofs}))
    return text.decode()


# Progress


def _progress(name: str, quiet: bool) -> Progress | None:
    if quiet:
        return None
    say = line_now_and_then()

    def tell(group: str, states: int, transitions: int, depth: int) -> None:
        say(lambda: f"{name}, {group}: {states:,} states, {transitions:,} transitions, depth {depth}")

    return tell
