"""A worker killed at every statement to its store, on SQLite and PostgreSQL: the next one finishes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalkit.worker.store import SqliteDatabase, SqlStore, open_store
from evalkit.worker.store.postgres import PostgresDatabase
from evalkit.worker.task_records import Order
from evalkit.worker.worker import Worker
from tests.worker.places import file_order, forked, payments, world_of, write_scenario

pytestmark = pytest.mark.long

PAYMENTS = 2
#: Seconds that the clock goes on from one worker to the next, so that the dead one's lease has run out.
GENERATION = 1000.0


def database(url: str) -> Any:
    """A connection to the store at a URL."""
    return PostgresDatabase(url) if url.startswith("postgres") else SqliteDatabase(url, durability="normal")


def work(url: str, home: Path, now: float, at: int, side: str) -> None:
    """A worker that ends with its ``at``-th statement; 0 is none. What it counted stands in a file."""
    base: Any = database(url)
    store = SqlStore(base)
    execute, told = base.execute, 0

    def counted(statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        nonlocal told
        told += 1
        if (told, side) == (at, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        rows: list[tuple[Any, ...]] = execute(statement, values)
        if (told, side) == (at, "after"):
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    base.execute = counted
    worker = Worker(store, home, f"worker {os.getpid()}", clock=lambda: now, steady=lambda: 0.0)
    worker.work_one()
    (home / "statements").write_text(str(told))
    store.shut()


def add(url: str, home: Path, id: str) -> Order:
    order = file_order(write_scenario(home, payments(PAYMENTS)), id)
    store = open_store(url, durability="normal")
    store.add((order,), 0.0)
    store.shut()
    return order


def check(store: SqlStore, order: Order, home: Path) -> None:
    record = store.get(order.id)
    assert (record.status, record.lease) == ("done", None)
    assert all(line.done for line in record.checklist)
    assert Counter(effect.status for effect in store.effects(record.seq)) == {"confirmed": PAYMENTS + 1}
    assert [event.ending for _, id, event in store.events() if event.kind == "end" and id == order.id] == [
        "done"
    ]
    world = world_of(order, home).world
    assert world.effects == {f"post_payment {item}": 1 for item in world.spec.items}


def killed_at(url: str, home: Path, points: list[tuple[int, str]]) -> None:
    now = GENERATION
    for at, side in points:
        order = add(url, home, f"task-{at}-{side}")
        assert forked(lambda at=at, side=side, now=now: work(url, home, now, at, side)) == -signal.SIGKILL  # type: ignore[misc]
        assert forked(lambda now=now: work(url, home, now + GENERATION, 0, "")) == 0  # type: ignore[misc]
        now += 2 * GENERATION
        store = open_store(url, durability="normal")
        check(store, order, home)
        store.shut()


def statements(url: str, home: Path) -> int:
    """How many statements a task takes."""
    add(url, home, "whole")
    assert forked(lambda: work(url, home, 0.0, 0, "")) == 0
    return int((home / "statements").read_text())


def test_a_worker_killed_at_a_statement_is_followed_by_one_that_finishes(url: str, home: Path) -> None:
    count = statements(url, home)
    assert count > 20
    killed_at(url, home, [(1 + (count - 1) * part // 5, "before") for part in range(6)])
    killed_at(url, home, [(1 + (count - 1) * part // 3, "after") for part in range(3)])


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_at_every_statement(url: str, home: Path, side: str) -> None:
    count = statements(url, home)
    # After its last statement nothing of a worker is left to be done.
    points = [(at, side) for at in range(1, count + (side == "before"))]
    killed_at(url, home, points)
    print(f"killed {side} each of {count} statements: {len(points)} tried, {len(points)} held")
