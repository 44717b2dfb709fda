"""What an exploration keeps of the loop's state, and when two states differ by the items' names alone."""

from __future__ import annotations

import msgspec

from evalkit.core.tasks import Task
from evalkit.loop.state import State, acting_tools
from evalkit.strategies import conditions as c
from evalkit.strategies import folds as f
from evalkit.strategies.condition import All, Any_, Condition, Not, parts_of
from evalkit.strategies.folds import Fold
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import evidence_over_time, verifier

#: Fields of the loop's state that a sweep may leave out. Folds and the loop guard are always kept.
COUNTERS = frozenset(
    {"turns", "nudges", "nudges_total", "resends", "cut_offs", "overflows", "refusals", "faults"}
)
REPORTED = frozenset({"finish_seen", "skips", "skip_reason_given"})
ACTED = frozenset({"succeeded_actions", "succeeded_items"})

_CONDITIONS: tuple[type[Condition], ...] = (
    c.silence,
    c.acceptance,
    c.checklist,
    c.finish,
    c.keyword,
    c.typed_output,
    verifier,
    c.artifact,
    c.certificate,
)
_COMPOSED: tuple[type[Condition], ...] = (All, Any_, Not, ChecksFirst, evidence_over_time)
#: What ships treats all items alike.
_SHIPPED = (Condition.__module__, c.__name__, verifier.__module__, f.__name__, ChecksFirst.__module__)


def is_shipped(part: Condition | Fold) -> bool:
    """Whether a condition or fold is one of those that ship, and no plain function."""
    return type(part).__module__ in _SHIPPED and type(part) is not c.when


def _parts(strategy: Strategy) -> list[Condition]:
    """All conditions that a strategy asks, with what they are made of."""
    return [part for condition in strategy.conditions for part in parts_of(condition)]


def all_shipped(strategy: Strategy) -> bool:
    """Whether a strategy is made of shipped conditions and folds alone."""
    return all(map(is_shipped, _parts(strategy))) and all(is_shipped(fold) for fold in strategy.folds)


def is_finite(strategy: Strategy) -> bool:
    """Whether all that a strategy remembers and reads can only take finitely many values."""
    folds = all(getattr(fold, "holds", "open") != "open" for fold in strategy.folds)
    return folds and all(condition.finite for condition in strategy.conditions)


def is_symmetric(strategy: Strategy) -> bool:
    """Whether a strategy surely treats all items alike: it is made of shipped conditions alone.

    A loop guard over a negated condition compares a reason, in which ids may stand.
    """
    guarded = strategy.loop_guard and any(type(part) is Not for part in _parts(strategy))
    return not guarded and all_shipped(strategy)


def reads_artifact(strategy: Strategy) -> bool:
    """Whether a condition may ask whether the work left anything behind."""
    known = (*_CONDITIONS, *_COMPOSED)
    return any(type(part) is c.artifact or type(part) not in known for part in _parts(strategy))


def reads_turn(condition: Condition) -> bool:
    """Whether a condition may look at the turn itself, and not only at folds and instruments."""
    blind = (c.acceptance, c.checklist, c.artifact, c.certificate, *_COMPOSED)
    return any(
        type(part) not in blind and not (type(part) is c.verifier and part.sees == "evidence")
        for part in parts_of(condition)
    )


_replace = msgspec.structs.replace


class LoopStates:
    """The loop's states that an exploration has met, each with a number; what is not kept is left out."""

    def __init__(self, strategy: Strategy, task: Task, keep: frozenset[str]) -> None:
        self._task = task
        self._bits = tuple(task.vocabulary.values())
        self._names = {name: place for place, name in enumerate(task.vocabulary)}
        self._items = [
            place for place, fold in enumerate(strategy.folds) if getattr(fold, "holds", "open") == "items"
        ]
        fields = zip(State.__struct_fields__, State.__struct_defaults__, strict=True)
        left_out = (COUNTERS | REPORTED | ACTED) - keep
        self._left_out = {name: first for name, first in fields if name in left_out}
        self._untouched = (0,) * len(acting_tools(task))
        self._ids: dict[State, int] = {}
        self._ended: dict[State, int] = {}
        self.states: list[State] = []
        #: The numbers of states in which the run has ended and may still go on.
        self.over: set[int] = set()
        self._profiles: dict[int, tuple[int, ...]] = {}
        self._permuted: dict[tuple[int, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self.states)

    def number(self, state: State, *, over: bool = False) -> int:
        """The number of a state, once what is not kept is left out of it; ``over``: the run has ended."""
        kept = _replace(state, **self._left_out)
        ids = self._ended if over else self._ids
        number = ids.get(kept)
        if number is None:
            number = ids[kept] = len(self.states)
            self.states.append(kept)
            if over:
                self.over.add(number)
        return number

    # Items

    def profile(self, number: int) -> tuple[int, ...]:
        """For each item all that a state says of it, as one int."""
        known = self._profiles.get(number)
        if known is None:
            known = self._profiles[number] = self._profile(self.states[number])
        return known

    def _profile(self, state: State) -> tuple[int, ...]:
        planes: list[int] = [state.folds[place] for place in self._items]  # type: ignore[misc]
        planes.extend(state.succeeded_items or self._untouched)
        planes.append(state.guard[0] if state.guard is not None else 0)
        planes.append(self._task.items_of(state.skips))
        return tuple(
            sum(bool(plane & bit) << place for place, plane in enumerate(planes)) for bit in self._bits
        )

    def permuted(self, number: int, order: tuple[int, ...]) -> int:
        """The state in which the item at each place is the one that was at ``order[place]``."""
        key = (number, order)
        known = self._permuted.get(key)
        if known is None:
            renamed = self._rename(self.states[number], order)
            known = self._permuted[key] = self.number(renamed, over=number in self.over)
        return known

    def _rename(self, state: State, order: tuple[int, ...]) -> State:
        folds = list(state.folds)
        for place in self._items:
            folds[place] = permute(folds[place], order)  # type: ignore[arg-type]
        new = {old: place for place, old in enumerate(order)}
        acted = set()
        for action in state.succeeded_actions:
            tool, _, items = action.rpartition(" ")
            acted.add(f"{tool} {permute(int(items), order)}" if items.isdigit() else action)
        names = tuple(self._names)
        skips = sorted(new[self._names[name]] for name in state.skips if name in self._names)
        guard = state.guard
        return _replace(
            state,
            folds=tuple(folds),
            succeeded_actions=frozenset(acted),
            succeeded_items=tuple(permute(items, order) for items in state.succeeded_items),
            guard=None if guard is None else (permute(guard[0], order), guard[1]),
            skips=tuple(names[place] for place in skips),
        )


def permute(items: int, order: tuple[int, ...]) -> int:
    """The item set in which the bit at each place is the one that was at ``order[place]``."""
    return sum((items >> old & 1) << place for place, old in enumerate(order))
