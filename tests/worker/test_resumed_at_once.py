"""Many processes resume one task, or answer one question, at the same moment: each effect is had once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evalkit.worker.reopening import reopen
from evalkit.worker.task_records import TaskError
from evalkit.worker.worker import Worker
from tests.worker.places import (
    dying_store,
    file_order,
    file_store,
    kill_self,
    payments,
    start,
    wait,
    world_of,
    write_scenario,
)

pytestmark = pytest.mark.long

#: A time at which the lease of whoever worked before has run out.
LATER = 1000.0


def at_once(count: int, work: Callable[[], None]) -> None:
    """Run ``work`` in so many processes that are let go together."""
    ready, go = os.pipe()

    def waiting() -> None:
        os.close(go)
        os.read(ready, 1)
        work()

    children = [start(waiting) for _ in range(count)]
    os.close(go)
    os.close(ready)
    assert [wait(child) for child in children] == [0] * count


def resumed_at_once(home: Path, id: str, count: int, killed_at: int) -> None:
    """A worker is killed after a commit, and so many resume its task; each payment is made once."""
    document = payments(2)
    order = file_order(write_scenario(home, document), id)
    store = file_store(home)
    store.add((order,), 0.0)
    store.shut()

    def work(now: float, commit: int = 0) -> None:
        mine = dying_store(f"{home}/tasks.sqlite", kill_self(commit, "after"))
        Worker(mine, home, f"worker {os.getpid()}", clock=lambda: now, steady=lambda: 0.0).work_one()
        mine.shut()

    assert wait(start(lambda: work(0.0, killed_at))) == -signal.SIGKILL
    at_once(count, lambda: work(LATER))
    store = file_store(home)
    record = store.get(order.id)
    assert record.status == "done", record
    assert {effect.status for effect in store.effects(record.seq)} == {"confirmed"}
    assert [event.ending for _, who, event in store.events() if who == id and event.kind == "end"] == ["done"]
    store.shut()
    effects = world_of(order, home).world.effects
    assert effects == {"post_payment PAY-000": 1, "post_payment PAY-001": 1}


@pytest.mark.parametrize("count", [2, 4, 8])
def test_each_effect_once(home: Path, count: int) -> None:
    for killed_at in (3, 6):
        resumed_at_once(home, f"task-{count}-{killed_at}", count, killed_at)


@pytest.mark.slow
@pytest.mark.soak
def test_once_in_a_thousand_of_a_thousand(home: Path) -> None:
    for number in range(1000):
        # Each in a home of its own: a queue does not grow with the number of trials.
        resumed_at_once(home / f"{number}", "task", (2, 4, 8)[number % 3], 2 + number % 8)


def answered_at_once(home: Path, count: int) -> int:
    """So many answer one question that a task was handed over with, and work on; how many were heard."""
    document = payments(2)
    document["model"] = [
        {"call": "list_payments"},
        {"work": 1},
        {"refuse": {"category": "cyber", "text": "Shall I?"}},
        {"work": "rest"},
        {"say": "Both are posted.", "claim": "done"},
    ]
    order = file_order(write_scenario(home, document), "asks", strategy="acceptance")
    store = file_store(home)
    store.add((order,), 0.0)
    store.shut()
    heard_at, heard = os.pipe()

    def work() -> None:
        mine = file_store(home)
        Worker(mine, home, f"worker {os.getpid()}", clock=lambda: 0.0, steady=lambda: 0.0).work_one()
        mine.shut()

    def answer() -> None:
        mine = file_store(home)
        # Whoever comes second is told that it waits for nobody.
        with suppress(TaskError):
            reopen(mine, order.id, "Go on.", LATER)
            os.write(heard, b"x")
        Worker(mine, home, f"worker {os.getpid()}", clock=lambda: LATER, steady=lambda: 0.0).work_one()
        mine.shut()

    assert wait(start(work)) == 0
    store = file_store(home)
    assert store.get(order.id).status == "escalated"
    store.shut()
    at_once(count, answer)
    os.close(heard)
    answers = len(os.read(heard_at, 100))
    os.close(heard_at)
    effects = world_of(order, home).world.effects
    assert effects == {"post_payment PAY-000": 1, "post_payment PAY-001": 1}
    return answers


@pytest.mark.parametrize("count", [2, 4, 8])
def test_one_answer_is_heard(home: Path, count: int) -> None:
    assert answered_at_once(home, count) == 1
