"""What people and dispatchers do with a task: close it on evidence, take it over, answer it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evalkit.core.decisions import Ending, Report
from evalkit.core.requests import Result
from evalkit.worker.encoding import dump, load
from evalkit.worker.store.base import SqlBase
from evalkit.worker.store.database import Database
from evalkit.worker.store.journal import insert_events, insert_evidence, progress_values
from evalkit.worker.task_records import Completion, Event, Evidence, Progress, TaskError

#: Where a task waits for a person.
WAITING = ("awaiting_verification", "escalated")


class Desk(SqlBase):
    """The part of the store that people use."""

    def complete(self, id: str, key: str, by: str, evidence: Any, now: float) -> bool:
        if not evidence:
            raise TaskError(f"task {id!r}: completing needs evidence; it is empty")
        if not key.strip():
            raise TaskError(f"task {id!r}: completing needs an idempotency key; it is empty")
        text = dump(Completion(key, by, evidence, now))

        def work(database: Database) -> bool:
            rows = database.execute("select seq, completion from task where id = ?", (id,))
            if not rows:
                raise TaskError(f"no task {id!r}")
            seq, before = rows[0]
            if before is not None:
                kept = load(before, Completion)
                if kept.key == key:
                    return False
                raise TaskError(f"task {id!r} was completed under the key {kept.key!r}; got {key!r}")
            ending = Ending("done", f"completed by {by}")
            # Completing is the last word: whoever holds a lease loses it.
            database.execute(
                "update task set status = 'done', completion = ?, ending = ?, worker = null, until = null,"
                " lease = lease + 1, updated = ?, closed = ? where seq = ?",
                (text, dump(ending), now, now, seq),
            )
            insert_evidence(database, seq, Evidence("completion", by, evidence, now))
            insert_events(
                database, seq, (Event("end", native=ending.native, met=True, ending="done", at=now),)
            )
            return True

        return self.write(work)

    def escalate(self, id: str, reason: str, by: str, now: float) -> None:
        def work(database: Database) -> None:
            rows = database.execute("select seq, status, resume from task where id = ?", (id,))
            if not rows:
                raise TaskError(f"no task {id!r}")
            seq, status, _ = rows[0]
            if status in ("done", "escalated"):
                raise TaskError(f"task {id!r} is {status} already")
            ending = Ending("escalated", f"escalated by {by}", Report(reason=reason))
            database.execute(
                "update task set status = 'escalated', ending = ?, artifact = null, worker = null,"
                " until = null, lease = lease + 1, updated = ?, closed = ? where seq = ?",
                (dump(ending), now, now, seq),
            )
            insert_events(database, seq, (Event("end", native=ending.native, ending="escalated", at=now),))

        self.write(work)

    def reopen(self, id: str, progress: Progress, word: str | None, number: int, now: float) -> None:
        changes = {
            **progress_values(progress),
            "word": None if word is None else json.dumps(word),
            "updated": now,
        }
        names = ", ".join(f"{name} = ?" for name in changes)

        def work(database: Database) -> None:
            rows = database.execute(
                f"update task set {names}, status = 'pending', ending = null, artifact = null, closed = null,"
                " idle = 0, not_before = 0, lease = lease + 1, input_before = input_tokens,"
                " output_before = output_tokens where id = ? and lease = ? and worker is null"
                f" and status in {WAITING} returning seq",
                (*changes.values(), id, number),
            )
            if not rows:
                raise TaskError(f"task {id!r} waits for no person")
            insert_events(database, rows[0][0], (Event("answer", native=word or "", at=now),))

        self.write(work)

    def settle(self, id: str, step: str, result: Result | None, now: float) -> None:
        turn, _, place = step.partition("/")
        if not (turn.isdigit() and place.isdigit()):
            raise TaskError(f"{step!r} is no step; a step is TURN/PLACE, such as 3/0")
        task = self.row(id)[0]
        where = "where task = ? and turn = ? and place = ? and status in ('reserved', 'uncertain')"
        step_of = (task, int(turn), int(place))

        def work(database: Database) -> None:
            if result is None:
                rows = database.execute(f"delete from effect {where} returning task", step_of)
            else:
                confirmed = "update effect set status = 'confirmed', result = ?, confirmed = ?"
                rows = database.execute(f"{confirmed} {where} returning task", (dump(result), now, *step_of))
            if not rows:
                raise TaskError(f"task {id!r}: step {step} is not in doubt")

        self.write(work)

    def add_evidence(self, id: str, evidence: Evidence) -> None:
        task = self.row(id)[0]
        self.write(lambda database: insert_evidence(database, task, evidence))

    def evidence(self, task: int) -> list[Evidence]:
        rows = self.read(
            "select name, by_whom, content, at from evidence where task = ? order by seq", (task,)
        )
        return [Evidence(name, by, json.loads(content), at) for name, by, content, at in rows]

    def handed_over(self, id: str, artifact: str) -> None:
        self.write(
            lambda database: database.execute("update task set artifact = ? where id = ?", (artifact, id))
        )

    def unreported(self) -> list[str]:
        rows = self.read("select id from task where status = 'escalated' and artifact is null order by seq")
        return [id for (id,) in rows]

    def progress(self, id: str) -> Progress:
        return self.progress_of(self.row(id))

    def events(self, type: str | None = None) -> Iterable[tuple[str, str, Event]]:
        where, values = ("where event.type = ?", (type,)) if type is not None else ("", ())
        rows = self.read(
            "select event.type, task.id, kind, stop, native, text_only, met, open, event.ending, at"
            f" from event join task on task.seq = event.task {where} order by event.seq",
            values,
        )
        for kind_of_task, id, kind, stop, native, text_only, met, open_items, ending, at in rows:
            event = Event(kind, stop, json.loads(native), bool(text_only), bool(met), open_items, ending, at)
            yield kind_of_task, id, event
