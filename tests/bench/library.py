"""The whole library by every strategy, as ``evalkit run --all`` plays it, charts included.

``EVALKIT_BEFORE`` names a commit that is measured beside, in the same run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.bench.waits import EVALKIT, run
from tests.figures import ROOT, before

#: With nothing kept of earlier runs, and after a strategy of a file was edited.
WHEN = ("the first time", "again, a strategy edited")


def measure() -> dict[str, dict[str, tuple[float, float]]]:
    """Seconds of CPU, children included, and wall seconds of each run, by commit."""
    with before() as tree, tempfile.TemporaryDirectory() as temp:
        trees = {"now": ROOT} | ({"before": tree} if tree is not None else {})
        return {which: _runs(Path(temp) / which, of) for which, of in trees.items()}


def _runs(place: Path, tree: Path) -> dict[str, tuple[float, float]]:
    place.mkdir()
    found = {}
    for nudges, when in enumerate(WHEN, start=1):
        (place / "mine.yaml").write_text(f"done_when: silence\nnudges: {nudges}\n")
        found[when] = run((*EVALKIT, "run", "--all", "-s", "mine.yaml", "--out", "out"), place, tree)
    return found


def markdown(figures: dict[str, Any]) -> list[str]:
    """The table."""
    beside = "before" in figures
    head, rule = (" wall, of before | CPU, of before |", " ---: | ---: |") if beside else ("", "")
    lines = [
        "The library by every preset and a strategy of a file: `evalkit run --all -s mine.yaml`; goals: 6 "
        "and 3 s wall.",
        "",
        f"| | wall s | CPU s |{head}",
        f"| --- | ---: | ---: |{rule}",
    ]
    for when, (cpu, wall) in figures["now"].items():
        was = ""
        if beside:
            old_cpu, old_wall = figures["before"][when]
            was = f" {wall / old_wall:.2f} | {cpu / old_cpu:.2f} |"
        lines.append(f"| {when} | {wall:.1f} | {cpu:.1f} |{was}")
    return lines
