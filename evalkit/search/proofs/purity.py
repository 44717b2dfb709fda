"""What conditions and folds of one's own read, and whether they answer twice the same.

A proof covers what the moves vary. Shipped conditions read only that; one's own are watched while they are
explored: each thing of a turn, a result or the run that they look at is noted, and so is everything that
shows that an answer hangs on more than what was given: another verdict for a state that is met again, a
memory of its own that a call changes, a clock, chance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Task
from evalkit.core.turns import Turn
from evalkit.search.proofs.reachable_values import Held, text_of, text_of_memory
from evalkit.search.proofs.symmetry import all_shipped, is_shipped
from evalkit.strategies.condition import All, Any_, Condition, Not
from evalkit.strategies.folds import BaseFold, Fold, Ran, counts_looks
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import evidence_over_time
from evalkit.strategies.view import View

#: So many moments are kept to be asked about again.
KEPT = 20_000
#: Attributes of a turn that the moves give in every way in which they matter.
_COVERED_OF_TURN = frozenset(("claim", "kind"))
#: Attributes of a task that the answer names, or that are the strategy's own.
_COVERED_OF_TASK = frozenset(
    (
        *("vocabulary", "items", "names", "items_of", "items_in", "items_of_call"),
        *("checks", "skippable", "offered", "output"),
    )
)


class Noticed:
    """What was noticed of a strategy's own conditions and folds."""

    def __init__(self) -> None:
        #: What they read and the moves do not cover, in words.
        self.reads: dict[str, None] = {}
        #: Why they are no function of what they are given; empty where nothing says so.
        self.unsteady = ""
        #: Whether a memory is a truth value, equal to a number, and whether somebody tells the two apart.
        self.alike = self.tells = False
        #: The whole numbers that they hold something against, and the largest that anything explored came to.
        self.numbers: set[int] = set()
        self.reached = 0
        self._moments: list[tuple[_Watched, View, int, Verdict]] = []
        self._own: list[_Own] = []
        self._tasks: dict[int, tuple[Task, str]] = {}

    def read(self, what: str) -> None:
        """Note something that the moves do not cover."""
        self.reads[what] = None

    def reach(self, value: object) -> None:
        """Note how far something that can be counted came: a number, or how much of something there is."""
        if isinstance(value, tuple | frozenset | str):
            self.reached = max(self.reached, len(value))
            for each in () if isinstance(value, str) else value:
                self.reach(each)
        elif isinstance(value, int):
            self.reached = max(self.reached, value)

    def give(self, task: Task) -> None:
        """Note a task as it is before anybody has it."""
        if id(task) not in self._tasks:
            self._tasks[id(task)] = (task, text_of(task, set()))
            self.reach(len(task.vocabulary))

    def keep(self, watched: _Watched, view: View, world: int, verdict: Verdict) -> None:
        """Keep a moment, to ask about it again."""
        if len(self._moments) < KEPT:
            self._moments.append((watched, view, world, verdict))

    def ask_again(self) -> None:
        """Ask about all moments that were kept once more, the last one first, and with nobody watching."""
        moments, self._moments = self._moments, []
        for watched, view, world, verdict in reversed(moments):
            if self.unsteady:
                return
            reading: Any = view.instruments
            reading.world = world
            try:
                again = watched.part(view)
            except Exception as error:
                self.unsteady = f"{watched.said} raises {type(error).__name__} where nobody watches it"
                return
            if (again.met, again.gaps) != (verdict.met, verdict.gaps):
                self.unsteady = f"{watched.said} gave another verdict for a state that was met again"
        if any(text_of(task, set()) != before for task, before in self._tasks.values()):
            self.unsteady = "a condition or fold changes what it is given"
        for own in self._own:
            own.compare()

    def watch(self, own: _Own) -> None:
        """Ask at the end whether something is as it was at the beginning."""
        self._own.append(own)

    def why_not(self) -> str:
        """Why nothing can be proved; empty where nothing stands against it."""
        if self.unsteady:
            return self.unsteady
        if self.alike and self.tells:
            return "a condition or fold tells a memory that is True from one that is 1, explored as one"
        if self.reads:
            return f"a condition or fold reads {', '.join(self.reads)}, which the moves do not cover"
        if self.numbers and max(self.numbers) > self.reached:
            return (
                f"a condition or fold compares with {max(self.numbers)}, and nothing explored goes beyond"
                f" {self.reached}: more items may show more"
            )
        return ""


def watched(strategy: Strategy, noticed: Noticed) -> Strategy:
    """The strategy with what is not shipped in it watched; the same one where all is shipped."""
    if all_shipped(strategy):
        return strategy
    gives_up = strategy.give_up_when
    return strategy.but(
        done_when=_watched(strategy.done_when, noticed),
        give_up_when=None if gives_up is None else _watched(gives_up, noticed),
    )


def _watched(condition: Condition, noticed: Noticed) -> Condition:
    if type(condition) in (All, Any_):
        parts = cast(All, condition).parts
        return type(cast(All, condition))(tuple(_watched(part, noticed) for part in parts))
    if type(condition) is Not:
        return Not(_watched(condition.part, noticed))
    if type(condition) is ChecksFirst:
        return ChecksFirst(_watched(condition.otherwise, noticed))
    if type(condition) is evidence_over_time:
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
        #: Folds that count something, and do not only say of which items it is so.
        self._counted = [fold.name for fold in inner.folds if getattr(fold, "holds", "open") != "items"]
        self._own = _Own(inner, self.said, noticed)

    def __call__(self, view: View) -> Verdict:
        world = getattr(view.instruments, "world", 0)
        self.noticed.give(view.task)
        for name in self._counted:
            self.noticed.reach(view.memory.get(name))
        with self._own.kept():
            try:
                verdict = self.part(cast(View, _SeenView(view, self.noticed)))
            except Exception:
                # It may be what watches that it cannot stand.
                self.noticed.read("a turn in a way that cannot be followed")
                verdict = self.part(view)
        if type(verdict.met) is not bool or type(verdict.gaps) is not int:
            self.noticed.unsteady = f"{self.said} answers with what is no plain yes or no"
        self.noticed.keep(self, view, world, verdict)
        return verdict


class _Own:
    """What a condition or fold of one's own could remember beside what it is given, and could ask."""

    def __init__(self, inner: Any, said: str, noticed: Noticed) -> None:
        self._said = said
        self._noticed = noticed
        self._held = Held(said, [inner])
        noticed.unsteady = noticed.unsteady or self._held.why
        noticed.numbers |= self._held.numbers
        noticed.tells = noticed.tells or self._held.tells

        self._before = "" if self._held.why else self._held.text()
        noticed.watch(self)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Note where a call changes something that stays."""
        yield
        self.compare()

    def compare(self) -> None:
        """Note where something is not as it was."""
        if not self._held.why and self._held.text() != self._before:
            self._noticed.unsteady = f"{self._said} changes a memory of its own, so its answers hang on it"


class _Given:
    """Something that stands for what is given, and says so when it is asked what it is.

    What it keeps goes by names that nobody else has. Something put into it would be lost, where in a run it
    might stay: that is noted.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_Seen"):
            noticed = self.__dict__[f"_{type(self).__name__.lstrip('_')}__noticed"]
            noticed.unsteady = f"a condition or fold puts {name!r} into what it is given"
        object.__setattr__(self, name, value)


class _SeenView(_Given):
    """A view that notes what is read of it."""

    def __init__(self, view: View, noticed: Noticed) -> None:
        self.__view = view
        self.__noticed = noticed
        self.__dict__.update(
            task=_SeenTask(view.task, noticed),
            turn=_SeenTurn(view.turn, noticed),
            instruments=_SeenInstruments(view.instruments, noticed),
            **{name: getattr(view, name) for name in ("memory", "is_content", "claim", "items", "named")},
        )

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return View

    @property
    def turns(self) -> int:
        self.__noticed.read("the number of turns")
        return self.__view.turns

    @property
    def text(self) -> str:
        self.__noticed.read("a turn's text")
        return self.__view.text

    @property
    def finish(self) -> Any:
        self.__noticed.read("what a finish names")
        return self.__view.finish


class _SeenTurn(_Given):
    """A turn that notes what is read of it."""

    def __init__(self, turn: Turn, noticed: Noticed) -> None:
        self.__turn = turn
        self.__noticed = noticed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return Turn

    def __read(self) -> Turn:
        self.__noticed.read("a turn as a whole")
        return self.__turn

    def __repr__(self) -> str:
        return repr(self.__read())

    def __eq__(self, other: object) -> bool:
        return self.__read() == (other.__turn if type(other) is _SeenTurn else other)

    def __hash__(self) -> int:
        return hash(self.__read())

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__turn, name)
        if name in ("calls", "runnable"):
            return _SeenCalls(value, self.__noticed)
        if name == "kind":
            return _Kind(value, self.__noticed)
        if name not in _COVERED_OF_TURN:
            self.__noticed.read(f"a turn's {name}")
        return value


class _Kind(str):
    """A turn's kind that notes where it is held against one that no move makes."""

    def __new__(cls, kind: str, noticed: Noticed) -> _Kind:
        made = super().__new__(cls, kind)
        made.noticed = noticed
        return made

    noticed: Noticed

    def __eq__(self, other: object) -> bool:
        if other in ("failed", "in_progress"):
            self.noticed.read("whether an answer failed or is in progress")
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class _SeenTask(_Given):
    """A task that notes where more is read than its items and channels: there is one, and it is no choice."""

    def __init__(self, task: Task, noticed: Noticed) -> None:
        self.__task = task
        self.__noticed = noticed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return Task

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__task, name)
        if name not in _COVERED_OF_TASK:
            self.__noticed.read(f"the task's {name}")
        return value


class _SeenCalls(_Given):
    """A turn's calls; that there are some is covered, how many and which is not."""

    def __init__(self, calls: tuple[Any, ...], noticed: Noticed) -> None:
        self.__calls = calls
        self.__noticed = noticed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return tuple

    def __read(self) -> tuple[Any, ...]:
        self.__noticed.read("which calls a turn has and how many")
        return self.__calls

    def __bool__(self) -> bool:
        return bool(self.__calls)

    def __len__(self) -> int:
        return len(self.__read())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__read())

    def __getitem__(self, place: Any) -> Any:
        return self.__read()[place]

    def __eq__(self, other: object) -> bool:
        return self.__calls == other if other == () else self.__read() == other

    def __hash__(self) -> int:
        return hash(self.__read())

    def __repr__(self) -> str:
        return repr(self.__read())


class _SeenInstruments(_Given):
    """Instruments that note what is measured with them."""

    def __init__(self, instruments: Any, noticed: Noticed) -> None:
        self.__instruments = instruments
        self.__noticed = noticed
        self.__dict__.update({name: getattr(instruments, name) for name in ("checks", "artifact", "replays")})

    @property
    def tokens(self) -> int:
        self.__noticed.read("what the run has cost")
        return self.__instruments.tokens  # type: ignore[no-any-return]

    @property
    def usd(self) -> float:
        self.__noticed.read("what the run has cost")
        return self.__instruments.usd  # type: ignore[no-any-return]

    @property
    def last_turn(self) -> Any:
        last = self.__instruments.last_turn
        return None if last is None else _SeenTurn(last, self.__noticed)


class _WatchedFold(BaseFold):
    """A fold of one's own, watched."""

    def __init__(self, inner: Any, noticed: Noticed) -> None:
        self._inner = inner
        self._noticed = noticed
        self.name = inner.name
        self.holds = getattr(inner, "holds", "open")
        self._own = _Own(inner, f"the fold {inner.name}", noticed)
        #: The memories that were seen, each with its text.
        self._memories: dict[Hashable, str] = {}
        if counts_looks(inner):
            noticed.read("when it was asked")

    def start(self, task: Task) -> Hashable:
        return self._inner.start(task)  # type: ignore[no-any-return]

    def after_turn(self, memory: Any, turn: Turn, task: Task) -> Hashable:
        return self._twice(self._inner.after_turn, memory, _SeenTurn(turn, self._noticed), turn, task)

    def after_results(self, memory: Any, ran: tuple[Ran, ...], task: Task) -> Hashable:
        seen = _SeenRuns(ran, self._noticed)
        return self._twice(self._inner.after_results, memory, seen, ran, task)

    def after_compaction(self, memory: Any, task: Task) -> Hashable:
        forgets = getattr(self._inner, "after_compaction", None)
        return memory if forgets is None else forgets(memory, task)  # type: ignore[no-any-return]

    def after_asks(self, memory: Any, items: int, task: Task) -> Hashable:
        asked = getattr(self._inner, "after_asks", None)
        return memory if asked is None else asked(memory, items, task)  # type: ignore[no-any-return]

    def _twice(self, ask: Callable[..., Any], memory: Any, seen: Any, real: Any, task: Task) -> Hashable:
        """The new memory; asked twice, a pure fold gives it twice."""
        self._kept(memory)
        new = None
        with self._own.kept():
            try:
                new = ask(memory, seen, cast(Task, _SeenTask(task, self._noticed)))
            except Exception:
                self._noticed.read("a turn or result in a way that cannot be followed")
        again = ask(memory, real, task)
        if again != new:
            self._noticed.unsteady = f"the fold {self.name} gave another memory for the same turn"
        self._kept(again)
        return again  # type: ignore[no-any-return]

    def _kept(self, memory: Hashable) -> None:
        """Hold a memory to those that were seen: states with equal memories are explored as one."""
        self._noticed.reach(memory)
        text = text_of_memory(memory)
        if self._memories.setdefault(memory, text) != text or not text:
            self._noticed.unsteady = f"the fold {self.name} has memories that are equal and not the same"
        if type(memory) is bool:
            self._noticed.alike = True


class _SeenRuns(_Given):
    """The calls of a turn that were run, to be gone through; how many there are is not covered."""

    def __init__(self, ran: tuple[Ran, ...], noticed: Noticed) -> None:
        self.__ran = tuple([_SeenRan(record, noticed) for record in ran])
        self.__noticed = noticed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return tuple

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__ran)

    def __bool__(self) -> bool:
        return bool(self.__ran)

    def __len__(self) -> int:
        self.__noticed.read("how many calls were run")
        return len(self.__ran)

    def __getitem__(self, place: Any) -> Any:
        self.__noticed.read("how many calls were run")
        return self.__ran[place]


class _SeenRan:
    """A call that was run; tool, item and error are covered, its words and the answer's are not."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return Ran

    def __init__(self, record: Ran, noticed: Noticed) -> None:
        self.tool, self.item = record.tool, record.item
        self.call = _SeenFields(record.call, ("tool",), "a call's", noticed)
        self.result = _SeenFields(record.result, ("error",), "a result's", noticed)


class _SeenFields(_Given):
    """A value of which some fields are covered."""

    def __init__(self, value: Any, covered: tuple[str, ...], whose: str, noticed: Noticed) -> None:
        self.__value = value
        self.__covered = covered
        self.__whose = whose
        self.__noticed = noticed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.__value)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__value, name)
        if name not in self.__covered:
            self.__noticed.read(f"{self.__whose} {name}")
        return value
