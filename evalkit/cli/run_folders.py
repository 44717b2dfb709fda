"""Where run folders are."""

from __future__ import annotations

from pathlib import Path

from evalkit.runs.plan import Recipe
from evalkit.runs.store import FILE, RunError, Store, remove_run

REPORTS = Path("reports")
#: Runs that are named where the one that was asked for is not there.
_NAMED = 5
#: The baseline that init writes and CI holds runs against.
BASELINE = "termination-baseline.json"
#: Of ``--charts/--no-charts``: what :func:`evalkit.reports.write.draws` does.
CHARTS_HELP = "Draw the charts. Without either: where there are 20 scenarios and more."


def find_run(name: str) -> Path:
    """A run folder by path, by name below ``reports/``, or ``latest``. RunError where there is none."""
    if name == "latest":
        runs = sorted(REPORTS.glob(f"*/{FILE}"), key=lambda file: file.stat().st_mtime)
        if not runs:
            raise RunError(f"there is no run in {REPORTS}/ yet; make one with: evalkit run")
        return runs[-1].parent
    for folder in (Path(name), REPORTS / name):
        if (folder / FILE).is_file():
            return folder
    there = ", ".join(str(file.parent) for file in sorted(REPORTS.glob(f"*/{FILE}"))[:_NAMED])
    raise RunError(f"{name}: is no run folder (no {FILE})" + (f"; there are: {there}" if there else ""))


def open_run(name: str, *, write: bool = False) -> Store:
    """The store of a run found by :func:`find_run`."""
    return Store.open(find_run(name), write=write)


def new_run(folder: Path, recipe: Recipe, *, replace: bool = False) -> Store:
    """A store for a new run, with ``replace`` in the place of the run that is there, report and all.

    RunError where the folder is taken, or holds what may not be removed.
    """
    if replace:
        from evalkit.reports.write import REPORT

        remove_run(folder, REPORT)
    return Store.create(folder, recipe)
