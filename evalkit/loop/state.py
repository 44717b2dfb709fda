"""What the loop remembers between turns, and what it works with: a strategy bound to a task.

The state is one immutable, hashable value: no messages, reasons, call ids or order of calls in it.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeAlias

import msgspec

from evalkit.core.channels import protocol_state, speaks
from evalkit.core.decisions import Action, Verdict
from evalkit.core.keys import takes_key
from evalkit.core.tasks import Limits, Task
from evalkit.core.turns import Turn
from evalkit.strategies import conditions as c
from evalkit.strategies.folds import counts_looks, reads_turns
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import Instruments, View

replace = msgspec.structs.replace
#: How often each tool that takes work back succeeded on which items.
Undone: TypeAlias = tuple[tuple[str, int, int], ...]
Step: TypeAlias = "tuple[State, Action, Verdict | None]"

#: The events that the reference loop has a notion of. A crash needs a memory outside of the process.
SUPPORTED_EVENTS = frozenset(("user", "compact", "approve"))
#: Counters stop here where a strategy has no cap to compare them with.
SATURATED = 1_000_000


class State(msgspec.Struct, frozen=True, gc=False):
    """All that the loop remembers between turns."""

    #: Model turns, where a limit counts them or a seed decides by them.
    turns: int = 0
    #: Nudges since the last new effect or message of the user.
    nudges: int = 0
    #: Nudges in all.
    nudges_total: int = 0
    #: Paused turns sent back, in a row.
    resends: int = 0
    #: Answers to cut-off turns, in a row.
    cut_offs: int = 0
    #: Refusals asked again, in a row.
    refusals: int = 0
    #: Failed answers asked again, in a row.
    faults: int = 0
    #: Whether the calls of the current turn were run.
    ran: bool = False
    #: The logical actions that succeeded and are not about one item.
    succeeded_actions: frozenset[str] = frozenset()
    #: What the loop guard blocked for last.
    guard: tuple[int, str] | None = None
    #: Whether a finish made a report.
    finish_seen: bool = False
    #: The ids that the last finish skipped.
    skips: tuple[str, ...] = ()
    #: Whether that finish gave a reason.
    skip_reason_given: bool = False
    #: The strategy's memory.
    folds: tuple[Hashable, ...] = ()
    #: The user is gone: the next end of turn is the last.
    user_gone: bool = False
    #: The items on which each tool of :attr:`Loop.acting` succeeded; empty where none has.
    succeeded_items: tuple[int, ...] = ()
    # Kept states are read by place, so what is new comes last.
    #: Full windows in a row.
    overflows: int = 0
    #: Tool calls that were run, where a limit counts them.
    calls: int = 0
    #: Tokens and dollars spent when the user last wrote, where a limit counts them.
    spent: tuple[int, float] = (0, 0.0)
    #: How often each (tool, item) succeeded that takes work back, where the loop sets keys.
    undone: Undone = ()


def start(strategy: Strategy, task: Task) -> State:
    """The state before the first turn."""
    return State(folds=tuple(fold.start(task) for fold in strategy.folds))


def binding_limits(strategy: Strategy, limits: Limits) -> Limits:
    """The limits that bind: the smaller of the strategy's own and the scenario's."""
    return _binding_limits(strategy.max_turns, strategy.max_tokens, strategy.max_usd, limits)


@lru_cache(maxsize=256)
def _binding_limits(turns: int | None, tokens: int | None, usd: float | None, limits: Limits) -> Limits:
    def smaller(own: float | None, given: float | None) -> float | None:
        return min(own, given) if own is not None and given is not None else own if given is None else given

    fewer, less = smaller(turns, limits.turns), smaller(tokens, limits.tokens)
    return Limits(
        turns=None if fewer is None else int(fewer),
        tokens=None if less is None else int(less),
        usd=smaller(usd, limits.usd),
        calls=limits.calls,
        per=limits.per,
    )


class Loop:
    """A strategy bound to a task: what ``on_turn`` and ``on_results`` need, worked out once.

    ``counts_turns`` is False where no turn limit binds; the turn count is then no part of the state.
    ``costs``: a limit of tokens or money binds.
    """

    __slots__ = (
        "acting",
        "asks_each_turn",
        "claimable",
        "costs",
        "counts_turns",
        "folds",
        "keyed",
        "limits",
        "look_folds",
        "names",
        "offered",
        "policies",
        "reads_words",
        "strategy",
        "task",
        "turn_folds",
        "validates",
        "wants_reset",
    )

    def __init__(self, strategy: Strategy, task: Task) -> None:
        self.strategy = strategy
        self.offered = task.offered | strategy.offers
        self.task = task if task.offered == self.offered else replace(task, offered=self.offered)
        self.limits = _binding_limits(strategy.max_turns, strategy.max_tokens, strategy.max_usd, task.limits)
        self.folds = strategy.folds
        #: The folds whose memory can change with a turn alone, each with its place in ``State.folds``.
        self.turn_folds = tuple([pair for pair in enumerate(self.folds) if reads_turns(pair[1])])
        self.look_folds = any(map(counts_looks, self.folds))
        self.names = tuple([fold.name for fold in self.folds])
        #: Whether a reader of words is among the conditions, so that a skip told in words is known.
        self.reads_words = "skipped" in self.names
        #: Whether a finish is held against the known items wherever one is taken.
        self.validates = self.offered.finish and _validates(strategy.done_when)
        self.counts_turns = self.limits.turns is not None or strategy.random
        self.costs = self.limits.tokens is not None or self.limits.usd is not None
        self.wants_reset = strategy.nudges is not None or strategy.loop_guard
        self.asks_each_turn = strategy.check == "each_tool_turn"
        #: Whether a turn with calls can claim to be the last.
        self.claimable = self.offered.beside_calls
        #: The tools that are not read-only, each with its place in ``State.succeeded_items``.
        self.acting = acting_tools(task)
        #: Whether calls go out under keys of the loop's own.
        self.keyed = strategy.repeats == "own_key" and any(map(takes_key, task.tools.values()))
        #: The protocol states at which a policy comes before the content is looked at.
        self.policies = _policies_in_force(
            strategy.pause, strategy.cut_off, strategy.overflow, strategy.refusal, strategy.unknown
        )


_last_bound: Loop | None = None


def bind(strategy: Strategy, task: Task) -> Loop:
    """A strategy bound to a task. Episodes of the same come in a row, so the last is kept."""
    global _last_bound
    last = _last_bound
    if last is None or last.strategy is not strategy or last.task is not task:
        last = _last_bound = Loop(strategy, task)
    return last


@lru_cache(maxsize=256)
def _policies_in_force(*chosen: str) -> frozenset[str]:
    states = ("pause", "cut_off", "overflow", "refusal", "unknown")
    return frozenset(name for name, choice in zip(states, chosen, strict=True) if choice != "as_content")


def _validates(condition: c.Condition) -> bool:
    found = [part for part in c.parts_of(condition) if isinstance(part, c.finish)]
    return bool(found) and all(part.validate for part in found)


def acting_tools(task: Task) -> dict[str, int]:
    """The tools whose success can be a new effect, each with its place in :attr:`State.succeeded_items`."""
    names = [name for name, tool in task.tools.items() if not tool.read_only]
    return {name: place for place, name in enumerate(names)}


def view_of(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> View:
    memory = dict(zip(loop.names, state.folds, strict=True))
    is_content = speaks(turn) or protocol_state(turn) not in loop.policies
    return View(loop.task, turn, memory, instruments, state.turns, is_content)


def memory_after_compaction(loop: Loop, state: State) -> tuple[Hashable, ...]:
    """The strategy's memory when the conversation was compacted."""
    forget = [getattr(fold, "after_compaction", None) for fold in loop.folds]
    return tuple(
        memory if forgets is None else forgets(memory, loop.task)
        for forgets, memory in zip(forget, state.folds, strict=True)
    )
