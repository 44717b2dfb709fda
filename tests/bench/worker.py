"""Tasks per second of the durable worker, and whether a task costs more where the queue is longer.

Each task is five turns of a scripted model: the list, three items, the claim; 18 commits. ``make bench``
makes the table.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.core.tasks import Offered
from evalkit.strategies.presets import PRESETS
from evalkit.worker.scripted_workplace import StageWorkplace, scenario_stage
from evalkit.worker.store import Durability, SqlStore, open_store
from evalkit.worker.task_records import Order
from evalkit.worker.worker import Worker
from tests.worker.places import loaded

DURABILITIES: tuple[Durability, ...] = ("normal", "full")
QUEUES = (100, 1_000, 10_000)
#: Tasks worked on while the queue is that long.
SAMPLE = 100
SCENARIO = loaded(
    {
        "scenario": "bench",
        "family": "bench",
        "task": {"prompt": "Do every item.", "done_when": "Every item is done."},
        "world": {"kind": "items", "items": ["users", "orders", "invoices"]},
        "model": [{"call": "list_items"}, {"work": "rest"}, {"say": "All is done.", "claim": "done"}],
    }
)
CHANNELS: Offered = PRESETS["gate"].strategy.offers


def orders(first: int, count: int) -> list[Order]:
    """So many orders, numbered on."""
    return [Order(f"task-{number}", "Do it.", checks=("full",)) for number in range(first, first + count)]


def worker_of(store: SqlStore, home: Path) -> Worker:
    """A worker whose every workplace is a new stage in memory."""

    def kit(order: Order, folder: Path) -> StageWorkplace:
        return StageWorkplace(scenario_stage(SCENARIO, CHANNELS, 0))

    return Worker(store, home, "bench", kits=lambda name: kit)


def work(worker: Worker, count: int) -> tuple[float, float]:
    """Wall and CPU seconds for so many tasks."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        assert worker.work_one()
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(queue: int, durability: Durability, *, all_of_it: bool) -> dict[str, Any]:
    """Figures for a queue of that length: while it is full, and to its end where ``all_of_it``."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/tasks.sqlite", durability=durability)
        begun = time.perf_counter()
        store.add(orders(0, queue), 0.0)
        adding = time.perf_counter() - begun
        worker = worker_of(store, Path(folder))
        wall, cpu = work(worker, SAMPLE)
        figures = {"add": queue / adding, "wall": SAMPLE / wall, "cpu": cpu / SAMPLE}
        if all_of_it:
            rest_wall, rest_cpu = work(worker, queue - SAMPLE)
            figures["last"] = rest_cpu / (queue - SAMPLE)
            figures["all"] = queue / (wall + rest_wall)
            assert store.count() == {"done": queue}
        store.shut()
        return figures


def measure() -> dict[str, dict[str, Any]]:
    """Figures by durability and length of the queue."""
    return {
        f"{durability} {queue}": measured(
            queue, durability, all_of_it=durability == "normal" and queue == QUEUES[-1]
        )
        for durability in DURABILITIES
        for queue in QUEUES
    }


def markdown(table: dict[str, dict[str, Any]]) -> list[str]:
    """The table."""
    lines = [
        "Tasks of 5 turns and 18 commits each, one process, SQLite.",
        "",
        "| commit | queue | added/s | tasks/s | CPU ms a task |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    said = []
    for durability in DURABILITIES:
        for queue in QUEUES:
            row = table[f"{durability} {queue}"]
            cells = f"{queue:,} | {row['add']:,.0f} | {row['wall']:,.0f} | {1000 * row['cpu']:.2f}"
            lines.append(f"| {durability} | {cells} |")
            if "all" in row:
                last = f"{row['all']:,.0f} tasks/s, {1000 * row['last']:.2f} CPU ms a task"
                said.append(f"To the last of {queue:,}: {last}.")
    return [*lines, "", *said]
