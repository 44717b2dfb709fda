"""``evalkit gate``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import BASELINE, open_run

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("run")
@click.option("--baseline", "baseline_file", type=_FILE, help="Made by evalkit baseline.")
@click.option(
    "--rules",
    "rules_file",
    type=_FILE,
    help="TOML; without it, evalkit.toml [gate] or pyproject.toml [tool.evalkit.gate].",
)
@click.option("--junit", type=_FILE, help="Write JUnit XML.")
@click.option("--github", is_flag=True, help="Print annotations; add to $GITHUB_STEP_SUMMARY.")
def command(
    run: str, baseline_file: Path | None, rules_file: Path | None, junit: Path | None, github: bool
) -> None:
    """Hold RUN against a baseline. Exit 0: clean; 1: regression; 2: usage; 3: not gateable.

    Each reason is one line, but on a terminal that is narrower. A scenario that fails in every episode and
    did not before is a regression whatever the thresholds allow; so is a new false done or a new duplicate
    effect, unless new_faults says otherwise.
    """
    from evalkit.reports.answer import show_command
    from evalkit.reports.ci.baseline import BaselineError, Incompatible, read_baseline
    from evalkit.reports.ci.gate import Judgement, Reason, judge
    from evalkit.reports.ci.junit import github_annotations, junit_xml, step_summary, verdict
    from evalkit.reports.ci.rules import RulesError, read_rules
    from evalkit.reports.layout import print_entries

    if baseline_file is None:
        told, hint = "missing option '--baseline'", None
        if Path(BASELINE).is_file():
            hint = f"evalkit gate {shlex.quote(run)} --baseline {BASELINE}"
            told += f": {BASELINE} lies here"
        raise UsageProblem(told, hint=hint)
    with one_line_errors():
        try:
            rules = read_rules(rules_file)
            baseline = read_baseline(baseline_file)
        except (RulesError, BaselineError) as error:
            raise UsageProblem(" ".join(str(error).split())) from None
        except Incompatible as error:
            judgement = Judgement((Reason("not gateable", "", "", str(error)),), {})
        else:
            store = open_run(run)
            try:
                judgement = judge(store, baseline, rules)
            except RulesError as error:
                raise UsageProblem(" ".join(str(error).split())) from None
            finally:
                store.close()
    print_entries(" ".join(line.split()) for line in judgement.lines)
    compared = ", ".join(f"{name} in {len(found)} scenarios" for name, found in judgement.compared.items())
    print_entries((f"gate: {verdict(judgement)}" + (f" ({compared})" if compared else ""),))
    if judgement.left_open:
        print_entries((judgement.left_open,))
    first = next((reason for reason in judgement.of("regression") if reason.scenario), None)
    if first is not None:
        click.echo(f"next: {show_command(run, f'{first.scenario}/{first.contender}')}")
    if junit is not None:
        _write(junit, junit_xml(judgement))
    if github:
        for line in github_annotations(judgement):
            click.echo(line)
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            _write(Path(summary), step_summary(judgement), add=True)
    raise click.exceptions.Exit(judgement.code)


def _write(file: Path, text: str, *, add: bool = False) -> None:
    try:
        with file.open("a" if add else "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise UsageProblem(f"{file}: cannot be written: {error.strerror}") from None
