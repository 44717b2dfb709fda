"""The local engine and Dask on the same run: what an engine adds to the work itself."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.runs.chunks import Rows, Work
from evalkit.runs.engines import find_engine
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.run import BLOCK, run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text
from tests.bench.task import scenario_text

EPISODES = 10_000
TURNS = 8
STRATEGY = "gate"
WORKERS = 2
ENGINES = ("local", "dask")


class Counted:
    """An engine, and how many chunks came back from it."""

    def __init__(self, name: str) -> None:
        self.engine = find_engine(name, WORKERS)
        self.chunks = 0
        self.started = 0.0

    def run(self, plan: Plan, work: Work) -> Any:
        for rows in self.engine.run(plan, work):
            self.chunks += 1
            if self.chunks == 1:
                self.started = time.process_time()
            yield rows


def measure() -> dict[str, Any]:
    """Each engine, and how long the parent takes to keep the rows alone."""
    figures: dict[str, Any] = {name: run(name) for name in ENGINES}
    return {**figures, "episodes": EPISODES, "store_us_a_row": _keeping()}


def _plan(episodes: int) -> Plan:
    return make_plan(load_text(scenario_text(TURNS)), {}, (STRATEGY,), episodes)


def run(name: str) -> dict[str, float]:
    """Wall seconds, the parent's CPU seconds and chunks of a run."""
    print(f"--engine {name}: {EPISODES:,} episodes", file=sys.stderr, flush=True)
    plan, engine = _plan(EPISODES), Counted(name)
    with tempfile.TemporaryDirectory() as temp:
        store = Store.create(Path(temp) / "run", plan.recipe)
        wall, cpu = time.perf_counter(), time.process_time()
        run_plan(plan, store, WORKERS, engine=engine)
        figures = {
            "wall_s": time.perf_counter() - wall,
            "start_cpu_s": engine.started - cpu,
            "parent_cpu_s": time.process_time() - engine.started,
            "chunks": float(engine.chunks),
        }
        if store.count() != EPISODES:
            raise RuntimeError(f"{name}: {store.count()} of {EPISODES} episodes")
        store.close()
    return figures


def _keeping() -> float:
    """CPU microseconds that the store takes for a row, in chunks as they are on a machine that is free."""
    plan = _plan(20_000)
    chunks: list[Rows] = list(find_engine("local", 1).run(plan, Work(plan, plan.spans(BLOCK))))
    rows = [row for chunk in chunks for row in chunk]
    with tempfile.TemporaryDirectory() as temp:
        store = Store.create(Path(temp) / "run", plan.recipe)
        begun = time.process_time()
        for first in range(0, len(rows), 500):
            store.add(rows[first : first + 500])
        seconds = time.process_time() - begun
        store.close()
    return 1e6 * seconds / len(rows)


def markdown(figures: dict[str, Any]) -> list[str]:
    """The table."""
    lines = [
        f"{EPISODES:,} episodes of {TURNS} turns with `{STRATEGY}`, {WORKERS} workers, without the report. "
        "Dask starts a scheduler of its own in the parent.",
        "",
        "| engine | wall s | CPU s to the first chunk | parent's from there | chunks | CPU ms a chunk |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in ENGINES:
        row = figures[name]
        each = 1000 * row["parent_cpu_s"] / row["chunks"]
        lines.append(
            f"| `{name}` | {row['wall_s']:.1f} | {row['start_cpu_s']:.1f} | {row['parent_cpu_s']:.1f} "
            f"| {row['chunks']:,.0f} "
            f"| {each:.1f} |"
        )
    return [*lines, "", f"Keeping a row in the store takes {figures['store_us_a_row']:.1f} µs of CPU time."]
