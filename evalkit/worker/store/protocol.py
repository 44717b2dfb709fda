"""The contract of a store: where tasks are kept, outside of any worker and any model's context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from evalkit.core.decisions import Ending
from evalkit.core.requests import Result
from evalkit.worker.task_records import (
    Completion,
    Effect,
    Event,
    Evidence,
    Exchange,
    Held,
    Item,
    Lease,
    Order,
    Progress,
    Record,
    Status,
)


class StoreError(Exception):
    """The store cannot be used: it is full, unreadable, of another version, gone. One line."""


class StoreBusy(StoreError):
    """Another process holds the store, longer than this one was willing to wait."""


class LeaseLost(Exception):
    """Another worker has the task, or a person closed it; nothing more may be done for it here."""


class Store(Protocol):
    """Tasks, transcripts, effects and events. Each method is one transaction: all of it or nothing.

    Methods that take a lease raise :class:`LeaseLost` where it is no longer the task's latest. All raise
    :class:`StoreBusy` or :class:`StoreError` and then have changed nothing that can be relied on.
    """

    #: How to open it again, for people.
    url: str

    # The queue

    def add(self, orders: Sequence[Order], now: float, *, parked: bool = False) -> int:
        """Queue tasks, all or none; how many were new. TaskError where an id is taken by another order.

        ``parked`` ones are on record, and no worker takes them up.
        """

    def claim(
        self,
        worker: str,
        now: float,
        seconds: float,
        stale: frozenset[tuple[int, int]] = frozenset(),
        *,
        run_out: bool = True,
    ) -> Held | None:
        """Lease the next task: one whose lease has run out or is among ``stale`` (task, number), else the
        first pending one. Without ``run_out`` none is taken for what ``now`` is."""

    def hold(self, id: str, worker: str, now: float, seconds: float) -> Held:
        """Lease one task, whoever holds it. TaskError where it is done."""

    def leases(self) -> list[Lease]:
        """The leases that are held."""

    def renew(self, lease: Lease, until: float) -> bool:
        """Hold a lease until then; False where it is lost."""

    def holds(self, lease: Lease) -> bool:
        """Whether a lease is still the task's latest, whatever the clock says."""

    def give_back(self, lease: Lease, now: float, not_before: float) -> None:
        """Let another worker go on with the task, from ``not_before`` on."""

    def count(self) -> dict[str, int]:
        """Tasks by status."""

    def find(self, status: str | None, type: str | None, limit: int) -> list[Record]:
        """Tasks in the order of the queue."""

    def get(self, id: str) -> Record:
        """A task. TaskError where there is none."""

    # The work

    def transcript(self, task: int) -> list[Exchange]:
        """The delivered turns of a task, in order."""

    def effects(self, task: int) -> list[Effect]:
        """The recorded calls of a task, in order of their steps."""

    def keep_turn(self, lease: Lease, exchange: Exchange, echo: int | None, status: Status) -> None:
        """Keep a delivered turn, before it is acted on. ``echo``: the turn that its request sent back."""

    def reserve(self, lease: Lease, effect: Effect) -> None:
        """Note that a call is about to be made. A step that is reserved already stays as it is."""

    def confirm(self, lease: Lease, effect: Effect, result: Result, now: float) -> None:
        """Note a call's result; a step that was not reserved (it has no effect) is added."""

    def doubt(self, lease: Lease, effect: Effect) -> None:
        """Note that nobody can say whether a reserved call happened."""

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
        """Keep the loop's state and the request that is to be sent next.

        ``nudged``: it is a continuation. ``parked``: the lease ends, and no worker takes the task up.
        """

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
        """Leave a task at an ending: done, awaiting a person's verification, or escalated. The lease ends."""

    # What people and dispatchers do

    def complete(self, id: str, key: str, by: str, evidence: Any, now: float) -> bool:
        """Close a task on evidence; False where it is closed under this key already.

        TaskError without evidence, and where it was closed under another key.
        """

    def escalate(self, id: str, reason: str, by: str, now: float) -> None:
        """Take a task from the queue for a person to look at."""

    def reopen(self, id: str, progress: Progress, word: str | None, number: int, now: float) -> None:
        """Queue a task again that waits for a person. ``number`` is that of its last lease, ``word`` what the
        person said. TaskError where it waits no longer."""

    def settle(self, id: str, step: str, result: Result | None, now: float) -> None:
        """A person says whether an uncertain call happened: its result, or None for "it did not"."""

    def add_evidence(self, id: str, evidence: Evidence) -> None:
        """Put evidence on a task's record."""

    def evidence(self, task: int) -> list[Evidence]:
        """The evidence on a task's record, oldest first."""

    def handed_over(self, id: str, artifact: str) -> None:
        """Note where the escalation artifact is."""

    def unreported(self) -> list[str]:
        """Escalated tasks whose artifact is not written yet."""

    def progress(self, id: str) -> Progress:
        """Where a task stands."""

    def events(self, type: str | None = None) -> Iterable[tuple[str, str, Event]]:
        """Task type, task id and event, oldest first."""

    def shut(self) -> None:
        """Close the connection."""
