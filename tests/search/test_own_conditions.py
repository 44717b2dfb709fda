"""Conditions and folds of one's own that hang on more than what is given, each in another way.

In a run of the explorer each of them does what acceptance does; in a run of six or more turns, or of another
world, it would not.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import itertools
import operator
import string
import sys
import types
import weakref
from array import array
from collections.abc import Hashable
from typing import Any

import msgspec
import pytest

from evalkit.core.decisions import Verdict
from evalkit.core.turns import Turn
from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import Result, prove
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from evalkit.strategies.folds import BaseFold
from evalkit.strategies.view import View

ACCEPTED = c.acceptance()


def accepted(view: View) -> bool:
    return view.instruments.checks().met


def asked(condition: c.Condition, items: int = 1) -> Result:
    (result,) = prove(Strategy(done_when=condition), Setting(items), ("no_false_done",)).results
    return result


def proved(test: Any, items: int = 1) -> Result:
    return asked(c.when(lambda view: test(view) or accepted(view), finite=True), items)


# What is held


class Box:
    number = 0


class Given(list[int]):
    """A list with a name."""


class Ghost:
    """Each attribute that is asked for is another number."""

    def __init__(self) -> None:
        self.asked = [0]

    def __getattr__(self, name: str) -> int:
        self.asked[0] += 1
        return self.asked[0]


class Descriptor:
    number = 0

    def __get__(self, holder: object, kind: type | None = None) -> int:
        self.number += 1
        return self.number


class Described:
    number = Descriptor()


class Meta(type):
    @property
    def number(cls) -> int:
        cls.kept: int = getattr(cls, "kept", 0) + 1
        return cls.kept


class Made(metaclass=Meta):
    pass


BOX, KEPT, GHOST, DESCRIBED = Box(), Box(), Ghost(), Described()
REFERENCE, KEYED = weakref.ref(BOX), weakref.WeakKeyDictionary({KEPT: 0})
NUMBERS, LARGE, DEEP = array("i", [0]), dict.fromkeys(range(5_000), 0), [[[[[[[[0]]]]]]]]
CYCLE, CHAIN = itertools.cycle([0] * 10**5 + [1]), itertools.chain([0] * 10**5, [1])
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("asked", default=0)
APPEND = list[int]().append
MODULE = types.ModuleType("a_module")
ASKED: list[int] = []


def of_a_module(name: str) -> int:
    ASKED.append(1)
    return len(ASKED)


MODULE.__getattr__ = of_a_module  # type: ignore[method-assign]


def weakly(view: View) -> bool:
    held: Any = REFERENCE()
    held.number += 1
    return bool(held.number == 10**6)


def keyed(view: View) -> bool:
    KEYED[KEPT] += 1
    return KEYED[KEPT] == 10**6


def in_an_array(view: View) -> bool:
    NUMBERS[0] += 1
    return NUMBERS[0] == 10**6


def in_a_variable(view: View) -> bool:
    VARIABLE.set(VARIABLE.get() + 1)
    return VARIABLE.get() == 10**6


def at_the_end_of_much(view: View) -> bool:
    LARGE[4_999] += 1
    return LARGE[4_999] == 10**6


def deep_down(view: View) -> bool:
    inner: Any = DEEP
    while isinstance(inner[0], list):
        inner = inner[0]
    inner[0] += 1
    return bool(inner[0] == 10**6)


def appended(view: View) -> bool:
    return APPEND(1) is not None


@functools.cache
def remembered(number: int) -> object:
    return object()


def by_its_cache(view: View) -> bool:
    remembered(remembered.cache_info().misses)
    return remembered.cache_info().misses == 10**6


def in_part() -> Any:
    def test(state: list[int], view: View) -> bool:
        state[0] += 1
        return state[0] == 10**6

    return functools.partial(test, [0])


def by_default(view: View, _kept: Given = Given([0])) -> bool:  # noqa: B008 - what it is about
    _kept[0] += 1
    return _kept[0] == 10**6


def on_a_shipped_condition(view: View) -> bool:
    object.__setattr__(ACCEPTED, "number", getattr(ACCEPTED, "number", 0) + 1)
    return bool(ACCEPTED.number == 10**6)  # type: ignore[attr-defined]


def on_a_shipped_class(view: View) -> bool:
    Strategy.number = getattr(Strategy, "number", 0) + 1  # type: ignore[attr-defined]
    return bool(Strategy.number == 10**6)  # type: ignore[attr-defined]


def on_a_library(view: View) -> bool:
    string.number = getattr(string, "number", 0) + 1  # type: ignore[attr-defined]
    return bool(string.number == 10**6)  # type: ignore[attr-defined]


def on_what_is_given(view: Any) -> bool:
    view.instruments.number = getattr(view.instruments, "number", 0) + 1
    return bool(view.instruments.number == 10**6)


class Counting(c.Condition):
    finite = True

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, view: View) -> Verdict:
        self.asked += 1
        return Verdict(self.asked == 10**6, "counting")


WITHIN = ACCEPTED | Counting()


@pytest.mark.long
@pytest.mark.parametrize(
    ("test", "why"),
    [
        (lambda view: bool(next(CYCLE)), "asks cycle"),
        (lambda view: bool(next(CHAIN, 0)), "asks chain"),
        (weakly, "holds ReferenceType"),
        (keyed, "holds WeakKeyDictionary"),
        (in_an_array, "holds array"),
        (in_a_variable, "holds ContextVar"),
        (at_the_end_of_much, "holds more than can be looked through"),
        (deep_down, "changes a memory of its own"),
        (appended, "asks list.append"),
        (by_its_cache, "asks cache_info"),
        (in_part(), "changes a memory of its own"),
        (by_default, "changes a memory of its own"),
        (lambda view: GHOST.number == 10**6, "changes a memory of its own"),
        (lambda view: DESCRIBED.number == 10**6, "changes a memory of its own"),
        (lambda view: Made.number == 10**6, "changes a memory of its own"),
        (lambda view: MODULE.number == 10**6, "changes a memory of its own"),
        (on_a_shipped_condition, "asks __setattr__"),
        (on_a_shipped_class, "changes a memory of its own"),
        (on_a_library, "changes a memory of its own"),
        (on_what_is_given, "puts 'number' into what it is given"),
        (lambda view: WITHIN(view).met, "changes a memory of its own"),
        (lambda view: sys.getrefcount(view) == 10**6, "asks sys"),
        (lambda view: gc.get_count()[0] == 10**6, "asks gc"),
        (lambda view: setattr(KEPT, "number", 1) is not None, "asks setattr"),
    ],
)
def test_what_is_held_or_asked_out_of_sight_is_refused(test: Any, why: str) -> None:
    result = proved(test)
    assert (result.answer, why in result.how) == ("refused", True), result


# What is read in odd ways


def matching(view: View) -> bool:
    match view.turn:
        case Turn(native="safety"):
            return True
    return False


def trying(view: View) -> bool:
    try:
        return bool(msgspec.structs.asdict(view.turn)["native"] == "safety")
    except TypeError:
        return False


def renaming(view: View) -> bool:
    known: Any = view.task.vocabulary
    try:
        known["another"] = 0
    except TypeError:
        return False
    return len(known) == 1


class OverTime(c.evidence_over_time):
    def __call__(self, view: View) -> Verdict:
        return Verdict(view.instruments.tokens > 10**5 or accepted(view), "over time")


class Every(c.All):
    asked = [0]

    def __call__(self, view: View) -> Verdict:
        self.asked[0] += 1
        return Verdict(self.asked[0] == 10**6 or accepted(view), "every")


class Flipping:
    asked = [0]

    def __bool__(self) -> bool:
        self.asked[0] += 1
        return self.asked[0] == 10**6


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (lambda view: isinstance(view.turn, Turn) and view.turn.native == "safety", "a turn's native"),
        (lambda view: isinstance(view.turn.calls, tuple) and len(view.turn.calls) == 9, "which calls"),
        (matching, "a turn's native"),
        (trying, "asks asdict"),
        (lambda view: type(view).__name__ == "View" and view.turns == 50, "asks type"),
        (lambda view: operator.attrgetter("turn.native")(view) == "safety", "a turn's native"),
        (lambda view: operator.attrgetter("items.__self__.turns")(view) == 50, "asks __self__"),
        (lambda view: "{.items.__self__.turns}".format(view) == "50", "asks __self__"),  # noqa: UP032 - a text
        (lambda view: f"{view.turn}" == "safety", "a turn as a whole"),
        (lambda view: getattr(view.turn, "_turn", view.turn).native == "safety", "a turn's native"),
        (lambda view: view.turn.kind == "failed", "whether an answer failed"),
        (lambda view: view.turn.kind in ("in_progress", "failed"), "whether an answer failed"),
        (lambda view: (view.task.limits.turns or 0) == 50, "the task's limits"),
        (lambda view: view.task.stream == "another", "the task's stream"),
        (renaming, "changes what it is given"),
    ],
)
def test_what_is_read_in_odd_ways_is_refused(test: Any, why: str) -> None:
    result = proved(test)
    assert (result.answer, why in result.how) == ("refused", True), result


@pytest.mark.long
@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (OverTime(), "what the run has cost"),
        (Every((ACCEPTED, c.artifact())), "changes a memory of its own"),
        (~c.when(lambda view: view.turn.native != "safety", finite=True) | ACCEPTED, "a turn's native"),
        (c.when(lambda view: Verdict(Flipping(), "flipping"), finite=True) | ACCEPTED, "no plain yes or no"),  # type: ignore[arg-type]
        (c.when(lambda view: (Every((ACCEPTED,)) | ACCEPTED)(view).met, finite=True), "changes a memory"),
    ],
    ids=["subclass of a shipped one", "subclass of all", "negated", "a verdict that changes", "made anew"],
)
def test_a_condition_made_of_others_is_watched_whole(condition: c.Condition, why: str) -> None:
    result = asked(condition)
    assert (result.answer, why in result.how) == ("refused", True), result


# More than was explored


class Most(c.Condition):
    finite = True
    folds = c.certificate().folds
    most = 4

    def __call__(self, view: View) -> Verdict:
        return Verdict(view.items("succeeded").bit_count() == self.most or accepted(view), "most")


MOST = 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("condition", "number"),
    [
        (Most(), 4),
        (c.when(lambda view: view.items("known").bit_count() > 2 or accepted(view), finite=True), 3),
        (c.when(lambda view: len(view.task.vocabulary) >= MOST or accepted(view), finite=True), 4),
        (c.when(lambda view: bin(view.items("known")).count("1") == 3 or accepted(view), finite=True), 3),
    ],
    ids=["attribute", "more than", "global", "digits"],
)
def test_a_number_beyond_all_that_was_explored_is_refused(condition: c.Condition, number: int) -> None:
    result = asked(condition, items=2)
    assert result.answer == "refused"
    assert f"compares with {number}, and nothing explored goes beyond 2" in result.how


@pytest.mark.long
def test_a_number_that_was_reached_is_no_reason() -> None:
    class Both(c.Condition):
        finite = True
        folds = c.certificate().folds

        def __call__(self, view: View) -> Verdict:
            return Verdict(view.items("succeeded").bit_count() == 2 and accepted(view), "both")

    assert asked(Both(), items=2).answer == "proved"


# Folds


class Same:
    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 1


class Hidden(BaseFold):
    """Memories that are equal, and count."""

    name = "hidden"
    holds = "finite"

    def start(self, task: Any) -> Hashable:
        return Same(0)

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return Same(memory.number + 1)


class Floating(BaseFold):
    """1, 1.0 and True, which are equal."""

    name = "floating"
    holds = "finite"

    def start(self, task: Any) -> Hashable:
        return 1

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return 1.0


class True_(BaseFold):
    """1, then True, which is equal to it, and then 2."""

    name = "true"
    holds = "finite"

    def start(self, task: Any) -> Hashable:
        return 1

    def after_turn(self, memory: Any, turn: Any, task: Any) -> Hashable:
        return 2 if memory is True or memory == 2 else True


class Several(BaseFold):
    """How many calls a turn ran."""

    name = "several"
    holds = "finite"

    def after_results(self, memory: Any, ran: Any, task: Any) -> Hashable:
        return max(memory, len(ran))


class Arguments(BaseFold):
    """Whether a call named something else."""

    name = "arguments"
    holds = "finite"

    def after_results(self, memory: Any, ran: Any, task: Any) -> Hashable:
        return memory or int(any("sesame" in record.call.arguments for record in ran))


@pytest.mark.parametrize(
    ("fold", "test", "why"),
    [
        (Hidden(), lambda kept: kept.number == 50, "equal and not the same"),
        (Floating(), lambda kept: kept == 50, "equal and not the same"),
        (True_(), lambda kept: kept == 2, "tells a memory that is True from one that is 1"),
        (Several(), lambda kept: kept == sum((1, 1, 1)), "how many calls were run"),
        (Arguments(), bool, "a call's arguments"),
    ],
    ids=["equal", "floats", "truth", "number of calls", "arguments"],
)
def test_a_fold_that_explores_as_one_what_is_not_is_refused(fold: Any, test: Any, why: str) -> None:
    class Folded(c.Condition):
        finite = True
        folds = (fold,)

        def __call__(self, view: View) -> Verdict:
            return Verdict(bool(test(view.memory[fold.name])) or accepted(view), "folded")

    result = asked(Folded())
    assert (result.answer, why in result.how) == ("refused", True), result


# What gives up


#: Ends done where it gives up, and by nothing else that is not done.
GIVES_UP = Strategy(
    done_when=ACCEPTED,
    then="done",
    nudges=None,
    pause="as_content",
    cut_off="as_content",
    overflow="as_content",
    refusal="as_content",
)
FLAG = {"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"]}


def gives_up(condition: c.Condition) -> Result:
    strategy = GIVES_UP.but(give_up_when=condition)
    (result,) = prove(strategy, Setting(2), ("no_false_done",)).results
    return result


def test_nothing_else_refutes_what_gives_up() -> None:
    assert gives_up(~ACCEPTED & ACCEPTED).answer == "proved"


@pytest.mark.parametrize(
    "condition",
    [
        c.keyword("HALT"),
        c.typed_output(FLAG),
        c.artifact(),
        c.verifier("evidence", fooled=0.01),
        c.when(lambda view: view.claim == "done", finite=True),
    ],
    ids=["keyword", "typed output", "artifact", "fooled", "own"],
)
def test_what_gives_up_is_explored_as_what_is_done(condition: c.Condition) -> None:
    assert gives_up(condition).answer == "refuted"


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (lambda view: view.turn.native == "safety", "a turn's native"),
        (lambda view: view.instruments.usd > 2.5, "what the run has cost"),
        (in_an_array, "holds array"),
    ],
    ids=["label", "cost", "memory"],
)
def test_what_gives_up_is_watched(test: Any, why: str) -> None:
    result = gives_up(c.when(test, finite=True))
    assert (result.answer, why in result.how) == ("refused", True), result
