"""Tasks per second of the durable worker, and whether a task costs more where the queue is longer.

Each task is five turns of a scripted model: the list, three items, the claim; 18 commits. ``make bench``
prints the table.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.core.tasks import Offered
from evalkit.strategies.presets import PRESETS
from evalkit.worker.records import Order
from evalkit.worker.scripted import StageWorkplace, scenario_stage
from evalkit.worker.store import Durability, SqlStore, open_store
from evalkit.worker.worker import Worker
from tests.worker.places import loaded

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


def main() -> None:
    """Print the tables."""
    print("worker: tasks of 5 turns and 18 commits each, one process, SQLite")
    print(f"{'commit':>8} {'queue':>7} {'added/s':>9} {'tasks/s':>9} {'CPU ms a task':>14}")
    for durability in ("normal", "full"):
        for queue in QUEUES:
            whole = durability == "normal" and queue == QUEUES[-1]
            figures = measured(queue, durability, all_of_it=whole)
            line = f"{durability:>8} {queue:>7,} {figures['add']:>9,.0f} {figures['wall']:>9,.0f}"
            print(f"{line} {1000 * figures['cpu']:>14.2f}", flush=True)
            if whole:
                last = f"to the last of {queue:,}: {figures['all']:,.0f} tasks/s"
                print(f"{'':>8} {last}, {1000 * figures['last']:.2f} CPU ms a task")


if __name__ == "__main__":
    main()
