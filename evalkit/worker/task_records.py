"""What is kept of a task: what it asks for, how far it is, what was done for it, and how it was closed."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.core.decisions import Ending
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Limits
from evalkit.core.turns import Turn
from evalkit.loop.state import State

Status: TypeAlias = Literal["pending", "in_progress", "awaiting_verification", "done", "escalated"]
STATUSES: tuple[str, ...] = ("pending", "in_progress", "awaiting_verification", "done", "escalated")

#: How a repetition of a call is kept from doing harm. ``free``: it does none. ``keyed``: it carries an
#: idempotency key. ``looked_up``: the workplace can say whether it happened. ``uncertain``: none of these.
Care: TypeAlias = Literal["free", "keyed", "looked_up", "uncertain"]

#: Where a task goes on: at a request to send, at a delivered turn to act on, or when a person has answered.
Resume: TypeAlias = Literal["ask", "act", "answer"]

#: Leases in a row without any progress after which a task is escalated.
MAX_IDLE = 10
#: The longest wait before a task is tried again, in seconds.
LONGEST_WAIT = 300.0


class TaskError(ValueError):
    """Something asked of a task that it does not allow; one line."""


class Order(msgspec.Struct, frozen=True):
    """What a task asks for; it never changes.

    ``type`` is what telemetry is broken out by. ``kit`` names what it is worked on with, ``settings`` are the
    kit's own. ``checks`` are the names of acceptance checks; a task without any says so by its emptiness.
    ``closure`` says whether a met condition closes it or a person does. ``items`` are its parts, where they
    are known from the start.
    """

    id: str
    prompt: str
    done_when: str = ""
    type: str = "task"
    kit: str = "scenario"
    strategy: str = "gate"
    checks: tuple[str, ...] = ()
    closure: Literal["worker", "person"] = "worker"
    items: tuple[str, ...] = ()
    limits: Limits = Limits()
    settings: dict[str, Any] = {}


class Item(msgspec.Struct, frozen=True):
    """One line of a task's checklist."""

    item: str
    done: bool
    skipped: bool = False


class Lease(msgspec.Struct, frozen=True):
    """The right to work on a task. ``number`` grows with each lease; a write under an old one is refused."""

    task: int
    number: int
    worker: str
    until: float


class Completion(msgspec.Struct, frozen=True):
    """How a task was closed: by whom, under which idempotency key, on what evidence."""

    key: str
    by: str
    evidence: Any
    at: float


class Progress(msgspec.Struct, frozen=True):
    """Where a task stands: the loop's state before the request, and the request.

    ``echo`` is the number of the turn that the request sends back. ``resume`` says whether the request is to
    be sent, its answer to be acted on, or a person to answer.
    """

    state: State | None = None
    request: Request = Request()
    echo: int | None = None
    resume: Resume = "ask"


class Record(msgspec.Struct, frozen=True):
    """A task as it is kept. Times are seconds since the epoch, ``seq`` is its number in the queue.

    ``continuations`` counts the nudges sent. ``attempts`` are leases in all, ``idle`` those in a row that
    brought no progress. ``lease_number`` grows whenever a lease is given or taken away. ``word`` is a
    person's answer not yet passed on. ``spent_before`` are the input and output tokens spent before a person
    granted a new allowance.
    """

    seq: int
    order: Order
    status: Status
    checklist: tuple[Item, ...] = ()
    continuations: int = 0
    last_stop: str | None = None
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spent_before: tuple[int, int] = (0, 0)
    attempts: int = 0
    idle: int = 0
    lease: Lease | None = None
    lease_number: int = 0
    ending: Ending | None = None
    completion: Completion | None = None
    word: str | None = None
    artifact: str | None = None
    created: float = 0.0
    updated: float = 0.0
    closed: float | None = None

    @property
    def id(self) -> str:
        """The task's name."""
        return self.order.id

    def open_items(self) -> tuple[str, ...]:
        """The checklist's lines that are neither done nor skipped."""
        return tuple(line.item for line in self.checklist if not (line.done or line.skipped))


class Exchange(msgspec.Struct, frozen=True):
    """One delivered turn, numbered from 1, and the request that it answered."""

    number: int
    request: Request
    turn: Turn
    input_tokens: int = 0
    output_tokens: int = 0
    at: float = 0.0


class Effect(msgspec.Struct, frozen=True):
    """A call as the worker recorded it: reserved before the act, confirmed with its result after.

    ``turn`` and ``place`` are its step. ``key`` is the idempotency key that goes out with it.
    """

    turn: int
    place: int
    tool: str
    arguments: str
    care: Care
    key: str = ""
    item: int = 0
    status: Literal["reserved", "confirmed", "uncertain"] = "reserved"
    result: Result | None = None
    reserved: float = 0.0
    confirmed: float | None = None

    @property
    def step(self) -> str:
        """Its name within the task."""
        return f"{self.turn}/{self.place}"


class Evidence(msgspec.Struct, frozen=True):
    """A piece of evidence: a check that the worker ran, or what a person put on record."""

    name: str
    by: str
    content: Any
    at: float


class Event(msgspec.Struct, frozen=True):
    """Something for telemetry. ``stop``: a turn that asked for no tools, or came cut off. ``end``: an ending.

    ``text_only`` turns hold no call. ``open`` counts the items that stood open, None where nobody could tell;
    ``met`` says whether the completion condition held.
    """

    kind: Literal["stop", "end", "answer"]
    stop: str = ""
    native: str = ""
    text_only: bool = False
    met: bool = False
    open: int | None = None
    ending: str = ""
    at: float = 0.0


class Held(msgspec.Struct, frozen=True):
    """A task under a lease, and how far it is."""

    record: Record
    progress: Progress
    lease: Lease
