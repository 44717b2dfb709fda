"""The journal of the work: turns, effects and progress, each kept under the lease of whoever works."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evalkit.core.decisions import Ending
from evalkit.core.requests import Result
from evalkit.core.turns import Turn
from evalkit.worker.encoding import dump, dump_request, dump_state, dump_turn, load, load_request, load_turn
from evalkit.worker.store.base import SqlBase, dump_checklist
from evalkit.worker.store.database import Database
from evalkit.worker.task_records import (
    Completion,
    Effect,
    Event,
    Evidence,
    Exchange,
    Item,
    Lease,
    Progress,
    Status,
)

_EFFECT = "turn, place, tool, arguments, care, key, item, status, result, reserved, confirmed"


class Journal(SqlBase):
    """The part of the store that a worker with a lease writes."""

    def transcript(self, task: int) -> list[Exchange]:
        rows = self.read(
            "select number, request, content, input_tokens, output_tokens, at from turn"
            " where task = ? order by number",
            (task,),
        )
        turns: list[Turn] = []
        exchanges = []
        for number, request, content, input_tokens, output_tokens, at in rows:
            asked, _ = load_request(request, turns)
            turns.append(load_turn(content))
            exchanges.append(Exchange(number, asked, turns[-1], input_tokens, output_tokens, at))
        return exchanges

    def effects(self, task: int) -> list[Effect]:
        rows = self.read(f"select {_EFFECT} from effect where task = ? order by turn, place", (task,))
        return [
            Effect(
                turn,
                place,
                json.loads(tool),
                json.loads(arguments),
                care,
                json.loads(key),
                int(item, 16),
                status,
                None if result is None else load(result, Result),
                reserved,
                confirmed,
            )
            for turn, place, tool, arguments, care, key, item, status, result, reserved, confirmed in rows
        ]

    def keep_turn(self, lease: Lease, exchange: Exchange, echo: int | None, status: Status) -> None:
        row = (
            lease.task,
            exchange.number,
            dump_request(exchange.request, echo),
            dump_turn(exchange.turn),
            exchange.input_tokens,
            exchange.output_tokens,
            exchange.at,
        )
        changes = {
            "status": status,
            "last_stop": exchange.turn.stop,
            "turns": exchange.number,
            "resume": "act",
            "idle": 0,
            "updated": exchange.at,
        }
        spent = (
            f"input_tokens = input_tokens + {exchange.input_tokens:d},"
            f" output_tokens = output_tokens + {exchange.output_tokens:d}"
        )

        def work(database: Database) -> None:
            self.guarded(database, lease, changes, spent)
            database.execute("insert into turn values (?, ?, ?, ?, ?, ?, ?)", row)

        self.write(work)

    def reserve(self, lease: Lease, effect: Effect) -> None:
        def work(database: Database) -> None:
            self.guarded(database, lease, {"idle": 0, "updated": effect.reserved})
            _insert(database, lease, effect)

        self.write(work)

    def confirm(self, lease: Lease, effect: Effect, result: Result, now: float) -> None:
        def work(database: Database) -> None:
            self.guarded(database, lease, {"idle": 0, "updated": now})
            _insert(database, lease, effect)
            database.execute(
                "update effect set status = 'confirmed', result = ?, confirmed = ?"
                " where task = ? and turn = ? and place = ?",
                (dump(result), now, lease.task, effect.turn, effect.place),
            )

        self.write(work)

    def doubt(self, lease: Lease, effect: Effect) -> None:
        def work(database: Database) -> None:
            self.guarded(database, lease, {"idle": 0})
            database.execute(
                "update effect set status = 'uncertain' where task = ? and turn = ? and place = ?",
                (lease.task, effect.turn, effect.place),
            )

        self.write(work)

    def keep_progress(
        self,
        lease: Lease,
        progress: Progress,
        checklist: tuple[Item, ...],
        events: Iterable[Event],
        nudged: bool,
        now: float,
        parked: bool = False,
    ) -> None:
        changes = {
            "status": "awaiting_verification" if parked else "in_progress",
            **({"worker": None, "until": None} if parked else {}),
            **progress_values(progress),
            "checklist": dump_checklist(checklist),
            "word": None,
            "idle": 0,
            "updated": now,
        }
        more = "continuations = continuations + 1" if nudged else ""

        def work(database: Database) -> None:
            self.guarded(database, lease, changes, more)
            insert_events(database, lease.task, events)

        self.write(work)

    def close(
        self,
        lease: Lease,
        ending: Ending,
        status: Status,
        progress: Progress,
        checklist: tuple[Item, ...],
        evidence: Iterable[Evidence],
        events: Iterable[Event],
        completion: Completion | None,
        now: float,
    ) -> None:
        changes = {
            "status": status,
            **progress_values(progress),
            "checklist": dump_checklist(checklist),
            "ending": dump(ending),
            "completion": None if completion is None else dump(completion),
            "artifact": None,
            "worker": None,
            "until": None,
            "idle": 0,
            "updated": now,
            "closed": now,
        }

        def work(database: Database) -> None:
            self.guarded(database, lease, changes)
            for piece in evidence:
                insert_evidence(database, lease.task, piece)
            insert_events(database, lease.task, events)

        self.write(work)


def progress_values(progress: Progress) -> dict[str, Any]:
    """The columns that hold a task's progress."""
    return {
        "state": None if progress.state is None else dump_state(progress.state),
        "request": dump_request(progress.request, progress.echo),
        "echo": progress.echo,
        "resume": progress.resume,
    }


def _insert(database: Database, lease: Lease, effect: Effect) -> None:
    """Add an effect; one that stands there already stays as it is."""
    row = (
        lease.task,
        effect.turn,
        effect.place,
        json.dumps(effect.tool),
        json.dumps(effect.arguments),
        effect.care,
        json.dumps(effect.key),
        f"{effect.item:x}",
        effect.reserved,
    )
    database.execute(
        "insert into effect (task, turn, place, tool, arguments, care, key, item, status, reserved)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, 'reserved', ?) on conflict do nothing",
        row,
    )


def insert_evidence(database: Database, task: int, piece: Evidence) -> None:
    """Put evidence on a task's record."""
    database.execute(
        "insert into evidence (task, name, by_whom, content, at) values (?, ?, ?, ?, ?)",
        (task, piece.name, piece.by, dump(piece.content), piece.at),
    )


def insert_events(database: Database, task: int, events: Iterable[Event]) -> None:
    """Add events, under the task's type."""
    for event in events:
        database.execute(
            "insert into event (task, type, kind, stop, native, text_only, met, open, ending, at)"
            " select ?, type, ?, ?, ?, ?, ?, ?, ?, ? from task where seq = ?",
            (
                task,
                event.kind,
                event.stop,
                json.dumps(event.native),
                int(event.text_only),
                int(event.met),
                event.open,
                event.ending,
                event.at,
                task,
            ),
        )
