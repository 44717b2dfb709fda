"""``evalkit init``: a first set-up in a project."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.runs.store import Store

BASELINE = "termination-baseline.json"
WORKFLOW = Path(".github/workflows/termination.yml")
FOLDER = "reports/ci"
#: Where the first baseline is played: another folder, so that what is printed at the end can be pasted.
FIRST = "reports/baseline"
#: What a change of a harness breaks first, and what takes seconds and not minutes.
SUITES = ("partial_completion", "progress_updates", "pause_turn", "truncation")

_RULES = """\
[{section}]
strategies = ["{contender}"]     # who is held to the baseline
new_faults = ["false_done", "duplicate_effects"]   # a regression wherever they are new
allowed_flips = 0                # scenarios that may go from pass to fail
known_failures = []              # scenarios that may fail always
"""


@click.command()
@click.argument("harness", required=False)
@click.option("-s", "--strategy", help="A strategy of the reference loop instead of a harness.")
@click.option("--suite", "suites", multiple=True, help=f"What CI plays; without it: {', '.join(SUITES)}.")
@click.option(
    "--language", type=click.Choice(["python", "node"]), help="Of the project; without it, by its files."
)
@click.option("--run/--no-run", "plays", default=True, help="Play it now, for the first baseline.")
def command(
    harness: str | None, strategy: str | None, suites: tuple[str, ...], language: str | None, plays: bool
) -> None:
    """Set evalkit up for HARNESS in this project: rules, a first baseline, the CI file.

    HARNESS is what evalkit run --harness takes: a program, a folder with harness.toml, module:function. Rules
    go to pyproject.toml, or to evalkit.toml where there is none. What is there already is left as it is.
    """
    if (harness is None) == (strategy is None):
        raise UsageProblem("expected a HARNESS or --strategy", hint="evalkit init --strategy gate --no-run")
    node = language == "node" or (language is None and _is_node())
    asked = suites or SUITES
    who = ["--harness", harness] if harness is not None else ["-s", str(strategy)]
    contender = harness if harness is not None else str(strategy)
    _check(harness, strategy)
    if plays and not Path(BASELINE).exists():
        contender = _play(asked, harness, strategy)
    elif Path(BASELINE).exists():
        click.echo(f"{BASELINE}: is there already, left as it is")
    _write_rules(contender)
    what = shlex.join([*asked, *who])
    workflow = files("evalkit.cli") / "workflows" / ("node.yml" if node else "python.yml")
    _write(WORKFLOW, workflow.read_text(encoding="utf-8").replace("WHAT", what))
    missing = _not_installed(node)
    if harness is not None and missing:
        click.echo(f"note: {missing}")
    click.echo("review and commit them, reports/ not; by hand it is:")
    click.echo(f"  evalkit run {what} --out {FOLDER}")
    click.echo(f"  evalkit gate {FOLDER} --baseline {BASELINE}")


def _is_node() -> bool:
    return Path("package.json").is_file() and not Path("pyproject.toml").is_file()


def _not_installed(node: bool) -> str:
    """What the CI file cannot install for the harness, for there is no list of it."""
    if node:
        lock = Path("package-lock.json").is_file()
        return (
            "" if lock else "there is no package-lock.json here, and CI runs npm ci: npm install writes one"
        )
    if Path("requirements.txt").is_file() or Path("pyproject.toml").is_file():
        return ""
    none = "there is no requirements.txt and no pyproject.toml here"
    return f"{none}: CI does not install what the harness imports"


def _check(harness: str | None, strategy: str | None) -> None:
    from evalkit.harnesses.find import find_harness
    from evalkit.runs.plan import is_worker
    from evalkit.strategies.library import find_strategy

    with one_line_errors():
        if strategy is not None:
            find_strategy(strategy)
        elif harness is not None and not is_worker(harness):
            find_harness(harness)


def _play(suites: tuple[str, ...], harness: str | None, strategy: str | None) -> str:
    """Play the suites and write the first baseline; the contender's name."""
    from evalkit.cli.progress import progress_of
    from evalkit.cli.setting_up import set_up_all
    from evalkit.reports.baseline import baseline_of, baseline_text
    from evalkit.reports.figures import at_level, rate
    from evalkit.reports.write import write_report
    from evalkit.runs.engine import default_workers
    from evalkit.runs.medium import Medium
    from evalkit.runs.plan import is_worker, make_plan, sources_of
    from evalkit.runs.run import run_plan
    from evalkit.scenarios.suites import load_suites
    from evalkit.stats.records import contender_names

    with one_line_errors():
        scenarios = load_suites(suites)
        if harness is not None and not is_worker(harness):
            set_up_all((harness,))
        strategies = (strategy,) if strategy is not None else ()
        harnesses = (harness,) if harness is not None else ()
        plan = make_plan(scenarios, sources_of(scenarios), strategies, 1, None, Medium(), harnesses)
        store = Store.create(Path(FIRST), plan.recipe)
        with progress_of(plan.episodes(), quiet=False) as progress:
            run_plan(plan, store, default_workers(), progress)
        summary, _ = write_report(store, charts=False)
    (name,) = contender_names(store)
    text = baseline_text(baseline_of(store))
    store.close()
    counts = summary["run"]
    (row,) = at_level(summary, "all")
    right = f"{rate(row['correct'])} scenarios correct"
    click.echo(f"played {counts['episodes']} episodes, {right}: {FIRST}/index.html")
    if not counts["gateable"]:
        raise UsageProblem(
            f"{counts['void']} of {counts['episodes']} episodes are void: no baseline of that", hint=None
        )
    _write(Path(BASELINE), text)
    return name


def _write_rules(contender: str) -> None:
    project = Path("pyproject.toml")
    if not project.is_file():
        _write(Path("evalkit.toml"), _RULES.format(section="gate", contender=contender))
        return
    text = project.read_text(encoding="utf-8")
    if "[tool.evalkit" in text:
        click.echo(f"{project}: has a part of evalkit already, left as it is")
        return
    part = _RULES.format(section="tool.evalkit.gate", contender=contender)
    project.write_text(f"{text.rstrip()}\n\n{part}", encoding="utf-8")
    click.echo(f"{project}: added [tool.evalkit.gate]")


def _write(file: Path, text: str) -> None:
    if file.exists():
        click.echo(f"{file}: is there already, left as it is")
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{file}: cannot be written: {error.strerror}") from None
    click.echo(f"{file}: written")
