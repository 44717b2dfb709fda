"""SIGKILL anywhere: each task ends done once, each payment is made once, no record is torn."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.worker.task_records import Order
from tests.worker.places import (
    PAYMENTS,
    STEPS,
    file_order,
    file_store,
    forked,
    payments,
    work_until_killed,
    world_of,
    write_scenario,
)

#: Seconds that the clock goes on from one worker to the next, so that the dead one's lease has run out.
GENERATION = 1000.0
#: The claim; for each payment its turn, reservation, confirmation and progress; for the list its turn, result
#: and progress; for the claim of "done" its turn and the closing.
COMMITS = 1 + PAYMENTS * 4 + 3 + 2


Run = Callable[..., int]


@pytest.fixture
def run(home: Path) -> Run:
    """Runs a worker process to its end, or kills it after some seconds; its exit code."""
    generation = 0

    def start(at: int, side: str, kill_after: float | None = None) -> int:
        nonlocal generation
        generation += 1
        now = generation * GENERATION
        return forked(lambda: work_until_killed(str(home), at, side, now), kill_after)

    return start


@pytest.fixture
def queue(home: Path) -> Callable[[str], Order]:
    file = write_scenario(home, payments())

    def add(id: str) -> Order:
        order = file_order(file, id)
        store = file_store(home)
        store.add((order,), 0.0)
        store.shut()
        return order

    return add


def check_done_once(order: Order, home: Path) -> None:
    """Everything that must hold of a task that was finished, however often its workers died."""
    store = file_store(home)
    record = store.get(order.id)
    assert record.status == "done"
    assert record.lease is None
    assert record.completion is not None
    assert record.completion.key == f"{order.id}:final"
    assert all(line.done for line in record.checklist)
    transcript = store.transcript(record.seq)
    assert [exchange.number for exchange in transcript] == list(range(1, STEPS + 1))
    effects = store.effects(record.seq)
    assert Counter(effect.status for effect in effects) == {"confirmed": PAYMENTS + 1}
    assert [event.ending for _, id, event in store.events() if event.kind == "end" and id == order.id] == [
        "done"
    ]
    store.shut()
    world = world_of(order, home).world
    assert world.effects == {f"post_payment {item}": 1 for item in world.spec.items}
    assert world.holds()


def check_whole(home: Path) -> None:
    base = sqlite3.connect(home / "tasks.sqlite")
    assert base.execute("pragma integrity_check").fetchall() == [("ok",)]
    base.close()


def killed_at(run: Run, queue: Callable[[str], Order], home: Path, points: list[tuple[int, str]]) -> None:
    for at, side in points:
        order = queue(f"task-{at}-{side}")
        assert run(at, side) == -signal.SIGKILL
        assert run(0, "") == 0
        check_done_once(order, home)
    check_whole(home)


def test_the_commits_are_as_many_as_the_steps_say(
    run: Run, queue: Callable[[str], Order], home: Path
) -> None:
    """So that "every persisted step" below is every one: the last is reached, and none comes after it."""
    order = queue("last")
    assert run(COMMITS, "after") == -signal.SIGKILL
    check_done_once(order, home)
    queue("none")
    assert run(COMMITS + 1, "before") == 0


@pytest.mark.long
def test_a_worker_killed_at_a_step_is_followed_by_one_that_finishes(
    run: Run, queue: Callable[[str], Order], home: Path
) -> None:
    points = [(at, "before" if at % 2 else "after") for at in range(1, COMMITS + 1, 4)]
    killed_at(run, queue, home, points)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_worker_killed_at_every_step(
    run: Run, queue: Callable[[str], Order], home: Path, side: str
) -> None:
    killed_at(run, queue, home, [(at, side) for at in range(1, COMMITS + 1)])


@pytest.mark.slow
@pytest.mark.soak
def test_one_task_whose_every_worker_is_killed_after_one_step(
    run: Run, queue: Callable[[str], Order], home: Path
) -> None:
    order = queue("stubborn")
    kills = 0
    while kills < COMMITS and run(2, "after") == -signal.SIGKILL:
        kills += 1
    assert kills == COMMITS - 1
    check_done_once(order, home)


@pytest.mark.slow
@pytest.mark.soak
def test_five_hundred_kills_at_random_points(run: Run, queue: Callable[[str], Order], home: Path) -> None:
    """Killed by the parent, wherever the worker is: between two commits, within one, within a call."""
    choices = random.Random(20261130)
    kills = number = 0
    orders = [queue("measured")]
    begun = time.monotonic()
    assert run(0, "") == 0
    life = 1.5 * (time.monotonic() - begun)
    while kills < 500:
        orders.append(queue(f"task-{number}"))
        number += 1
        while True:
            code = run(0, "", kill_after=choices.uniform(0.0, life))
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
    for order in orders:
        check_done_once(order, home)
    check_whole(home)
