"""What the parts of the SQL store share: transactions, the lease that guards a write, rows as records."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from evalkit.core.decisions import Ending
from evalkit.core.turns import Turn
from evalkit.worker.encoding import dump, load, load_request, load_state, load_turn
from evalkit.worker.store.database import Database
from evalkit.worker.store.protocol import LeaseLost, StoreBusy, StoreError
from evalkit.worker.task_records import Completion, Item, Lease, Order, Progress, Record, TaskError

T = TypeVar("T")

COLUMNS = (
    "seq, orders, status, checklist, continuations, last_stop, turns, input_tokens, output_tokens,"
    " input_before, output_before, attempts, idle, lease, worker, until, word, ending, completion, artifact,"
    " created, updated, closed, state, request, echo, resume"
)
#: How often a transaction that found the store locked is tried again.
BUSY_TRIES = 12

#: Asked when the store was locked for the n-th time in a row: whether to try again.
Busy = Callable[[int], bool]


class SqlBase:
    """A database with the tables of :mod:`evalkit.worker.store.schema`. ``busy`` decides how long to wait."""

    def __init__(self, database: Database, busy: Busy = lambda times: times < BUSY_TRIES) -> None:
        self.database = database
        self.url = database.url
        self._busy = busy

    def write(self, work: Callable[[Database], T]) -> T:
        """Run ``work`` as one transaction, again where the store was locked before anything was changed."""
        times = 0
        while True:
            try:
                return self._transaction(work)
            except StoreBusy:
                times += 1
                if not self._busy(times):
                    raise

    def _transaction(self, work: Callable[[Database], T]) -> T:
        database = self.database
        try:
            database.begin()
            value = work(database)
            database.commit()
        except BaseException:
            # What could not be written cannot be undone either; the database does it when it is opened again.
            with suppress(StoreError):
                database.rollback()
            raise
        return value

    def read(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query, which waits for the store as :meth:`write` does."""
        times = 0
        while True:
            try:
                return self.database.execute(statement, values)
            except StoreBusy:
                times += 1
                if not self._busy(times):
                    raise

    def shut(self) -> None:
        """Close the connection."""
        self.database.close()

    # The task table

    @staticmethod
    def guarded(database: Database, lease: Lease, changes: dict[str, Any], raw: str = "") -> None:
        """Change a task's row under a lease. LeaseLost where the lease is not its latest."""
        names = ", ".join([f"{name} = ?" for name in changes] + ([raw] if raw else []))
        statement = (
            f"update task set {names} where seq = ? and lease = ? and worker is not null returning seq"
        )
        if not database.execute(statement, (*changes.values(), lease.task, lease.number)):
            raise LeaseLost(f"task {lease.task}: lease {lease.number} of {lease.worker} is lost")

    def row(self, id: str) -> tuple[Any, ...]:
        """A task's row. TaskError where there is none."""
        rows = self.read(f"select {COLUMNS} from task where id = ?", (id,))
        if not rows:
            raise TaskError(f"no task {id!r}")
        return rows[0]

    def turns(self, task: int) -> list[Turn]:
        """The delivered turns of a task, in order."""
        rows = self.read("select content from turn where task = ? order by number", (task,))
        return [load_turn(content) for (content,) in rows]

    def progress_of(self, row: tuple[Any, ...]) -> Progress:
        """The progress that a row of ``COLUMNS`` holds."""
        state, request, echo, resume = row[23:27]
        turns = self.turns(row[0]) if echo is not None else []
        return Progress(
            None if state is None else load_state(state),
            *load_request(request, turns),
            resume,
        )


def record_of(row: tuple[Any, ...]) -> Record:
    """A row of ``COLUMNS`` as a record."""
    seq, orders, status, checklist = row[:4]
    number, worker, until, word, ending, completion, artifact = row[13:20]
    return Record(
        seq=seq,
        order=load_order(orders),
        status=status,
        checklist=tuple([Item(*line) for line in json.loads(checklist)]),
        continuations=row[4],
        last_stop=row[5],
        turns=row[6],
        input_tokens=row[7],
        output_tokens=row[8],
        spent_before=(row[9], row[10]),
        attempts=row[11],
        idle=row[12],
        lease=Lease(seq, number, worker, until) if worker is not None else None,
        lease_number=number,
        ending=None if ending is None else load(ending, Ending),
        completion=None if completion is None else load(completion, Completion),
        word=None if word is None else json.loads(word),
        artifact=artifact,
        created=row[20],
        updated=row[21],
        closed=row[22],
    )


def load_order(text: str) -> Order:
    """An order as :func:`~evalkit.worker.encoding.dump` wrote it."""
    return load(text, Order)


def dump_checklist(checklist: tuple[Item, ...]) -> str:
    """A checklist in short."""
    return dump([[line.item, line.done, line.skipped] for line in checklist])
