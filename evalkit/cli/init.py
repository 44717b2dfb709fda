"""``evalkit init``: a first set-up in a project."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import BASELINE, new_run
from evalkit.runs.store import Store

if TYPE_CHECKING:
    from evalkit.runs.plan import Plan
    from evalkit.scenarios.scenario import Scenario

WORKFLOW = Path(".github/workflows/termination.yml")
FOLDER = "reports/ci"
#: Where the first baseline is played: another folder, so that what is printed at the end can be pasted.
FIRST = "reports/baseline"
#: What CI plays at least: what a change of a harness breaks first.
ALWAYS = ("partial_completion", "failed_step", "limits_boundary", "pause_turn", "refusal", "truncation")
#: Seconds that the families which CI plays may take together, by what an episode of the first try took.
PATIENCE = 120
#: Endings of programs for Node, where no file says of which language the project is.
_NODE = (".js", ".mjs", ".cjs", ".ts", ".mts")

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
@click.option(
    "--suite",
    "suites",
    multiple=True,
    help=(
        f"What CI plays; without it all families that take {PATIENCE} s together, always {', '.join(ALWAYS)}."
    ),
)
@click.option(
    "--language", type=click.Choice(["python", "node"]), help="Of the project; without it, by its files."
)
@click.option("--run/--no-run", "plays", default=True, help="Play it now, for the first baseline.")
def command(
    harness: str | None, strategy: str | None, suites: tuple[str, ...], language: str | None, plays: bool
) -> None:
    """Set evalkit up for HARNESS in this project: rules, a first baseline, the CI file.

    HARNESS is what evalkit run --harness takes: a program, a folder with harness.toml, module:function. It
    needs the extra harness, here and in CI: pip install 'evalkit-endings[harness]'. Rules
    go to pyproject.toml, or to evalkit.toml where there is none. What is there already is left as it is.
    """
    if (harness is None) == (strategy is None):
        raise UsageProblem("expected a HARNESS or --strategy", hint="evalkit init --strategy gate --no-run")
    node = language == "node" or (language is None and _is_node(harness))
    who = ["--harness", harness] if harness is not None else ["-s", str(strategy)]
    contender = harness if harness is not None else str(strategy)
    _check(harness, strategy)
    if Path(BASELINE).exists():
        click.echo(f"{BASELINE}: is there already, left as it is")
        suites = suites or _families_of(Path(BASELINE))
    elif plays:
        contender, suites = _play(suites, harness, strategy)
    else:
        suites = suites or ALWAYS
    _write_rules(contender)
    what = shlex.join([*suites, *who])
    workflow = files("evalkit.cli") / "workflows" / ("node.yml" if node else "python.yml")
    text = workflow.read_text(encoding="utf-8").replace("WHAT", what)
    text = text.replace("[EXTRA]", "[harness]" if harness is not None else "")
    install = _npm() if node else ""
    _write(WORKFLOW, text.replace("      - run: NPM\n", f"      - run: {install}\n" if install else ""))
    _ignore()
    missing = _not_installed(node)
    if harness is not None and missing:
        click.echo(f"note: {missing}")
    click.echo(
        "note: evalkit-endings is not on PyPI yet: name where CI gets it from in the CI file's pip install"
    )
    click.echo("review and commit them, reports/ not; by hand it is:")
    click.echo(f"  evalkit run {what} --out {FOLDER} --replace &&")
    click.echo(f"  evalkit gate {FOLDER} --baseline {BASELINE}")


def _is_node(harness: str | None) -> bool:
    if Path("pyproject.toml").is_file():
        return False
    return Path("package.json").is_file() or (harness or "").endswith(_NODE)


def _npm() -> str:
    """What installs the packages of a Node project; empty where there are none."""
    try:
        said = json.loads(Path("package.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise UsageProblem(f"package.json: not JSON: {error}") from None
    if not isinstance(said, dict) or not any(
        said.get(f"{kind}ependencies") for kind in ("d", "devD", "optionalD")
    ):
        return ""
    locks = ("package-lock.json", "npm-shrinkwrap.json")
    return "npm ci" if any(Path(lock).is_file() for lock in locks) else "npm install"


def _ignore() -> None:
    """Keep run folders out of commits, where there is a file for that."""
    file = Path(".gitignore")
    if not file.is_file():
        click.echo("note: there is no .gitignore here: leave reports/ out of commits")
        return
    text = file.read_text(encoding="utf-8")
    if not {"reports", "reports/", "/reports", "/reports/"} & {line.strip() for line in text.splitlines()}:
        file.write_text(
            text + ("" if text.endswith("\n") or not text else "\n") + "reports/\n", encoding="utf-8"
        )
        click.echo(f"{file}: added reports/")


def _not_installed(node: bool) -> str:
    """What the CI file cannot install for the harness, for there is no list of it."""
    if node:
        return "" if _npm() else "package.json names no dependencies: CI installs none"
    if Path("requirements.txt").is_file() or Path("pyproject.toml").is_file():
        return ""
    none = "there is no requirements.txt and no pyproject.toml here"
    return f"{none}: CI does not install what the harness imports"


def _check(harness: str | None, strategy: str | None) -> None:
    from evalkit.harnesses.find import find_harness
    from evalkit.runs.plan import is_worker
    from evalkit.strategies.registry import find_strategy

    with one_line_errors():
        if strategy is not None:
            find_strategy(strategy)
        elif harness is not None and not is_worker(harness):
            find_harness(harness)


def _families_of(file: Path) -> tuple[str, ...]:
    """What a baseline that is there was played with: families of the library, none for all of them."""
    from evalkit.reports.ci.baseline import BaselineError, Incompatible, read_baseline
    from evalkit.scenarios.suites import library_families, load_suites

    try:
        names = read_baseline(file).scenarios
    except (BaselineError, Incompatible) as error:
        raise UsageProblem(str(error)) from None
    found = sorted({scenario.family for scenario in load_suites() if scenario.name in names})
    return () if len(found) == len(library_families()) else tuple(found) or ALWAYS


def _play(suites: tuple[str, ...], harness: str | None, strategy: str | None) -> tuple[str, tuple[str, ...]]:
    """Play suites, or what a first try says is quick enough, and write the first baseline.

    The contender's name, and what was played.
    """
    from evalkit.cli.harness_setup import set_up_all
    from evalkit.containment.folders import temporary_folder
    from evalkit.reports.ci.baseline import baseline_of, baseline_text
    from evalkit.reports.formatting import at_level, rate
    from evalkit.reports.write import write_report
    from evalkit.runs.harness_warnings import oddities
    from evalkit.runs.plan import is_worker, make_plan, sources_of
    from evalkit.scenarios.suites import load_suites
    from evalkit.stats.scenario_results import contender_names

    def planned(scenarios: list[Scenario]) -> Plan:
        strategies = (strategy,) if strategy is not None else ()
        harnesses = (harness,) if harness is not None else ()
        return make_plan(scenarios, sources_of(scenarios), strategies, 1, harnesses=harnesses)

    with one_line_errors():
        if harness is not None and not is_worker(harness):
            set_up_all((harness,))
        if not suites:
            plan = planned(load_suites())
            with temporary_folder("init") as place:
                suites = _quick_enough(plan, planned(_one_for_each_family(plan)), place.folder / "run")
        plan = planned(load_suites(suites))
        store = _run(plan, Path(FIRST))
        summary, _ = write_report(store, charts=False)
        notes = list(oddities(store))
    (name,) = contender_names(store)
    text = baseline_text(baseline_of(store))
    store.close()
    counts = summary["run"]
    (row,) = at_level(summary, "all")
    right = f"{rate(row['correct'])} scenarios correct"
    click.echo(f"played {counts['episodes']} episodes, {right}: {FIRST}/index.html")
    for note in notes:
        click.echo(f"note: {note}")
    if not counts["gateable"]:
        raise UsageProblem(
            f"{counts['void']} of {counts['episodes']} episodes are void: no baseline of that", hint=None
        )
    spoiled = row["outcomes"].get("done/spoiled", 0)
    worst = f", {spoiled} with work spoiled" if spoiled else ""
    false = row["false_done"]["count"]
    click.echo(f"the baseline accepts {false or 'no'} false done{'' if false == 1 else 's'}{worst}")
    _write(Path(BASELINE), text)
    return name, suites


def _run(plan: Plan, folder: Path) -> Store:
    from evalkit.cli.progress import progress_of
    from evalkit.runs.engine import default_workers
    from evalkit.runs.run import run_plan

    store = new_run(folder, plan.recipe, replace=True)
    with progress_of(plan.episodes(), quiet=False) as progress:
        run_plan(plan, store, default_workers(), progress)
    return store


def _playable(plan: Plan) -> list[Scenario]:
    return [scenario for number, scenario in enumerate(plan.scenarios) if plan.seeds(number, 0)]


def _one_for_each_family(plan: Plan) -> list[Scenario]:
    """The first scenario of each family that can be played."""
    return list({scenario.family: scenario for scenario in reversed(_playable(plan))}.values())


def _quick_enough(plan: Plan, trial: Plan, folder: Path) -> tuple[str, ...]:
    """The families that CI plays, by the seconds an episode of a first try; none for all of them."""
    began = time.monotonic()
    _run(trial, folder).close()
    each = (time.monotonic() - began) / trial.episodes()
    chosen, left = chosen_families(Counter(scenario.family for scenario in _playable(plan)), each)
    click.echo(f"a first try took {each:.2g} s an episode: CI plays {len(chosen)} families", nl=False)
    beyond = f" in about {PATIENCE} s, and not {', '.join(left)} (--suite adds them)" if left else ""
    click.echo(beyond or ", all that can be played")
    return chosen if left else ()


def chosen_families(sizes: Mapping[str, int], each: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which families CI plays and which not: those of :data:`ALWAYS`, then the smallest that fit.

    ``sizes`` are episodes by family, ``each`` the seconds one takes; :data:`PATIENCE` is for all of them.
    """
    chosen = [family for family in ALWAYS if family in sizes]
    seconds = each * sum(sizes[family] for family in chosen)
    for family in sorted(set(sizes) - set(chosen), key=lambda family: (sizes[family], family)):
        seconds += each * sizes[family]
        if seconds <= PATIENCE:
            chosen.append(family)
    return tuple(sorted(chosen)), tuple(sorted(set(sizes) - set(chosen)))


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
