"""What conditions and folds of one's own read, and whether they answer twice the same.

A proof covers what the moves vary. Shipped conditions read only that; one's own are watched while they are
explored: each thing of a turn, a result or the run that they look at is noted, and so is everything that
shows that an answer hangs on more than what was given: another verdict for a state that is met again, a
memory of its own that a call changes, a clock, chance.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Task
from evalkit.core.turns import Turn
from evalkit.search.proofs.symmetry import all_shipped, is_shipped
from evalkit.strategies.condition import All, Any_, Condition, Not
from evalkit.strategies.folds import BaseFold, Fold, Ran, looks_at_looks
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import evidence_over_time
from evalkit.strategies.view import View

#: So many moments are kept to be asked about again.
KEPT = 20_000
#: Modules whose answers differ from call to call, or hang on what is outside of the run.
_FICKLE = frozenset(
    (
        *(
            "random",
            "secrets",
            "time",
            "datetime",
            "uuid",
            "_random",
            "numpy.random",
            "os",
            "posix",
            "_io",
            "io",
        ),
        *("pathlib", "subprocess", "_posixsubprocess", "socket", "_socket", "urllib.request", "threading"),
    )
)
#: Built-in functions that do so too, or run what cannot be looked through.
_FICKLE_NAMES = frozenset(("id", "hash", "open", "input", "eval", "exec", "__import__", "globals", "vars"))
#: Instructions that look a name up, not as an attribute.
_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"))
_PLAIN = (bool, int, float, str, bytes, bytearray, type(None))
_LISTED = (list, tuple, set, frozenset)
#: By what a fold's memory changes.
_CHANGES = ("after_turn", "after_results", "after_compaction", "after_asks")
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
    if isinstance(condition, evidence_over_time):
        return replace(condition, of=_watched(condition.of, noticed))
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
        self._own = _Own(inner, (called,), self.said, noticed)

    def __call__(self, view: View) -> Verdict:
        seen = _SeenView(view, self.noticed)
        world = getattr(view.instruments, "world", 0)
        verdict = self.ask(seen)
        self.noticed.keep(self, seen, world, verdict)
        return verdict

    def ask(self, view: _SeenView) -> Verdict:
        """Its verdict on a moment."""
        with self._own.kept():
            try:
                return self.part(cast(View, view))
            except Exception:
                # It may be what watches that it cannot stand.
                self.noticed.read("a turn in a way that cannot be followed")
                return self.part(view.real)


class _Own:
    """What a condition or fold of one's own could remember beside what it is given, and could ask."""

    def __init__(self, inner: Any, called: tuple[Any, ...], said: str, noticed: Noticed) -> None:
        self._inner = inner
        self._said = said
        self._noticed = noticed
        self._functions = tuple(dict.fromkeys(each for one in called for each in _reachable(one)))
        fickle = _fickle(self._functions, vars(inner).values() if hasattr(inner, "__dict__") else ())
        if fickle:
            noticed.unsteady = f"{said} asks {fickle}, whose answers hang on more than what is given"

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note where a call changes something that stays."""
        before = self._text()
        yield
        if self._text() != before:
            self._noticed.unsteady = f"{self._said} changes a memory of its own, so its answers hang on it"

    def _text(self) -> list[str]:
        found = [_text(self._inner), _text(type(self._inner))]
        return found + [_text(value) for function in self._functions for value in _values(function)]


class _SeenView:
    """A view that notes what is read of it."""

    def __init__(self, view: View, noticed: Noticed) -> None:
        self.real = view
        self.reading: Any = view.instruments
        self._noticed = noticed
        self.task = _SeenTask(view.task, noticed)
        self.memory, self.heard = view.memory, view.heard
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

    def _read(self) -> Turn:
        self._noticed.read("a turn as a whole")
        return self._turn

    def __repr__(self) -> str:
        return repr(self._read())

    def __eq__(self, other: object) -> bool:
        return self._read() == getattr(other, "_turn", other)

    def __hash__(self) -> int:
        return hash(self._read())

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._turn, name)
        if name in ("calls", "runnable"):
            return _SeenCalls(value, self._noticed)
        if name not in _COVERED_OF_TURN:
            self._noticed.read(f"a turn's {name}")
        return value


class _SeenTask:
    """A task that notes where its words and its seed are read: there is one, and a seed is no choice."""

    def __init__(self, task: Task, noticed: Noticed) -> None:
        self._task = task
        self._noticed = noticed

    def __getattr__(self, name: str) -> Any:
        if name in ("prompt", "done_when", "seed"):
            self._noticed.read(f"the task's {name}")
        return getattr(self._task, name)


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

    def __repr__(self) -> str:
        return repr(self._read())


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
        kind = type(inner)
        called = [getattr(kind, name, None) for name in ("start", *_CHANGES)]
        own = tuple(each for each in called if each is not None and each not in vars(BaseFold).values())
        self._own = _Own(inner, own, f"the fold {inner.name}", noticed)
        if looks_at_looks(inner):
            noticed.read("when it was asked")

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
        with self._own.kept():
            try:
                new = ask(memory, seen, cast(Task, _SeenTask(task, self._noticed)))
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


def _names(code: types.CodeType, *, loaded: bool = False) -> set[str]:
    """The names in a code; ``loaded``: those alone that are no attributes."""
    names = set(code.co_names)
    if loaded:
        full = {str(each.argval) for each in dis.get_instructions(code) if each.opname in _LOADS}
        names = full | {name.partition(".")[0] for name in full}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant, loaded=loaded)
    return names


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """What a function finds by name in its module, and in modules that it names there."""
    names, known = _names(function.__code__), function.__globals__
    found = {name: known[name] for name in names if name in known}
    for module in [value for value in found.values() if isinstance(value, types.ModuleType)]:
        found.update(
            {f"{module.__name__}.{name}": vars(module)[name] for name in names & vars(module).keys()}
        )
    return found


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
    return [value for value in kept if not isinstance(value, types.FunctionType | types.ModuleType)]


def _text(value: Any, depth: int = 5) -> str:
    """A value with all that it holds, as text."""
    if isinstance(value, _PLAIN) or type(value).__module__ == "itertools":
        return repr(value)[:10_000]
    if depth == 0 or is_shipped(value):
        return ""
    if isinstance(value, dict):
        return _texts((part for pair in list(value.items()) for part in pair), depth)
    if isinstance(value, _LISTED) or type(value).__module__ == "collections":
        return _texts(list(value), depth)
    return _texts(_attributes(value), depth)


def _texts(values: Iterable[Any], depth: int) -> str:
    return ", ".join(_text(value, depth - 1) for value in islice(values, 1_000))[:10_000]


def _attributes(value: Any) -> list[Any]:
    """What an object, or a class of one's own, keeps in attributes."""
    if isinstance(value, type):
        own = vars(value).values() if value.__module__ not in sys.stdlib_module_names else ()
        return [kept for kept in own if isinstance(kept, (*_PLAIN, *_LISTED, dict))]
    if isinstance(value, types.ModuleType | types.FunctionType | types.BuiltinFunctionType):
        return []
    kept = [*vars(value).values()] if hasattr(value, "__dict__") else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        kept += [getattr(value, name, None) for name in names if name not in ("__dict__", "__weakref__")]
    return kept


def _fickle(functions: tuple[types.FunctionType, ...], held: Iterable[Any]) -> str:
    """The name of a clock, of a source of chance or of the like that can be asked; empty where there is none.

    ``held`` are values that are kept beside the functions' own.
    """
    for function in functions:
        known = _globals_of(function)
        asked = _names(function.__code__, loaded=True)
        for name in sorted(asked | known.keys()):
            unknown = name in asked and name not in function.__globals__
            if (unknown and name in _FICKLE | _FICKLE_NAMES) or _is_fickle(known.get(name)):
                return name
        held = (*held, *_cells(function), *(function.__defaults__ or ()))
    return next((type(value).__name__ for value in held if _is_fickle(value)), "")


def _is_fickle(value: Any) -> bool:
    """Whether a value comes from a module of such, or moves on with each time that it is asked."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in _FICKLE
    if hasattr(value, "__next__") and type(value).__module__ != "itertools":
        return True
    holder = getattr(value, "__self__", None)
    whose = holder if isinstance(holder, type) else type(holder)
    return bool({getattr(value, "__module__", ""), whose.__module__} & _FICKLE)
