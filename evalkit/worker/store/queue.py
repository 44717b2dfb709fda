"""The queue: tasks come in, workers lease them, and give them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalkit.core.requests import Request
from evalkit.worker.encoding import dump, dump_request
from evalkit.worker.store.base import COLUMNS, SqlBase, dump_checklist, record_of
from evalkit.worker.store.database import Database
from evalkit.worker.task_records import LONGEST_WAIT, Held, Item, Lease, Order, Record, Status, TaskError

_INSERT = (
    "insert into task (id, type, orders, status, checklist, continuations, turns, input_tokens,"
    " output_tokens, input_before, output_before, attempts, idle, lease, not_before, request, resume,"
    " created, updated)"
    " values (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, 'ask', ?, ?)"
    " on conflict (id) do nothing returning seq"
)
_LEASED = "worker is not null and status in ('in_progress', 'awaiting_verification')"


class Queue(SqlBase):
    """The part of the store that dispatchers and idle workers see."""

    def add(self, orders: Sequence[Order], now: float, *, parked: bool = False) -> int:
        status: Status = "awaiting_verification" if parked else "pending"

        def work(database: Database) -> int:
            new = 0
            for order in orders:
                text = dump(order)
                checklist = dump_checklist(tuple(Item(item, False) for item in order.items))
                first = dump_request(Request(), None)
                values = (order.id, order.type, text, status, checklist, first, now, now)
                if database.execute(_INSERT, values):
                    new += 1
                    continue
                ((kept,),) = database.execute("select orders from task where id = ?", (order.id,))
                if kept != text:
                    raise TaskError(f"task {order.id!r} is queued already and asks for something else")
            return new

        return self.write(work)

    def claim(
        self,
        worker: str,
        now: float,
        seconds: float,
        stale: frozenset[tuple[int, int]] = frozenset(),
        *,
        run_out: bool = True,
    ) -> Held | None:
        def work(database: Database) -> tuple[Any, ...] | None:
            seq = self._next(database, now, stale, run_out)
            return None if seq is None else _leased(database, seq, worker, now + seconds, now)

        row = self.write(work)
        return None if row is None else self._held(row)

    @staticmethod
    def _next(database: Database, now: float, stale: frozenset[tuple[int, int]], run_out: bool) -> int | None:
        """Whose lease has run out goes first: it has waited longest."""
        taking = database.taking
        rows = []
        if run_out:
            rows = database.execute(
                f"select seq from task where {_LEASED} and until <= ? order by until limit 1{taking}", (now,)
            )
        for task, number in sorted(stale):
            if rows:
                break
            rows = database.execute(
                f"select seq from task where seq = ? and lease = ? and {_LEASED}{taking}", (task, number)
            )
        # Nobody waits longer than that, but for a clock that has gone back since.
        due = "(not_before <= ? or not_before > ?)"
        rows = rows or database.execute(
            f"select seq from task where status = 'pending' and {due} order by seq limit 1{taking}",
            (now, now + LONGEST_WAIT),
        )
        return int(rows[0][0]) if rows else None

    def hold(self, id: str, worker: str, now: float, seconds: float) -> Held:
        def work(database: Database) -> tuple[Any, ...]:
            rows = database.execute("select seq, status from task where id = ?", (id,))
            if not rows:
                raise TaskError(f"no task {id!r}")
            if rows[0][1] == "done":
                raise TaskError(f"task {id!r} is done")
            return _leased(database, rows[0][0], worker, now + seconds, now)

        return self._held(self.write(work))

    def _held(self, row: tuple[Any, ...]) -> Held:
        record = record_of(row)
        assert record.lease is not None
        return Held(record, self.progress_of(row), record.lease)

    def leases(self) -> list[Lease]:
        rows = self.read(f"select seq, lease, worker, until from task where {_LEASED} order by seq")
        return [Lease(*row) for row in rows]

    def renew(self, lease: Lease, until: float) -> bool:
        statement = (
            "update task set until = ? where seq = ? and lease = ? and worker is not null returning seq"
        )
        return bool(self.write(lambda base: base.execute(statement, (until, lease.task, lease.number))))

    def holds(self, lease: Lease) -> bool:
        held = "seq = ? and lease = ? and worker is not null"
        return bool(self.read(f"select seq from task where {held}", (lease.task, lease.number)))

    def give_back(self, lease: Lease, now: float, not_before: float) -> None:
        changes = {
            "status": "pending",
            "worker": None,
            "until": None,
            "not_before": not_before,
            "updated": now,
        }
        self.write(lambda base: self.guarded(base, lease, changes))

    def count(self) -> dict[str, int]:
        return dict(self.read("select status, count(*) from task group by status"))

    def find(self, status: str | None, type: str | None, limit: int) -> list[Record]:
        asked = {"status": status, "type": type}
        chosen = {name: value for name, value in asked.items() if value is not None}
        where = " and ".join(["seq > 0", *(f"{name} = ?" for name in chosen)])
        rows = self.read(
            f"select {COLUMNS} from task where {where} order by seq limit ?", (*chosen.values(), limit)
        )
        return [record_of(row) for row in rows]

    def get(self, id: str) -> Record:
        return record_of(self.row(id))


def _leased(database: Database, seq: int, worker: str, until: float, now: float) -> tuple[Any, ...]:
    rows = database.execute(
        "update task set status = 'in_progress', worker = ?, until = ?, lease = lease + 1, updated = ?,"
        f" attempts = attempts + 1, idle = idle + 1, closed = null where seq = ? returning {COLUMNS}",
        (worker, until, now, seq),
    )
    return rows[0]
