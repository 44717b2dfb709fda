"""What ``evalkit harnesses guarantees`` does: the runs, then the page that is made of them."""

from __future__ import annotations

import time
from pathlib import Path

from evalkit import __version__
from evalkit.cli.harness_setup import set_up_all
from evalkit.cli.kept_runs import kept_run
from evalkit.harnesses.find import GUARANTEES, find_harness, shipped
from evalkit.harnesses.manifest import Events
from evalkit.reports.harnesses.guarantees import Cell, Row, cells_of, class_of, guarantees_markdown
from evalkit.runs.plan import WORKER, is_worker, worker_cannot
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.foreign_episode import why_not_expressible

COMMAND = "evalkit harnesses guarantees --out docs/guarantees.md"


def with_events() -> tuple[str, ...]:
    """The durable worker, and the shipped harnesses that anything happens to from outside."""
    return (WORKER, *(name for name, harness in shipped().items() if harness.events != Events()))


def _compacts(name: str) -> bool:
    """Whether a harness is there for its compaction: killed, it does what its sibling without one does."""
    return not is_worker(name) and find_harness(name).events.compact is not None


def make_guarantees(names: tuple[str, ...], workers: int | None, runs: Path, out: Path) -> None:
    """Run what is missing and write the page; without names of all, those with a compaction unplayed."""
    every = names or with_events()
    played = [name for name in every if names or not _compacts(name)]
    set_up_all(tuple(name for name in played if not is_worker(name)))
    eventful = [scenario for scenario in load_suites() if scenario.events]
    rows = []
    for name in every:
        cells: dict[str, Cell] = {}
        if name in played:
            store = kept_run((str(GUARANTEES),), name, workers, runs, "the guarantees")
            cells = cells_of(store)
            store.close()
        rows.append(_row(name, cells, eventful))
    classes = [class_of(each.name, each.family, each.summary) for each in load_file(GUARANTEES)]
    date = time.strftime("%Y-%m-%d", time.gmtime())
    out.parent.mkdir(parents=True, exist_ok=True)
    page = guarantees_markdown(rows, classes, len(eventful), COMMAND, date, __version__)
    out.write_text(page, encoding="utf-8")


def _row(name: str, cells: dict[str, Cell], eventful: list[Scenario]) -> Row:
    if is_worker(name):
        plays = sum(not worker_cannot(scenario) for scenario in eventful)
        return Row(name, "the durable worker", cells, (), Events(("ended",), crash=True), plays)
    harness = find_harness(name)
    plays = sum(why_not_expressible(scenario, harness) is None for scenario in eventful)
    return Row(name, harness.summary, cells, harness.manifest.promises, harness.events, plays)
