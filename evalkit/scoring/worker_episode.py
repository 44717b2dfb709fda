"""An episode of the durable worker: what evalkit measures of it, crashes included."""

from __future__ import annotations

from collections.abc import Callable

from evalkit.core.decisions import Ending
from evalkit.core.events import Crashed
from evalkit.loop.state import SUPPORTED_EVENTS, binding_limits
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, score
from evalkit.stage.stage import NeverEnds, Stage
from evalkit.strategies.strategy import Strategy
from evalkit.worker.attempt import Attempt
from evalkit.worker.scripted_workplace import StageWorkplace, order_of
from evalkit.worker.store import SqliteDatabase, SqlStore, Store
from evalkit.worker.task_records import Order

#: Events of the scenario language that the worker has a notion of.
EVENTS = SUPPORTED_EVENTS | {"crash"}
#: Seconds of a lease; an attempt that crashed leaves it to run out.
_LEASE = 60.0


def run_worker_episode(
    arena: Arena,
    strategy: Strategy,
    seed: int,
    open: Callable[[], Store] = lambda: SqlStore(SqliteDatabase(":memory:", durability="normal")),
    watch: Callable[[Stage], Stage] = lambda stage: stage,
    on_crash: Callable[[], None] = lambda: None,
) -> Episode:
    """Run the worker on a scenario and score it like any harness.

    Model and world are outside of the worker. A ``crash`` ends its attempt where it stands; another worker
    goes on from the store, which ``open`` makes, with nothing else left of the first. ``watch`` may put an
    observed stage in the place of its own, and is told of each crash by ``on_crash``.
    """
    stage = watch(arena.stage(seed, cap=arena.cap(seed)))
    stage.crashes = True
    stage.limits = binding_limits(strategy, stage.task.limits)
    store = open()
    order = _order(arena, seed)
    store.add((order,), 0.0)
    workplace = StageWorkplace(stage)
    now = 0.0

    def clock() -> float:
        return now

    note = ""
    while True:
        try:
            held = store.claim("worker", now, _LEASE)
            if held is not None:
                Attempt(held, strategy, workplace, store, clock).work()
        except Crashed:
            on_crash()
            now += 2 * _LEASE
            continue
        except NeverEnds:
            ending = Ending("never", "evalkit's cap")
        else:
            record = store.get(order.id)
            assert record.ending is not None, "the only task is not to be had"
            ending = record.ending
            reason = ending.report.reason
            note = reason if ending.kind == "error" and reason.startswith(f"{ending.native}:") else ""
        break
    store.shut()
    return score(arena, stage, ending, seed, note)


def _order(arena: Arena, seed: int) -> Order:
    return order_of(arena.scenario, "episode", seed=seed)
