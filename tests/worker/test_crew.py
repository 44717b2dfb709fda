"""Several worker processes whose parent is killed: they end with it, and the next crew finishes, once each."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalkit.worker.records import Order
from evalkit.worker.store import open_store
from tests.processes import gone, living
from tests.worker.places import file_order, payments, write_scenario
from tests.worker.test_statements import PAYMENTS, check

#: Seconds that a lease of the tests holds.
LEASE = "2"


def crew(url: str, home: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evalkit", "task", "work", "--store", url, "--home", str(home)]
    command += ["--workers", "3", "--lease", LEASE, "--poll", "0.05", "--durability", "normal", *options]
    # Told apart by it from everybody else's.
    environment = {**os.environ, "CREW_OF": str(home)}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


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
        assert gone(f"CREW_OF={home}", 2.0), "workers outlive their parent"
        done.append(finished(url))
    last = crew(url, home, "--drain")
    assert last.wait(120) == 0, last.stderr and last.stderr.read()
    store = open_store(url, durability="normal")
    for order in orders:
        check(store, order, home)
    store.shut()
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
