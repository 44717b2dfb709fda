"""``evalkit scenarios``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.groups import Group
from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.reports.layout import print_entries
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import library_folder, load_suites

_NEW = """\
# yaml-language-server: $schema={schema}
scenario: {name}
family: partial_completion
summary: Three parts to do; the model reports after the first and ends its turn.
source: written for this project
task:
  prompt: Do every part that list_items returns.
  done_when: Every part is done.
  checks: full
limits: {{turns: 40}}
world:
  kind: items
  items: [parser, printer, reader]
model:
  - call: list_items
  - work: 1
  - say: "The parser is done; going on with the rest."
    claim: partial
  - work: rest
  - say: "All three parts are done."
    claim: done
"""


@click.group(cls=Group)
def command() -> None:
    """List, show and check scenarios; make a new one."""


@command.command("list")
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
def list_(suites: tuple[str, ...]) -> None:
    """The scenarios of SUITEs by family."""
    with one_line_errors():
        scenarios = load_suites(suites or (str(library_folder()),))
    family = None
    for scenario in sorted(scenarios, key=lambda scenario: (scenario.family, scenario.name)):
        if scenario.family != family:
            family = scenario.family
            click.echo(family)
        print_entries((f"  {scenario.name}  {scenario.summary}",))
    click.echo(f"{len(scenarios)} scenarios in {len({s.family for s in scenarios})} families")


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """The YAML text of scenario NAME."""
    with one_line_errors():
        (scenario, *_) = load_suites((name,))
        place = Path(scenario.place)
    click.echo(f"# {place}")
    click.echo(place.read_text(encoding="utf-8"), nl=False)


@command.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("--presets", is_flag=True, help="Say which presets pass and fail each scenario, and why.")
@click.option("--seeds", default=3, show_default=True, help="Seeds of scenarios that have choices.")
def check(suites: tuple[str, ...], presets: bool, seeds: int) -> None:
    """Play each scenario with the ideal harness, and say how that run went. Exit 1 where one is not sound.

    It is sound if its declarations do not contradict each other, the ideal harness is correct on it, no
    preset completes what the ideal driver does not, what it expects of presets holds, and its twin is a twin.
    With --presets the check also says what a scenario can tell apart.
    """
    from evalkit.scoring.soundness import examine

    if seeds < 1:
        raise UsageProblem(f"--seeds must be at least 1, got {seeds}")
    with one_line_errors():
        scenarios = load_suites(suites or (str(library_folder()),))
        known = {scenario.name: scenario for scenario in (*load_suites(()), *scenarios)}
    failed = 0
    for scenario in scenarios:
        checked = examine(scenario, known, seeds)
        failed += not checked.sound
        for finding in checked.findings:
            word = "FAIL" if finding.fails else "note"
            print_entries((f"{word} {scenario.place}: {finding.scenario}: {finding.message}",))
        print_entries((f"{scenario.name}: {checked.ideal}",))
        if presets:
            _show_distinctions(scenario, seeds)
    click.echo(f"{len(scenarios) - failed} of {len(scenarios)} scenarios are sound")
    if failed:
        raise click.exceptions.Exit(1)


def _show_distinctions(scenario: Scenario, seeds: int) -> None:
    """What a scenario tells apart, in lines."""
    from evalkit.scoring.distinguish import distinguish

    found = distinguish(scenario, seeds=seeds)
    lacking = [event for event in scenario.events if event not in SUPPORTED_EVENTS]
    if lacking:
        click.echo(f"{found.scenario}: played without {', '.join(lacking)}, of which the loop has no notion")
    passed, failed = found.passed, found.failed
    click.echo(
        f"{found.scenario}: {len(passed)} presets pass, {len(failed)} fail"
        + ("" if found.tells else "; it tells no preset from another")
    )
    print_entries((f"  pass: {', '.join(passed) or 'none'}",))
    for name in failed:
        times = f" ({found.correct[name]} of {found.seeds} seeds correct)" if found.seeds > 1 else ""
        print_entries((f"  fail: {name}: {found.reasons[name]}{times}",))


@command.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
def coverage(suites: tuple[str, ...], out: Path | None) -> None:
    """What SUITEs cover and tell apart, as a page; without one, the shipped library."""
    from evalkit.experiments.coverage.document import coverage_text

    with one_line_errors():
        text = coverage_text(load_suites(suites))
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


@command.command()
@click.argument("suites", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Write them to this folder.",
)
@click.option("--why", is_flag=True, help="Say of each that has no twin why.")
def mask(suites: tuple[str, ...], out: Path, why: bool) -> None:
    """Write a twin of each SCENARIO, by default of the library, without a call that every correct run needs.

    Nobody can finish a twin: the ideal driver, which completes the original, is stuck. So giving up is
    right there, and the sooner after the first refusal the better: evalkit study stuck DIR.
    """
    from evalkit.scenarios.yaml_source import write_document
    from evalkit.scoring.masked_twins import NotMasked, masked_twins

    with one_line_errors():
        scenarios = load_suites(suites)
        found = list(masked_twins(scenarios))
    out.mkdir(parents=True, exist_ok=True)
    written = 0
    for each in found:
        if isinstance(each, NotMasked):
            if why:
                click.echo(str(each), err=True)
            continue
        (out / f"{each.scenario.name}.yaml").write_text(write_document(each.document), encoding="utf-8")
        written += 1
    click.echo(f"wrote {written} masked twins of {len(scenarios)} scenarios to {out}")
    if not written:
        raise click.exceptions.Exit(1)


@command.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
def schema(out: Path | None) -> None:
    """The JSON Schema of the scenario language, for editors."""
    from evalkit.scenarios.json_schema import schema_text

    if out is None:
        click.echo(schema_text(), nl=False)
    else:
        out.write_text(schema_text(), encoding="utf-8")


@command.command()
@click.argument("harness")
@click.option(
    "--runner", type=click.Choice(["pytest", "node"]), help="Without it, by the language of the harness."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
def contract(harness: str, runner: Literal["pytest", "node"] | None, out: Path | None) -> None:
    """A test file that holds HARNESS to its card: the same reason, no more steps, no more spent.

    The scenes of the card are played twice. For pytest or node:test.
    """
    from evalkit.cli.harness_card import card_of
    from evalkit.harnesses.find import find_harness
    from evalkit.reports.harnesses.contract import contract_text, runner_for

    with one_line_errors():
        found = find_harness(harness)
        card, again = card_of(harness), card_of(harness)
    here = os.path.relpath(Path.cwd(), out.resolve().parent if out is not None else Path.cwd())
    text = contract_text(harness, card, again.sights, runner or runner_for(found), Path(here).as_posix())
    if out is None:
        click.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    command = "node --test" if (runner or runner_for(found)) == "node" else "pytest"
    click.echo(f"wrote {out}; run it with: {command} {out}")


@command.command()
@click.argument("name")
def new(name: str) -> None:
    """Write a scenario NAME.yaml to start from, in this folder."""
    file = Path(f"{Path(name).stem}.yaml")
    if file.exists():
        raise UsageProblem(f"{file}: is there already")
    schema_file = library_folder() / "schema.json"
    file.write_text(_NEW.format(name=file.stem, schema=schema_file), encoding="utf-8")
    click.echo(f"wrote {file}; try it with: evalkit scenarios check {file} && evalkit run {file}")
