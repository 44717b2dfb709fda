"""The store's contract, over SQLite and over PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.decisions import Ending, Report
from evalkit.core.requests import Request, Result
from evalkit.core.turns import Text, make_turn
from evalkit.loop.state import State
from evalkit.worker.store import LeaseLost, SqliteDatabase, SqlStore, StoreError, open_store
from evalkit.worker.store.schema import MIGRATIONS, migrate
from evalkit.worker.task_records import (
    LONGEST_WAIT,
    Completion,
    Effect,
    Event,
    Evidence,
    Exchange,
    Held,
    Item,
    Order,
    Progress,
    TaskError,
)
from tests.worker.conftest import Opener
from tests.worker.places import start, wait

TURN = make_turn((Text("Odd: \ud800 \x00 é"),), "end_turn", native="stop")
EFFECT = Effect(1, 0, "post \ud800", '{"a": 1}', "keyed", "key", 1 << 90, reserved=1.0)


def order(id: str = "one", **fields: Any) -> Order:
    return Order(id, "Do it.", items=("a", "b"), **fields)


def leased(store: SqlStore, id: str = "one", now: float = 0.0) -> Held:
    store.add((order(id),), now)
    held = store.claim("w", now, 60.0)
    assert held is not None
    return held


def closed(store: SqlStore, held: Held, status: Any = "escalated", native: str = "nudges") -> None:
    ending = Ending("escalated" if status == "escalated" else "done", native, Report(("b",), (), "why"))
    store.close(held.lease, ending, status, Progress(resume="answer"), (), (), (), None, 5.0)


# The queue


@pytest.mark.long
def test_tasks_come_in_order_and_each_goes_to_one_worker(open_one: Opener) -> None:
    one, other = open_one(), open_one()
    assert one.add([order("a"), order("b"), order("c")], 1.0) == 3
    got = [store.claim("w", 2.0, 60.0) for store in (one, other, one, other)]
    assert [held.record.id if held else None for held in got] == ["a", "b", "c", None]
    assert one.count() == {"in_progress": 3}


def test_a_new_task_is_as_it_was_ordered(open_one: Opener) -> None:
    store = open_one()
    asked = order(settings={"x": [1, {"y": None}]}, checks=("full",), closure="person")
    store.add((asked,), 7.5)
    record = store.get("one")
    assert (record.order, record.status, record.created, record.lease) == (asked, "pending", 7.5, None)
    assert record.checklist == (Item("a", False), Item("b", False))


def test_adding_again_does_nothing_and_another_order_is_refused(open_one: Opener) -> None:
    store = open_one()
    assert store.add((order(),), 0.0) == 1
    assert store.add((order(),), 9.0) == 0
    with pytest.raises(TaskError, match="'one' is queued already and asks for something else"):
        store.add((order("two"), order(type="other")), 9.0)
    assert [record.id for record in store.find(None, None, 9)] == ["one"]


def test_a_lease_that_ran_out_goes_to_the_next_before_new_tasks(open_one: Opener) -> None:
    store = open_one()
    first = leased(store, "one", 0.0)
    store.add((order("two"),), 0.0)
    again = store.claim("other", 60.0, 60.0)
    assert again is not None
    assert again.record.id == "one"
    assert again.lease.number == first.lease.number + 1
    assert again.record.attempts == 2


def test_a_lease_holds_while_it_is_renewed(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    assert store.renew(held.lease, 100.0)
    assert store.claim("other", 60.0, 60.0) is None
    assert [lease.until for lease in store.leases()] == [100.0]
    assert store.claim("other", 100.0, 60.0) is not None
    assert not store.renew(held.lease, 200.0)


def test_a_lease_that_has_run_out_is_left_where_the_clock_is_not_trusted(open_one: Opener) -> None:
    store = open_one()
    leased(store)
    assert store.claim("two", 61.0, 60.0, run_out=False) is None
    assert store.claim("two", 61.0, 60.0) is not None


def test_nobody_waits_for_a_clock_that_went_back(open_one: Opener) -> None:
    store = open_one()
    held = leased(store, now=90_000.0)
    store.give_back(held.lease, 90_000.0, 90_000.0 + LONGEST_WAIT)
    assert store.claim("two", 90_001.0, 60.0) is None
    assert store.claim("two", 10.0, 60.0) is not None


def test_a_stale_lease_is_taken_whatever_the_clock_says(open_one: Opener) -> None:
    store = open_one()
    held = leased(store, now=1e9)
    assert store.claim("other", 5.0, 60.0, frozenset({(held.lease.task, held.lease.number + 1)})) is None
    taken = store.claim("other", 5.0, 60.0, frozenset({(held.lease.task, held.lease.number)}))
    assert taken is not None


def test_a_task_given_back_waits_for_its_time(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    store.give_back(held.lease, 1.0, not_before=10.0)
    assert store.claim("w", 9.0, 60.0) is None
    assert store.claim("w", 10.0, 60.0) is not None


def test_one_task_can_be_held_by_its_name_unless_it_is_done(open_one: Opener) -> None:
    store = open_one()
    store.add((order("a"), order("b")), 0.0)
    assert store.hold("b", "w", 0.0, 60.0).record.id == "b"
    store.complete("a", "k", "Ada", "seen", 1.0)
    with pytest.raises(TaskError, match="'a' is done"):
        store.hold("a", "w", 0.0, 60.0)
    with pytest.raises(TaskError, match="no task 'c'"):
        store.hold("c", "w", 0.0, 60.0)


def test_parked_tasks_are_on_record_and_no_worker_takes_them(open_one: Opener) -> None:
    store = open_one()
    store.add((order(),), 0.0, parked=True)
    assert store.claim("w", 1e9, 60.0) is None
    held = store.hold("one", "w", 0.0, 60.0)
    store.keep_progress(held.lease, Progress(), (), (), False, 1.0, parked=True)
    assert store.claim("w", 1e9, 60.0) is None
    assert store.get("one").lease is None


@pytest.mark.long
def test_tasks_are_found_by_status_and_type(open_one: Opener) -> None:
    store = open_one()
    store.add((order("a", type="x"), order("b", type="y"), order("c", type="y")), 0.0)
    store.escalate("b", "odd", "Ada", 1.0)
    assert [record.id for record in store.find("pending", "y", 9)] == ["c"]
    assert [record.id for record in store.find(None, None, 2)] == ["a", "b"]


# The work


Writes = Callable[[SqlStore, Held], object]
WRITES: dict[str, Writes] = {
    "keep_turn": lambda s, h: s.keep_turn(h.lease, Exchange(1, Request(), TURN), None, "in_progress"),
    "reserve": lambda s, h: s.reserve(h.lease, EFFECT),
    "confirm": lambda s, h: s.confirm(h.lease, EFFECT, Result("c", "ok"), 1.0),
    "doubt": lambda s, h: s.doubt(h.lease, EFFECT),
    "keep_progress": lambda s, h: s.keep_progress(h.lease, Progress(), (), (), False, 1.0),
    "close": closed,
    "give_back": lambda s, h: s.give_back(h.lease, 1.0, 0.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_under_a_lost_lease(open_one: Opener, write: str) -> None:
    store = open_one()
    held = leased(store)
    store.claim("other", 1000.0, 60.0)
    before = store.row("one")
    with pytest.raises(LeaseLost, match="lease 1 of w is lost"):
        WRITES[write](store, held)
    assert store.row("one") == before
    assert store.transcript(held.record.seq) == []
    assert store.effects(held.record.seq) == []


@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_written_for_a_task_that_a_person_closed(open_one: Opener, write: str) -> None:
    store = open_one()
    held = leased(store)
    store.complete("one", "k", "Ada", "seen", 1.0)
    with pytest.raises(LeaseLost):
        WRITES[write](store, held)
    assert store.get("one").status == "done"


def test_turns_come_back_with_their_requests(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    first = Exchange(1, Request(text="go"), TURN, 10, 5, 2.0)
    second = Exchange(2, Request(TURN, (Result("c", "r"),), None, 8192), TURN, 20, 6, 3.0)
    store.keep_turn(held.lease, first, None, "in_progress")
    store.keep_turn(held.lease, second, 1, "awaiting_verification")
    assert store.transcript(held.record.seq) == [first, second]
    record = store.get("one")
    assert (record.turns, record.input_tokens, record.output_tokens) == (2, 30, 11)
    assert (record.last_stop, record.status) == ("end_turn", "awaiting_verification")


def test_a_turn_is_kept_once(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    exchange = Exchange(1, Request(), TURN, 10, 5, 2.0)
    store.keep_turn(held.lease, exchange, None, "in_progress")
    with pytest.raises((StoreError, sqlite3.IntegrityError)):
        store.keep_turn(held.lease, exchange, None, "in_progress")
    assert store.get("one").input_tokens == 10


def test_an_effect_is_reserved_then_confirmed(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    store.reserve(held.lease, EFFECT)
    store.reserve(held.lease, EFFECT)
    assert store.effects(held.record.seq) == [EFFECT]
    store.confirm(held.lease, EFFECT, Result("c", "ok \ud800"), 3.0)
    (effect,) = store.effects(held.record.seq)
    assert (effect.status, effect.result, effect.confirmed) == ("confirmed", Result("c", "ok \ud800"), 3.0)


def test_progress_comes_back(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    store.keep_turn(held.lease, Exchange(1, Request(), TURN), None, "in_progress")
    progress = Progress(State(turns=3, folds=(1 << 80,)), Request(TURN, (), "go on", 8192), 1)
    checklist = (Item("a", True), Item("b", False, True))
    event = Event("stop", "end_turn", "stop", True, False, 2, at=4.0)
    store.keep_progress(held.lease, progress, checklist, (event,), True, 4.0)
    assert store.progress("one") == progress
    again = store.claim("other", 1e6, 60.0)
    assert again is not None
    assert again.progress == progress
    assert again.record.checklist == checklist
    assert again.record.continuations == 1
    assert list(store.events()) == [("task", "one", event)]
    assert list(store.events("other")) == []


def test_an_ending_ends_the_lease(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    completion = Completion("one:final", "w", {"checks": 1}, 5.0)
    evidence = Evidence("check full", "w", {"passed": True}, 5.0)
    event = Event("end", "end_turn", "done_when", met=True, open=0, ending="done", at=5.0)
    store.close(
        held.lease,
        Ending("done", "done_when"),
        "done",
        Progress(),
        (),
        (evidence,),
        (event,),
        completion,
        5.0,
    )
    record = store.get("one")
    assert (record.status, record.completion, record.closed) == ("done", completion, 5.0)
    assert record.lease is None
    assert store.evidence(record.seq) == [evidence]
    assert store.claim("w", 1e9, 60.0) is None


# People


def test_completing_needs_evidence_and_is_a_no_op_the_second_time(open_one: Opener) -> None:
    store = open_one()
    store.add((order(),), 0.0)
    for nothing in ("", {}, [], None):
        with pytest.raises(TaskError, match="needs evidence"):
            store.complete("one", "k", "Ada", nothing, 1.0)
    with pytest.raises(TaskError, match="needs an idempotency key"):
        store.complete("one", " ", "Ada", "seen", 1.0)
    assert store.complete("one", "k", "Ada", {"seen": True}, 2.0)
    before = store.row("one")
    assert not store.complete("one", "k", "Ada", {"other": True}, 3.0)
    assert store.row("one") == before
    with pytest.raises(TaskError, match="completed under the key 'k'; got 'l'"):
        store.complete("one", "l", "Ada", "seen", 3.0)
    assert [event.ending for _, _, event in store.events()] == ["done"]


def test_escalating_takes_a_task_from_its_worker(open_one: Opener) -> None:
    store = open_one()
    held = leased(store)
    store.escalate("one", "looks odd", "Ada", 3.0)
    record = store.get("one")
    assert record.status == "escalated"
    assert record.ending is not None
    assert record.ending.report.reason == "looks odd"
    assert store.unreported() == ["one"]
    store.handed_over("one", "place")
    assert store.unreported() == []
    with pytest.raises(LeaseLost):
        WRITES["keep_turn"](store, held)
    with pytest.raises(TaskError, match="is escalated already"):
        store.escalate("one", "again", "Ada", 3.0)


def test_reopening_loses_to_whoever_was_first(open_one: Opener) -> None:
    store = open_one()
    closed(store, leased(store))
    number = store.get("one").lease_number
    store.reopen("one", Progress(), "word", number, 6.0)
    assert (store.get("one").status, store.get("one").word) == ("pending", "word")
    with pytest.raises(TaskError, match="waits for no person"):
        store.reopen("one", Progress(), "word", number, 6.0)


# Versions


def test_two_processes_may_open_a_new_store_at_once(open_one: Opener) -> None:
    for store in (open_one(), open_one()):
        assert store.count() == {}


@pytest.mark.long
def test_many_processes_may_make_a_new_file_at_once(home: Path) -> None:
    """To switch a new file to a write-ahead log SQLite does not wait, though it waits for all else."""

    for number in range(25):
        url = str(home / f"{number}.sqlite")
        crew = [start(lambda: open_store(url, durability="normal").shut()) for _ in range(4)]  # noqa: B023
        assert [wait(process) for process in crew] == [0, 0, 0, 0]


def test_an_older_store_is_brought_up_to_date(tmp_path: Path) -> None:
    file = str(tmp_path / "tasks.sqlite")
    store = open_store(file)
    store.add((order(),), 0.0)
    store.shut()
    database = SqliteDatabase(file)
    migrate(database, (*MIGRATIONS, ("alter table task add column later text default 'x'",)))
    assert database.execute("select number from version") == [(len(MIGRATIONS) + 1,)]
    assert database.execute("select id, later from task") == [("one", "x")]
    database.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    file = str(tmp_path / "tasks.sqlite")
    open_store(file).shut()
    database = SqliteDatabase(file)
    with pytest.raises(StoreError):
        migrate(database, (*MIGRATIONS, ("alter table task add column later text", "nonsense")))
    assert database.execute("select number from version") == [(len(MIGRATIONS),)]
    assert "later" not in str(database.execute("select sql from sqlite_master where name = 'task'"))
    database.close()


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    file = str(tmp_path / "tasks.sqlite")
    open_store(file).shut()
    base = sqlite3.connect(file)
    with base:
        base.execute("update version set number = 99")
    base.close()
    with pytest.raises(StoreError, match=f"has version 99, this evalkit reads up to {len(MIGRATIONS)}"):
        open_store(file)


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tasks.sqlite"
    file.write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(str(file))
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(str(tmp_path))


@pytest.mark.postgres
def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        open_store("postgresql://ada:secret@127.0.0.1:9/none?connect_timeout=1")
    assert "secret" not in str(caught.value)


def test_what_a_worker_kept_is_on_the_disk(tmp_path: Path) -> None:
    """A confirmed effect must survive a power cut, or it would be made twice."""
    base = SqliteDatabase(str(tmp_path / "tasks.sqlite"))
    assert base.execute("pragma synchronous") == [(2,)]
    base.close()
