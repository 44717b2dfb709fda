"""What conditions and folds of one's own read, and whether they answer twice the same.

A proof covers what the moves vary. Shipped conditions read only that; one's own are watched while they are
explored: each thing of a turn, a result or the run that they look at is noted, and so is everything that
shows that an answer hangs on more than what was given: another verdict for a state that is met again, a
memory of its own that a call changes, a clock, chance.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Task
from evalkit.core.turns import Turn
from evalkit.search.memory import all_shipped, is_shipped
from evalkit.strategies.conditions import All, Any_, Condition, Not
from evalkit.strategies.folds import BaseFold, Fold, Ran
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import View

#: So many moments are kept to be asked about again.
KEPT = 20_000
#: Modules whose answers differ from call to call.
_FICKLE = frozenset(("random", "secrets", "time", "datetime", "uuid", "_random", "numpy.random"))
_PLAIN = (bool, int, float, str, bytes, bytearray, list, dict, set, frozenset, tuple, type(None))
#: Attributes of a turn that the moves give in every way in which they matter.
_COVERED_OF_TURN = frozenset(("claim", "kind"))


class Noticed:
    """What was noticed of a strategy's own conditions and folds."""

    def __init__(self) -> None:
        #: What they read and the moves do not cover, in words.
        self.reads: dict[str, None] = {}
        #: Why they are no function of what they are given; empty where nothing says so.
        self.unsteady = ""
        self._moments: list[tuple[_Watched, _SeenView, int, Verdict]] = []

    def read(self, what: str) -> None:
        """Note something that the moves do not cover."""
        self.reads[what] = None

    def keep(self, watched: _Watched, view: _SeenView, world: int, verdict: Verdict) -> None:
        """Keep a moment, to ask about it again."""
        if len(self._moments) < KEPT:
            self._moments.append((watched, view, world, verdict))

    def ask_again(self) -> None:
        """Ask about all moments that were kept once more, the last one first."""
        moments, self._moments = self._moments, []
        for watched, view, world, verdict in reversed(moments):
            view.reading.world = world
            if self.unsteady:
                return
            again = watched.ask(view)
            if (again.met, again.gaps) != (verdict.met, verdict.gaps):
                self.unsteady = f"{watched.said} gave another verdict for a state that was met again"

    def why_not(self) -> str:
        """Why nothing can be proved; empty where nothing stands against it."""
        if self.unsteady:
            return self.unsteady
        if self.reads:
            return f"a condition or fold reads {', '.join(self.reads)}, which the moves do not cover"
        return ""


def watched(strategy: Strategy, noticed: Noticed) -> Strategy:
    """The strategy with what is not shipped in it watched; the same one where all is shipped."""
    if all_shipped(strategy):
        return strategy
    return strategy.but(done_when=_watched(strategy.done_when, noticed))


def _watched(condition: Condition, noticed: Noticed) -> Condition:
    if type(condition) in (All, Any_):
        parts = cast(All, condition).parts
        return type(cast(All, condition))(tuple(_watched(part, noticed) for part in parts))
    if type(condition) is Not:
        return Not(_watched(condition.part, noticed))
    if type(condition) is ChecksFirst:
        return ChecksFirst(_watched(condition.otherwise, noticed))
    return condition if is_shipped(condition) else _Watched(condition, noticed)


class _Watched(Condition):
    """A condition of one's own, watched."""

    def __init__(self, inner: Condition, noticed: Noticed) -> None:
        self.part = inner
        self.noticed = noticed
        self.said = getattr(inner, "name", "") or type(inner).__name__
        self.offers, self.random, self.finite = inner.offers, inner.random, inner.finite
        self.folds = tuple(
            fold if is_shipped(fold) else cast(Fold, _WatchedFold(fold, noticed)) for fold in inner.folds
        )
        called = getattr(inner, "test", None) or type(inner).__call__
        self._state = tuple(_reachable(called))
        fickle = _fickle(self._state)
        if fickle:
            noticed.unsteady = f"{self.said} asks {fickle}, which answers otherwise each time"

    def __call__(self, view: View) -> Verdict:
        seen = _SeenView(view, self.noticed)
        world = getattr(view.instruments, "world", 0)
        verdict = self.ask(seen)
        self.noticed.keep(self, seen, world, verdict)
        return verdict

    def ask(self, view: _SeenView) -> Verdict:
        """Its verdict on a moment."""
        before = self._memory()
        try:
            verdict = self.part(cast(View, view))
        except Exception:
            # It may be what watches that it cannot stand.
            self.noticed.read("a turn in a way that cannot be followed")
            verdict = self.part(view.real)
        if self._memory() != before:
            self.noticed.unsteady = f"{self.said} changes a memory of its own, so its verdicts hang on it"
        return verdict

    def _memory(self) -> list[str]:
        """What it could remember beside its folds, as text."""
        kept = [*vars(self.part).values(), *vars(type(self.part)).values()]
        found = [_text(value) for value in kept if not isinstance(value, types.FunctionType | type)]
        return found + [_text(value) for function in self._state for value in _values(function)]


class _SeenView:
    """A view that notes what is read of it."""

    def __init__(self, view: View, noticed: Noticed) -> None:
        self.real = view
        self.reading: Any = view.instruments
        self._noticed = noticed
        self.task, self.memory, self.heard = view.task, view.memory, view.heard
        self.claim = view.claim
        self.turn = _SeenTurn(view.turn, noticed)
        self.instruments = _SeenInstruments(view.instruments, noticed)
        self.items, self.named = view.items, view.named

    @property
    def turns(self) -> int:
        self._noticed.read("the number of turns")
        return self.real.turns

    @property
    def text(self) -> str:
        self._noticed.read("a turn's text")
        return self.real.text

    @property
    def finish(self) -> Any:
        self._noticed.read("what a finish names")
        return self.real.finish


class _SeenTurn:
    """A turn that notes what is read of it."""

    def __init__(self, turn: Turn, noticed: Noticed) -> None:
        self._turn = turn
        self._noticed = noticed

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._turn, name)
        if name in ("calls", "runnable"):
            return _SeenCalls(value, self._noticed)
        if name not in _COVERED_OF_TURN:
            self._noticed.read(f"a turn's {name}")
        return value


class _SeenCalls:
    """A turn's calls; that there are some is covered, how many and which is not."""

    def __init__(self, calls: tuple[Any, ...], noticed: Noticed) -> None:
        self._calls = calls
        self._noticed = noticed

    def _read(self) -> tuple[Any, ...]:
        self._noticed.read("which calls a turn has and how many")
        return self._calls

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __len__(self) -> int:
        return len(self._read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read())

    def __getitem__(self, place: Any) -> Any:
        return self._read()[place]

    def __eq__(self, other: object) -> bool:
        return self._calls == other if other == () else self._read() == other

    def __hash__(self) -> int:
        return hash(self._read())


class _SeenInstruments:
    """Instruments that note what is measured with them."""

    def __init__(self, instruments: Any, noticed: Noticed) -> None:
        self._instruments = instruments
        self._noticed = noticed
        self.checks, self.artifact = instruments.checks, instruments.artifact
        self.replays = instruments.replays

    @property
    def tokens(self) -> int:
        self._noticed.read("what the run has cost")
        return self._instruments.tokens  # type: ignore[no-any-return]

    @property
    def usd(self) -> float:
        self._noticed.read("what the run has cost")
        return self._instruments.usd  # type: ignore[no-any-return]

    @property
    def last_turn(self) -> Any:
        last = self._instruments.last_turn
        return None if last is None else _SeenTurn(last, self._noticed)


class _WatchedFold(BaseFold):
    """A fold of one's own, watched."""

    def __init__(self, inner: Any, noticed: Noticed) -> None:
        self._inner = inner
        self._noticed = noticed
        self.name = inner.name
        self.holds = getattr(inner, "holds", "open")

    def start(self, task: Task) -> Hashable:
        return self._inner.start(task)  # type: ignore[no-any-return]

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        return self._twice(self._inner.after_turn, memory, _SeenTurn(turn, self._noticed), turn, task)

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        seen = tuple(_SeenRan(record, self._noticed) for record in ran)
        return self._twice(self._inner.after_results, memory, seen, ran, task)

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        forgets = getattr(self._inner, "after_compaction", None)
        return memory if forgets is None else forgets(memory, task)  # type: ignore[no-any-return]

    def after_asks(self, memory: Any, items: int, task: Task) -> Hashable:
        asked = getattr(self._inner, "after_asks", None)
        return memory if asked is None else asked(memory, items, task)  # type: ignore[no-any-return]

    def _twice(self, ask: Callable[..., Any], memory: Any, seen: Any, real: Any, task: Task) -> Hashable:
        """The new memory; asked twice, a pure fold gives it twice."""
        try:
            new = ask(memory, seen, task)
        except Exception:
            self._noticed.read("a turn or result in a way that cannot be followed")
            new = ask(memory, real, task)
        if ask(memory, real, task) != new:
            self._noticed.unsteady = f"the fold {self.name} gave another memory for the same turn"
        return new  # type: ignore[no-any-return]


class _SeenRan:
    """A call that was run; tool, item and error are covered, its words and the answer's are not."""

    def __init__(self, record: Ran, noticed: Noticed) -> None:
        self.tool, self.item = record.tool, record.item
        self.call = _SeenFields(record.call, ("tool",), "a call's", noticed)
        self.result = _SeenFields(record.result, ("error",), "a result's", noticed)


class _SeenFields:
    """A value of which some fields are covered."""

    def __init__(self, value: Any, covered: tuple[str, ...], whose: str, noticed: Noticed) -> None:
        self._value = value
        self._covered = covered
        self._whose = whose
        self._noticed = noticed

    def __getattr__(self, name: str) -> Any:
        if name not in self._covered:
            self._noticed.read(f"{self._whose} {name}")
        return getattr(self._value, name)


# Memory of functions


def _reachable(called: Any) -> list[types.FunctionType]:
    """A callable's functions: itself and those that it can call by name or holds in its closure."""
    found: list[types.FunctionType] = []
    left = [called]
    while left and len(found) < 50:
        value = left.pop()
        function = getattr(value, "__func__", value)
        if not isinstance(function, types.FunctionType):
            function = getattr(type(value), "__call__", None)  # noqa: B004 - its code is wanted
        if isinstance(function, types.FunctionType) and function not in found:
            found.append(function)
            callables = [*_globals_of(function).values(), *_cells(function)]
            left += [value for value in callables if isinstance(value, types.FunctionType | types.MethodType)]
    return found


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    known = function.__globals__
    return {name: known[name] for name in _names(function.__code__) if name in known}


def _cells(function: types.FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found


def _values(function: types.FunctionType) -> list[Any]:
    """All that a function could keep between calls, functions and modules aside."""
    kept = [*_cells(function), *_globals_of(function).values(), *(function.__defaults__ or ())]
    kept += [*(function.__kwdefaults__ or {}).values(), *vars(function).values()]
    return [value for value in kept if not isinstance(value, types.FunctionType | types.ModuleType | type)]


def _text(value: Any) -> str:
    if isinstance(value, _PLAIN) or type(value).__module__ in ("itertools", "collections"):
        return repr(value)[:10_000]
    inner = getattr(value, "__dict__", None)
    return repr(sorted(inner.items(), key=str))[:10_000] if isinstance(inner, dict) else ""


def _fickle(functions: tuple[types.FunctionType, ...]) -> str:
    """The name of a clock or source of chance that functions can ask; empty where there is none."""
    for function in functions:
        known = _globals_of(function)
        for name in sorted(_names(function.__code__)):
            value = known.get(name)
            where = getattr(value, "__name__" if isinstance(value, types.ModuleType) else "__module__", "")
            if where in _FICKLE or (value is None and name in _FICKLE):
                return name
    return ""
