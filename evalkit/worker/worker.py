"""A worker: leases tasks one after the other, works on each, and gives up cleanly when told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalkit.core.decisions import Ending, Report
from evalkit.strategies.registry import StrategyError, find_strategy
from evalkit.worker.attempt import Attempt, Pause
from evalkit.worker.escalation import hand_over
from evalkit.worker.store.protocol import LeaseLost, Store, StoreError
from evalkit.worker.task_records import LONGEST_WAIT, MAX_IDLE, Held, Lease, Status, TaskError
from evalkit.worker.telemetry import end_event
from evalkit.worker.workplace import Kit, find_kit

#: Seconds that a lease holds without being renewed.
LEASE_SECONDS = 60.0


class Stopped(BaseException):
    """The worker was told to stop. No ``except Exception`` of a kit may hold it up."""


class Stopping:
    """Whether the worker was told to stop. A signal handler calls :meth:`stop`."""

    def __init__(self) -> None:
        self.asked = False
        self._waits = False

    def stop(self) -> None:
        """Ask to stop; whoever waits for a model or for work stops at once, anyone else at the next step."""
        self.asked = True
        if self._waits:
            self._waits = False
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A time in which nothing is lost by stopping."""
        self._waits = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._waits = False


class Heartbeat:
    """Renews the lease that its worker holds, from a thread with a store of its own."""

    def __init__(self, open: Callable[[], Store], seconds: float, clock: Callable[[], float]) -> None:
        self._open = open
        self._seconds = seconds
        self._clock = clock
        self._lease: Lease | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._thread.start()

    def holds(self, lease: Lease | None) -> None:
        """The lease to renew from now on."""
        self._lease = lease

    def end(self) -> None:
        """Stop renewing."""
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        store: Store | None = None
        while not self._over.wait(self._seconds / 3):
            lease = self._lease
            if lease is None:
                continue
            try:
                store = store or self._open()
                store.renew(lease, self._clock() + self._seconds)
            except StoreError:
                # The worker meets the same trouble at its next step, or loses the lease.
                store = None
        if store is not None:
            store.shut()


class Worker:
    """Works on a store's tasks. ``home`` is the folder for what kits keep and for escalation artifacts.

    ``clock`` gives seconds since the epoch and may jump; ``steady`` never goes back. ``tell`` is told one
    line of each thing that went wrong.
    """

    def __init__(
        self,
        store: Store,
        home: Path,
        name: str,
        *,
        seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        kits: Callable[[str], Kit] = find_kit,
        pause: Pause = lambda times: None,
        stopping: Stopping | None = None,
        heartbeat: Heartbeat | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.store = store
        self.home = home
        self.name = name
        self.stopping = stopping or Stopping()
        self._seconds = seconds
        self._clock = clock
        self._steady = steady
        self._kits = kits
        self._pause = pause
        self._heartbeat = heartbeat
        self._tell = tell
        #: Leases: until when they are held, as they say, and the steady time at which they have run out. None
        #: before the first look.
        self._watched: dict[tuple[int, int], tuple[float, float]] | None = None

    def work_one(self) -> bool:
        """Lease a task and work on it as far as it goes; False where there is none to lease.

        Stopped and StoreError go through; the task, if one was leased, is left as the record says.
        """
        now = self._clock()
        held = self.store.claim(self.name, now, self._seconds, self._run_out(now), run_out=False)
        if held is None:
            return False
        if self._heartbeat is not None:
            self._heartbeat.holds(held.lease)
        try:
            status = self._work_on(held)
        finally:
            if self._heartbeat is not None:
                self._heartbeat.holds(None)
        if status == "escalated":
            hand_over(self.store, held.record.id, self.home)
        return True

    def _run_out(self, now: float) -> frozenset[tuple[int, int]]:
        """The leases of which nobody has renewed one for its whole time, by this process's own steady clock.

        The clocks of two machines differ, and one may jump: the time that a lease says is gone by only for
        those that were there before this worker, and for no longer than a lease's whole time.
        """
        steady, watched = self._steady(), {}
        for lease in self.store.leases():
            key = (lease.task, lease.number)
            left = self._seconds
            if self._watched is None:
                left = min(max(0.0, lease.until - now), left)
            elif key in self._watched and self._watched[key][0] == lease.until:
                watched[key] = self._watched[key]
                continue
            watched[key] = (lease.until, steady + left)
        self._watched = watched
        return frozenset(key for key, (_, end) in watched.items() if steady >= end)

    def _work_on(self, held: Held) -> Status | None:
        """The status in which the task was left, None where another attempt is needed."""
        order = held.record.order
        try:
            if held.record.idle > MAX_IDLE:
                raise TaskError(f"{held.record.idle - 1} attempts in a row ended without any progress")
            strategy = find_strategy(order.strategy)
            workplace = self._kits(order.kit)(order, self.home)
        except (TaskError, StrategyError) as error:
            return self._refuse(held, str(error))
        try:
            attempt = Attempt(
                held,
                strategy,
                workplace,
                self.store,
                self._clock,
                pause=self._pause,
                asking=self.stopping.waiting,
            )
            return attempt.work()
        except LeaseLost as lost:
            self._tell(f"{order.id}: {lost}")
        except Stopped:
            self._give_back(held, 0.0)
            raise
        except StoreError:
            raise
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            self._tell(f"{order.id}: attempt {held.record.attempts} failed: {said}")
            self._give_back(held, min(2.0 ** min(held.record.idle, 30), LONGEST_WAIT))
        finally:
            workplace.close()
        return None

    def _give_back(self, held: Held, wait: float) -> None:
        now = self._clock()
        try:
            self.store.give_back(held.lease, now, now + wait if wait else 0.0)
        except LeaseLost as lost:
            self._tell(f"{held.record.id}: {lost}")

    def _refuse(self, held: Held, why: str) -> Status | None:
        """Hand a task that cannot be worked on to a person."""
        now = self._clock()
        line = " ".join(why.split())
        self._tell(f"{held.record.id}: {line}")
        ending = Ending("error", "refused", Report(reason=line))
        events = (end_event(ending, held.record.last_stop or "", now),)
        try:
            self.store.close(
                held.lease,
                ending,
                "escalated",
                held.progress,
                held.record.checklist,
                (),
                events,
                None,
                now,
            )
        except LeaseLost as lost:
            self._tell(f"{held.record.id}: {lost}")
            return None
        return "escalated"

    def report(self) -> None:
        """Write the artifacts of escalated tasks whose worker died before it could."""
        for id in self.store.unreported():
            hand_over(self.store, id, self.home)

    def run(self, *, drain: bool, poll: float = 1.0, sleep: Callable[[float], None] = time.sleep) -> None:
        """Work until told to stop; with ``drain`` until nothing is left. ``poll`` seconds between looks."""
        self.report()
        try:
            while not self.stopping.asked:
                if self.work_one():
                    continue
                if drain and not self._waits_for_others():
                    return
                with self.stopping.waiting():
                    sleep(poll)
        except Stopped:
            pass

    def _waits_for_others(self) -> bool:
        """Whether tasks are leased by others or wait for their next try."""
        counts = self.store.count()
        return bool(counts.get("pending") or self.store.leases())
