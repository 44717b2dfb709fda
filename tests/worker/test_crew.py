"""Several worker processes whose parent is killed: they end with it, and the next crew finishes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from evalkit.worker.store import open_store
from evalkit.worker.task_records import Order
from tests.clocks import can_jump, jumping
from tests.processes import gone, living
from tests.worker.places import file_order, payments, write_scenario
from tests.worker.test_statements import PAYMENTS, check

pytestmark = pytest.mark.long

#: Seconds that a lease of the tests holds.
LEASE = "2"


def crew(
    url: str, home: Path, *options: str, environment: Mapping[str, str] = os.environ
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evalkit", "task", "work", "--store", url, "--home", str(home)]
    command += ["--workers", "3", "--lease", LEASE, "--poll", "0.05", "--durability", "normal", *options]
    # Told apart by it from everybody else's.
    told = {**environment, "CREW_OF": str(home)}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=told)


def queued(url: str, home: Path, count: int) -> list[Order]:
    file = write_scenario(home, payments(PAYMENTS))
    orders = [file_order(file, f"pay-{number}") for number in range(count)]
    store = open_store(url, durability="normal")
    store.add(orders, time.time())
    store.shut()
    return orders


def finished(url: str) -> int:
    store = open_store(url, durability="normal")
    try:
        return store.count().get("done", 0)
    finally:
        store.shut()


def checked(url: str, home: Path, orders: list[Order]) -> None:
    """Each task is done, once."""
    store = open_store(url, durability="normal")
    for order in orders:
        check(store, order, home)
    store.shut()


def killed_and_followed(url: str, home: Path, orders: list[Order], moments: list[float]) -> list[int]:
    """A crew's parent is killed so many seconds after its first task was done; then one works to the end."""
    done = []
    for moment in moments:
        before = finished(url)
        if before == len(orders):
            break
        parent = crew(url, home)
        end = time.monotonic() + 60
        while finished(url) == before and time.monotonic() < end:
            time.sleep(0.01)
        assert len(living(f"CREW_OF={home}")) >= 4
        time.sleep(moment)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        # Two seconds on a machine that is free.
        assert gone(f"CREW_OF={home}", 6.0), "workers outlive their parent"
        done.append(finished(url))
    last = crew(url, home, "--drain")
    assert last.wait(120) == 0, last.stderr and last.stderr.read()
    checked(url, home, orders)
    return done


def test_a_crew_whose_parent_is_killed(url: str, home: Path) -> None:
    orders = queued(url, home, 30)
    (done,) = killed_and_followed(url, home, orders, [0.0])
    assert 0 < done < len(orders), "killed while it was working"


@pytest.mark.slow
@pytest.mark.soak
def test_thirty_crews_whose_parents_are_killed(url: str, home: Path) -> None:
    choices = random.Random(20261201)
    orders = queued(url, home, 1_000)
    done = killed_and_followed(url, home, orders, [choices.uniform(0.0, 0.3) for _ in range(30)])
    print(f"parents of crews killed: {len(done)} tried, {len(done)} held, the last with {done[-1]} done")
    assert len(done) == 30


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.skipif(not can_jump(), reason="a clock that jumps needs Linux and a C compiler")
def test_a_crew_whose_clock_jumps_loses_no_lease(url: str, home: Path, tmp_path: Path) -> None:
    """By minutes, days and years, a hundred times and more; it says nothing, and each task is done once."""
    orders = queued(url, home, 200)
    seen: set[str] = set()

    def all_began() -> bool:
        store = open_store(url, durability="normal")
        seen.update(lease.worker for lease in store.leases())
        store.shut()
        return len(seen) == 3

    with jumping(tmp_path, all_began) as environment:
        work = crew(url, home, "--drain", "--lease", "60", environment=environment)
        _, said = work.communicate(timeout=240)
    assert (work.returncode, said, len(seen)) == (0, "", 3)
    checked(url, home, orders)
