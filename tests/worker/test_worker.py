"""A worker's life: leasing, failing attempts, waiting, stopping, renewing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Limits, Task
from evalkit.core.turns import Call, Text, Turn, make_turn
from evalkit.worker.store import SqlStore, open_store
from evalkit.worker.task_records import MAX_IDLE, Exchange, Lease, Order, TaskError
from evalkit.worker.worker import Heartbeat, Stopped, Stopping, Worker
from evalkit.worker.workplace import Answer, Kit, Unavailable, Workplace, find_kit
from tests.worker.places import memory_store, memory_worker, payments, stage_of

DONE = make_turn((Text("All done."),), "end_turn", claim="done")


class Desk(Workplace):
    """A workplace without tools, whose model says what a test wants."""

    def __init__(self, say: Callable[[int], Turn]) -> None:
        self.task = Task("t", "p", "", "none", True, {}, 0, {}, Limits())
        self.model = self
        self.closed = 0
        self._say = say
        self._asked = 0

    def ask(self, transcript: list[Exchange], request: Request) -> Answer:
        self._asked += 1
        return Answer(self._say(self._asked))

    def run(self, call: Call, key: str | None) -> Result:
        return Result(call.id, "no such tool", True)

    def close(self) -> None:
        self.closed += 1


def order(id: str = "one", **fields: str) -> Order:
    return Order(id, "Say it.", strategy=fields.pop("strategy", "verifier_claim"), **fields)


class Clock:
    """Time that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Station:
    """A store with one worker at a desk, and what it told."""

    def __init__(self, home: Path, say: Callable[[int], Turn], **options: object) -> None:
        self.store = memory_store()
        self.desk = Desk(say)
        self.clock = Clock()
        self.told: list[str] = []
        self.worker = Worker(
            self.store,
            home,
            "w",
            clock=self.clock,
            steady=self.clock,
            kits=lambda name: lambda order, folder: self.desk,
            tell=self.told.append,
            **options,  # type: ignore[arg-type]
        )


def failing(times: int, error: Exception) -> Callable[[int], Turn]:
    def say(asked: int) -> Turn:
        if asked <= times:
            raise error
        return DONE

    return say


# Attempts


def test_a_model_that_cannot_be_reached_is_tried_again_later(tmp_path: Path) -> None:
    station = Station(tmp_path, failing(2, Unavailable("no answer from the gateway")))
    station.store.add((order(),), 0.0)
    for wait in (2.0, 4.0):
        assert station.worker.work_one()
        assert station.store.get("one").status == "pending"
        station.clock.now += wait - 0.1
        assert not station.worker.work_one()
        station.clock.now += 0.1
    assert station.worker.work_one()
    assert station.store.get("one").status == "done"
    assert station.told[0] == "one: attempt 1 failed: Unavailable: no answer from the gateway"
    assert station.desk.closed == 3


def test_attempts_without_progress_come_to_an_end(tmp_path: Path) -> None:
    station = Station(tmp_path, failing(10**6, RuntimeError("odd")))
    station.store.add((order(),), 0.0)
    for _ in range(MAX_IDLE + 1):
        assert station.worker.work_one()
        station.clock.now += 1000.0
    record = station.store.get("one")
    assert record.status == "escalated"
    assert record.ending is not None
    assert record.ending.report.reason == f"{MAX_IDLE} attempts in a row ended without any progress"
    assert record.artifact is not None
    assert Path(record.artifact).exists()


def test_a_call_that_fails_every_worker_has_an_end(tmp_path: Path) -> None:
    """Its reservation is on record from the first attempt on; to find it there again is no progress."""
    store, stage = memory_store(), stage_of(payments(1))
    run = stage.run

    def breaks(call: Call, key: str | None = None) -> Result:
        if call.tool == "post_payment":
            raise RuntimeError("out of memory")
        return run(call, key)

    stage.run = breaks  # type: ignore[method-assign]
    store.add((Order("a", "Do it.", checks=("full",)),), 0.0)
    lives = 0
    while store.get("a").status != "escalated":
        lives += 1
        assert memory_worker(store, stage, tmp_path, clock=lambda: lives * 1000.0).work_one()  # noqa: B023
    assert lives == MAX_IDLE + 2
    record = store.get("a")
    assert [effect.status for effect in store.effects(record.seq)] == ["confirmed", "reserved"]
    assert record.artifact is not None
    assert "In doubt" in Path(record.artifact).read_text()


def test_attempts_that_bring_progress_have_no_end(tmp_path: Path) -> None:
    """Each life gets one turn further; there are more lives than may fail without."""

    def say(asked: int) -> Turn:
        if asked % 2:
            raise Unavailable("again")
        return make_turn((Text("Still at it."),), "end_turn") if asked < 50 else DONE

    station = Station(tmp_path, say)
    station.store.add((Order("one", "Say it.", strategy="keyword"),), 0.0)
    for _ in range(2 * MAX_IDLE):
        station.worker.work_one()
        station.clock.now += 1000.0
    record = station.store.get("one")
    assert record.attempts > MAX_IDLE
    assert record.ending is None or record.ending.native == "max_turns"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (order(strategy="none_such"), "unknown strategy 'none_such'"),
        (Order("one", "x", kit="none:such", strategy="silence"), "kit 'none:such' cannot be loaded"),
    ],
)
def test_what_can_never_be_worked_on_is_handed_over_at_once(tmp_path: Path, bad: Order, why: str) -> None:
    store = memory_store()
    store.add((bad,), 0.0)
    assert Worker(store, tmp_path, "w").work_one()
    record = store.get("one")
    assert record.status == "escalated"
    assert record.ending is not None
    assert why in record.ending.report.reason


def test_a_task_taken_by_another_is_left_to_it(tmp_path: Path) -> None:
    station = Station(tmp_path, lambda asked: DONE)
    station.store.add((order(),), 0.0)
    station.desk._say = lambda asked: (station.store.claim("other", 1e6, 60.0), DONE)[1]
    assert station.worker.work_one()
    assert station.store.get("one").status == "in_progress"
    assert station.told == ["one: task 1: lease 1 of w is lost"]


def test_a_failed_answer_is_waited_for_and_asked_again(tmp_path: Path) -> None:
    failed = make_turn((), "failed", native="http_529")
    waits: list[int] = []
    station = Station(tmp_path, lambda asked: failed if asked < 4 else DONE, pause=waits.append)
    station.store.add((order(),), 0.0)
    station.worker.work_one()
    assert waits == [1, 2, 3]
    assert station.store.get("one").status == "done"


def test_artifacts_that_a_dead_worker_owed_are_written(tmp_path: Path) -> None:
    station = Station(tmp_path, lambda asked: DONE)
    station.store.add((order(),), 0.0)
    station.store.escalate("one", "odd", "Ada", 1.0)
    station.worker.report()
    assert (tmp_path / "escalations" / "one.md").exists()
    assert station.store.unreported() == []


# Stopping


def test_a_worker_asked_to_stop_while_a_model_answers_gives_the_task_back(tmp_path: Path) -> None:
    stopping = Stopping()

    def say(asked: int) -> Turn:
        stopping.stop()
        return DONE

    station = Station(tmp_path, say, stopping=stopping)
    station.store.add((order(),), 0.0)
    station.worker.run(drain=True)
    record = station.store.get("one")
    assert (record.status, record.turns, record.lease) == ("pending", 0, None)
    assert station.desk.closed == 1


def test_a_worker_asked_to_stop_while_a_tool_runs_confirms_it_first(tmp_path: Path) -> None:
    stopping = Stopping()
    store, stage = memory_store(), stage_of(payments(3))
    run = stage.run

    def run_and_stop(call: Call, key: str | None = None) -> Result:
        if call.tool == "post_payment":
            stopping.stop()
        return run(call, key)

    stage.run = run_and_stop  # type: ignore[method-assign]
    store.add((Order("a", "Do it.", checks=("full",)),), 0.0)
    memory_worker(store, stage, tmp_path, stopping=stopping).run(drain=True)
    record = store.get("a")
    assert record.status == "pending"
    assert [effect.status for effect in store.effects(record.seq)] == ["confirmed", "confirmed"]
    stage.run = run  # type: ignore[method-assign]
    memory_worker(store, stage, tmp_path).run(drain=True)
    assert store.get("a").status == "done"
    assert set(stage.world.effects.values()) == {1}


def test_stopping_is_no_exception_that_a_kit_could_swallow() -> None:
    assert not issubclass(Stopped, Exception)


def test_an_idle_worker_stops_at_once_and_drains_when_nothing_is_left(tmp_path: Path) -> None:
    station = Station(tmp_path, lambda asked: DONE)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            station.worker.stopping.stop()

    station.worker.run(drain=False, poll=0.5, sleep=sleep)
    assert slept == [0.5, 0.5, 0.5]
    station = Station(tmp_path, lambda asked: DONE)
    station.store.add((order(),), 0.0)
    station.worker.run(drain=True, sleep=slept.append)
    assert len(slept) == 3


def test_draining_waits_for_what_others_hold(tmp_path: Path) -> None:
    station = Station(tmp_path, lambda asked: DONE)
    station.store.add((order(),), 0.0)
    held = station.store.claim("other", station.clock.now, 60.0)
    assert held is not None
    polls: list[float] = []

    def sleep(seconds: float) -> None:
        polls.append(seconds)
        station.clock.now += 61.0

    station.worker.run(drain=True, sleep=sleep)
    assert len(polls) == 1
    assert station.store.get("one").status == "done"


# Renewing


class Renewed:
    """A store that only counts renewals, and tells when there were enough."""

    def __init__(self) -> None:
        self.until: list[float] = []
        self.enough = threading.Event()

    def renew(self, lease: Lease, until: float) -> bool:
        self.until.append(until)
        if len(self.until) >= 3:
            self.enough.set()
        return True

    def shut(self) -> None:
        pass


def test_a_heartbeat_renews_what_is_held() -> None:
    store = Renewed()
    heartbeat = Heartbeat(lambda: store, 0.003, lambda: 7.0)  # type: ignore[arg-type, return-value]
    heartbeat.holds(Lease(1, 1, "w", 0.0))
    assert store.enough.wait(10)
    heartbeat.holds(None)
    heartbeat.end()
    assert set(store.until) == {7.003}


def test_a_task_that_takes_longer_than_its_lease_is_kept(home: Path) -> None:
    """The model answers only when the lease was renewed: the thread does it, from its own connection."""
    url = str(home / "tasks.sqlite")
    store = open_store(url, durability="normal")

    def say(asked: int) -> Turn:
        reader = open_store(url, durability="normal")
        first = reader.leases()[0].until
        while reader.leases()[0].until == first:
            assert heartbeat._thread.is_alive()
        reader.shut()
        return DONE

    clock = Clock()
    heartbeat = Heartbeat(lambda: open_store(url, durability="normal"), 0.03, lambda: clock.now + 1)
    desk = Desk(say)
    worker = Worker(
        store, home, "w", clock=clock, kits=lambda name: lambda order, folder: desk, heartbeat=heartbeat
    )
    store.add((order(),), 0.0)
    assert worker.work_one()
    heartbeat.end()
    assert store.get("one").status == "done"
    store.shut()


# Kits


def kit(order: Order, home: Path) -> Desk:
    """A kit for the test below."""
    return Desk(lambda asked: DONE)


def test_a_kit_is_found_by_module_and_name() -> None:
    found: Kit = find_kit("tests.worker.test_worker:kit")
    assert isinstance(found(order(), Path()), Desk)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nonsense", "unknown kit 'nonsense'; known: scenario"),
        ("tests.worker.test_worker:nothing", "AttributeError"),
        ("tests.worker.test_worker:DONE", "is not callable: found Turn"),
    ],
)
def test_a_kit_that_is_none_is_named(name: str, why: str) -> None:
    with pytest.raises(TaskError, match=why):
        find_kit(name)


def test_a_workplace_that_knows_nothing_of_a_tool_is_careful() -> None:
    desk = Desk(lambda asked: DONE)
    assert desk.care(Call("c", "anything", "{}")) == "uncertain"
    with pytest.raises(TaskError, match="knows no check 'full'"):
        desk.check("full")


def test_several_checks_must_all_pass(tmp_path: Path) -> None:
    """By name, from the order; each is on record as evidence."""
    store: SqlStore = memory_store()
    stage = stage_of(payments(2))
    store.add((Order("a", "Do it.", strategy="acceptance", checks=("weak", "full")),), 0.0)
    memory_worker(store, stage, tmp_path).work_one()
    record = store.get("a")
    assert record.status == "done"
    assert [piece.name for piece in store.evidence(record.seq)] == ["check weak", "check full"]
    store.add((Order("b", "Do it.", strategy="acceptance", checks=("odd",)),), 0.0)
    memory_worker(store, stage_of(payments(1)), tmp_path).work_one()
    ending = store.get("b").ending
    assert ending is not None
    assert "checks full and weak, not 'odd'" in ending.report.reason
