"""Workers that fight for a lease, clocks that jump, a full disk, a store that another process holds."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.worker.store import SqliteDatabase, SqlStore, StoreBusy, StoreError, open_store
from evalkit.worker.task_records import Order
from evalkit.worker.worker import Worker
from tests.worker.places import (
    PAYMENTS,
    dying_store,
    file_order,
    file_store,
    forked,
    payments,
    start,
    wait,
    work_until_killed,
    world_of,
    write_scenario,
)

DAY = 86_400.0
#: Tasks that two workers fight for.
FOUGHT_OVER = 12


def queued(url: str, home: Path, tasks: int, count: int) -> list[Order]:
    file = write_scenario(home, payments(count))
    orders = [file_order(file, f"task-{number}") for number in range(tasks)]
    store = open_store(url, durability="normal")
    store.add(orders, 0.0)
    store.shut()
    return orders


def check_all_done_once(url: str, orders: list[Order], home: Path) -> None:
    store = open_store(url, durability="normal")
    for order in orders:
        record = store.get(order.id)
        assert record.status == "done"
        stage = world_of(order, home)
        assert set(stage.world.effects.values()) == {1}
        assert stage.world.holds()
        # What the model delivered is what is on record, once each and in order.
        assert [exchange.number for exchange in store.transcript(record.seq)] == list(
            range(1, stage.turns + 1)
        )
    ends = sorted(id for _, id, event in store.events() if event.kind == "end")
    assert ends == sorted(order.id for order in orders)
    store.shut()


# Two workers, and clocks


def fight(url: str, home: Path, name: str, jumps: tuple[float, ...]) -> None:
    """Work until all is done, by a clock that jumps about."""
    choices = random.Random(name)
    store = open_store(url, durability="normal", patience=30.0)

    def clock() -> float:
        return time.time() + choices.choice(jumps)

    # A lease that is over as soon as another sees it.
    worker = Worker(store, home, name, clock=clock, seconds=0.0)
    end = time.monotonic() + 60
    while store.count().get("done", 0) < FOUGHT_OVER:
        assert time.monotonic() < end, store.count()
        worker.work_one()
    store.shut()


@pytest.mark.long
def test_two_workers_whose_clocks_jump_fight_for_the_same_tasks(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that has run out is taken from a worker that lives and goes on acting."""
    # One that is robbed before it has done anything, again and again, is handed over to a person else.
    monkeypatch.setattr("evalkit.worker.worker.MAX_IDLE", 10_000)
    orders = queued(url, home, FOUGHT_OVER, 4)
    other = start(lambda: fight(url, home, "ahead", (DAY, 2 * DAY)))
    fight(url, home, "behind", (0.0, -DAY))
    assert wait(other) == 0
    check_all_done_once(url, orders, home)
    store = open_store(url)
    attempts = sum(record.attempts for record in store.find(None, None, 99))
    store.shut()
    assert attempts > len(orders), "nobody took a lease from anybody: the test shows nothing"


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 18), st.integers(1, 18))
def test_whoever_lost_the_lease_changes_nothing_more(first: int, second: int) -> None:
    """One worker is held up after a commit; another takes the task over, is held up too, and so on.

    Each that goes on after a hold-up acts under a lease that is lost, with what it knew then.
    """
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        home = Path(folder)
        url = str(home / "tasks.sqlite")
        orders = queued(url, home, 1, 3)
        held_up: list[str] = []

        def work_as(name: str, now: float, commit: int, meanwhile: Callable[[], None]) -> None:
            def told(number: int, side: str) -> None:
                if (number, side) == (commit, "after"):
                    held_up.append(name)
                    meanwhile()

            store = dying_store(url, told)
            Worker(store, home, name, clock=lambda: now, steady=lambda: 0.0).work_one()
            store.shut()

        def third() -> None:
            work_as("third", 2 * DAY, 0, lambda: None)

        def then() -> None:
            work_as("second", DAY, second, third)

        work_as("first", 0.0, first, then)
        store = open_store(url, durability="normal")
        while store.get(orders[0].id).status != "done":
            work_as("last", 3 * DAY, 0, lambda: None)
        store.shut()
        check_all_done_once(url, orders, home)
        assert held_up


def test_a_clock_that_jumps_back_leaves_no_task_behind(home: Path) -> None:
    """The dead worker's lease holds for another day by the clock; nobody renews it, so it has run out."""
    orders = queued(str(home / "tasks.sqlite"), home, 1, 3)
    assert forked(lambda: work_until_killed(str(home), 5, "after", 2 * DAY)) == -9
    store = file_store(home)
    steady = 0.0
    worker = Worker(store, home, "later", clock=lambda: DAY, steady=lambda: steady)
    assert not worker.work_one()
    steady = 59.0
    assert not worker.work_one()
    steady = 61.0
    assert worker.work_one()
    store.shut()
    check_all_done_once(str(home / "tasks.sqlite"), orders, home)


def test_a_clock_that_jumps_forward_costs_no_lease_of_the_living(home: Path) -> None:
    """One that nobody renews is taken all the same."""
    url = str(home / "tasks.sqlite")
    queued(url, home, 1, 1)
    store = file_store(home)
    held = store.claim("alive", 0.0, 60.0)
    assert held is not None
    steady = now = 0.0
    worker = Worker(store, home, "other", clock=lambda: now, steady=lambda: steady)
    assert not worker.work_one()
    now = DAY
    assert not worker.work_one()
    steady, now = 19.0, DAY + 19.0
    store.renew(held.lease, now + 60.0)
    steady, now = 61.0, DAY + 61.0
    assert not worker.work_one()
    steady, now = 120.0, 0.0
    assert not worker.work_one()
    steady = 122.0
    assert worker.work_one()
    store.shut()


def test_a_lease_that_is_renewed_is_not_taken_by_the_steady_clock(home: Path) -> None:
    url = str(home / "tasks.sqlite")
    queued(url, home, 1, 1)
    store = file_store(home)
    held = store.claim("alive", 0.0, 60.0)
    assert held is not None
    steady = 0.0
    worker = Worker(store, home, "other", clock=lambda: 0.0, steady=lambda: steady)
    for beat in range(1, 6):
        assert not worker.work_one()
        store.renew(held.lease, 60.0 + beat)
        steady += 50.0
    store.shut()


# A full disk


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; where none can be mounted, the test is not run."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_stops_the_worker_and_tears_nothing(tiny_disk: Path, home: Path) -> None:
    url = str(tiny_disk / "tasks.sqlite")
    orders = queued(url, home, 1, PAYMENTS)
    ballast = tiny_disk / "ballast"
    free = os.statvfs(tiny_disk)
    ballast.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 120_000))
    store = open_store(url, durability="normal")
    worker = Worker(store, home, "a worker", clock=lambda: 0.0)
    with pytest.raises(StoreError, match=r"full|disk I/O error"):
        worker.work_one()
    before = len(store.transcript(1))
    assert 0 < before < PAYMENTS
    with pytest.raises(StoreError):
        store.give_back(store.leases()[0], 0.0, 0.0)
    store.shut()
    ballast.unlink()
    base = sqlite3.connect(url)
    assert base.execute("pragma integrity_check").fetchall() == [("ok",)]
    base.close()
    store = open_store(url, durability="normal")
    assert Worker(store, home, "another", clock=lambda: 1000.0).work_one()
    store.shut()
    check_all_done_once(url, orders, home)


def test_a_file_that_may_not_grow_stops_the_worker_and_tears_nothing(home: Path) -> None:
    url = str(home / "tasks.sqlite")
    orders = queued(url, home, 1, PAYMENTS)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
        store = file_store(home)
        with pytest.raises(StoreError):
            Worker(store, home, "a worker", clock=lambda: 0.0).work_one()

    assert forked(limited) == 0
    store = file_store(home)
    assert 0 < len(store.transcript(1)) < PAYMENTS
    assert Worker(store, home, "another", clock=lambda: 1000.0).work_one()
    store.shut()
    check_all_done_once(url, orders, home)


# A store that another process holds


class Holder:
    """Another connection that holds the store until it lets go."""

    def __init__(self, file: Path) -> None:
        self._base = sqlite3.connect(file, isolation_level=None)
        self._base.execute("begin immediate")

    def let_go(self) -> None:
        self._base.execute("rollback")
        self._base.close()


def impatient(home: Path, busy: Callable[[int], bool]) -> SqlStore:
    return SqlStore(SqliteDatabase(str(home / "tasks.sqlite"), durability="normal", patience=0.01), busy)


def test_a_locked_store_is_waited_for(home: Path) -> None:
    url = str(home / "tasks.sqlite")
    orders = queued(url, home, 1, 3)
    waits = 0
    holders: list[Holder] = []

    def busy(times: int) -> bool:
        nonlocal waits
        waits += 1
        if times == 3:
            holders.pop().let_go()
        return True

    store = impatient(home, busy)
    worker = Worker(store, home, "a worker", clock=lambda: 0.0)
    holders.append(Holder(home / "tasks.sqlite"))
    assert worker.work_one()
    assert (waits, holders) == (3, [])
    store.shut()
    check_all_done_once(url, orders, home)


@pytest.mark.parametrize("locked_at", range(2, 20, 3))
def test_a_store_that_stays_locked_stops_the_worker_and_another_finishes(home: Path, locked_at: int) -> None:
    url = str(home / "tasks.sqlite")
    orders = queued(url, home, 1, 3)
    holders: list[Holder] = []

    class Locking(SqliteDatabase):
        commits = 0

        def begin(self) -> None:
            Locking.commits += 1
            if Locking.commits == locked_at + 1:
                holders.append(Holder(home / "tasks.sqlite"))
            super().begin()

    store = SqlStore(Locking(url, durability="normal", patience=0.01), busy=lambda times: times < 3)
    with pytest.raises(StoreBusy, match="locked by another process"):
        Worker(store, home, "a worker", clock=lambda: 0.0).work_one()
    store.shut()
    holders.pop().let_go()
    store = open_store(url)
    assert Worker(store, home, "another", clock=lambda: 1000.0).work_one()
    store.shut()
    check_all_done_once(url, orders, home)
