"""What a condition is, and how conditions compose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Offered
from evalkit.strategies.folds import (
    Fold,
)
from evalkit.strategies.view import View


class Condition:
    """One signal for "done". Subclasses answer ``__call__`` with a verdict that says why.

    Where a condition is composed or given to a strategy a plain function of the view will do: see
    :class:`when`.
    """

    offers: Offered = Offered()
    folds: tuple[Fold, ...] = ()
    #: Whether a seed can change its answer.
    random: bool = False
    #: Whether its answer depends on nothing but the turn, its folds and what it measures; a seed aside.
    finite: bool = False

    def __call__(self, view: View) -> Verdict:
        raise NotImplementedError

    def __and__(self, other: Condition | Test) -> Condition:
        return All((self, condition_of(other)))

    def __rand__(self, other: Test) -> Condition:
        return All((condition_of(other), self))

    def __or__(self, other: Condition | Test) -> Condition:
        return Any_((self, condition_of(other)))

    def __ror__(self, other: Test) -> Condition:
        return Any_((condition_of(other), self))

    def __invert__(self) -> Condition:
        return Not(self)


#: A function of one's own.
Test: TypeAlias = Callable[[View], "Verdict | bool"]


@dataclass(frozen=True)
class when(Condition):
    """A condition from a plain function of the view, for signals of your own.

    ``name`` stands in verdicts; without it the function's own. ``finite`` declares that the function reads
    the turn, folds and instruments alone, not ``view.turns``. ValueError for what takes no view.
    """

    test: Test
    name: str = ""
    finite: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _named(self.test))
        if not callable(self.test):
            raise ValueError(f"when takes a function of the view, got {self.test!r}")
        try:
            inspect.signature(self.test).bind(None)
        except TypeError:
            definition = f"{getattr(self.test, '__name__', self.name)}{inspect.signature(self.test)}"
            raise ValueError(
                f"when calls its function with one argument, the view; got {definition}"
            ) from None
        except ValueError:
            # Some that are written in C do not say what they take.
            pass

    def __call__(self, view: View) -> Verdict:
        answer: object = self.test(view)
        if isinstance(answer, Verdict):
            return answer
        if not isinstance(answer, bool):
            found = f"{type(answer).__name__} {answer!r}"[:100]
            raise TypeError(f"{self.name} must answer with a bool or a Verdict, got {found}")
        return Verdict(answer, f"{self.name} is {'met' if answer else 'not met'}")


def _named(function: object) -> str:
    name = getattr(function, "__name__", "when")
    return "when" if name == "<lambda>" else str(name)


def condition_of(value: Condition | Test) -> Condition:
    """A condition as it is, a function of the view as one. ValueError for anything else."""
    if isinstance(value, Condition):
        # No abstract class: its metaclass would stand between a condition and what looks through it.
        if type(value).__call__ is Condition.__call__:
            raise ValueError(f"the condition {type(value).__name__} has no __call__(self, view)")
        return value
    if isinstance(value, type) and issubclass(value, Condition):
        raise ValueError(
            f"expected a condition, got the class {value.__name__}: make one, {value.__name__}()"
        )
    if isinstance(value, type) or not callable(value):
        raise ValueError(f"expected a condition or a function of the view, got {value!r}")
    return when(value)


def parts_of(condition: Condition) -> Iterator[Condition]:
    """A condition and all that it is made of."""
    yield condition
    inner = [*getattr(condition, "parts", ())]
    inner += [getattr(condition, name, None) for name in ("part", "of", "checks", "otherwise")]
    for part in inner:
        if isinstance(part, Condition):
            yield from parts_of(part)


def _flattened(kind: type[Composed], parts: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))


def _merged(parts: tuple[Condition, ...]) -> tuple[Offered, tuple[Fold, ...], bool]:
    offers = Offered()
    folds: dict[str, Fold] = {}
    for part in parts:
        offers = offers | part.offers
        folds.update({fold.name: fold for fold in part.folds})
    return offers, tuple(folds.values()), any(part.random for part in parts)


class Composed(Condition):
    word = ""

    def __init__(self, parts: tuple[Condition, ...]) -> None:
        if not parts:
            raise ValueError("expected one condition or more, got none")
        self.parts = _flattened(type(self), parts)
        self.finite = all(part.finite for part in self.parts)
        self.offers, self.folds, self.random = _merged(self.parts)

    def __repr__(self) -> str:
        return f" {self.word} ".join(
            f"({part})" if isinstance(part, Composed) else repr(part) for part in self.parts
        )


class All(Composed):
    """Met when all parts are. Unmet, it names the gaps of every part that is not met."""

    word = "&"

    def __call__(self, view: View) -> Verdict:
        verdicts = [part(view) for part in self.parts]
        against = [verdict for verdict in verdicts if not verdict.met]
        names = any(verdict.names for verdict in verdicts)
        if not against:
            return Verdict(True, "; ".join(verdict.reason for verdict in verdicts), 0, names)
        gaps = 0
        for verdict in against:
            gaps |= verdict.gaps
        return Verdict(False, "; ".join(verdict.reason for verdict in against), gaps, names)


class Any_(Composed):
    """Met when one part is. Unmet, it names the gaps of all."""

    word = "|"

    def __call__(self, view: View) -> Verdict:
        verdicts = [part(view) for part in self.parts]
        names = any(verdict.names for verdict in verdicts)
        for verdict in verdicts:
            if verdict.met:
                return Verdict(True, verdict.reason, 0, names)
        gaps = 0
        for verdict in verdicts:
            gaps |= verdict.gaps
        return Verdict(False, "; ".join(verdict.reason for verdict in verdicts), gaps, names)


class Not(Condition):
    """Met when the part is not. It names no items, and offers the model no channel: it is no way to claim."""

    def __init__(self, part: Condition) -> None:
        self.part = part
        self.finite = part.finite
        _, self.folds, self.random = _merged((part,))
        self.offers = Offered()

    def __repr__(self) -> str:
        return f"~{self.part}" if not isinstance(self.part, Composed) else f"~({self.part})"

    def __call__(self, view: View) -> Verdict:
        verdict = self.part(view)
        return Verdict(not verdict.met, f"not ({verdict.reason})")
