"""What a condition is, and how conditions compose."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Offered
from evalkit.strategies.folds import (
    Fold,
)
from evalkit.strategies.view import View


class Condition:
    """One signal for "done". Subclasses answer ``__call__`` with a verdict that says why."""

    offers: Offered = Offered()
    folds: tuple[Fold, ...] = ()
    #: Whether a seed can change its answer.
    random: bool = False
    #: Whether its answer depends on nothing but the turn, its folds and what it measures; a seed aside.
    finite: bool = False

    def __call__(self, view: View) -> Verdict:
        raise NotImplementedError

    def __and__(self, other: Condition) -> Condition:
        return All((self, other))

    def __or__(self, other: Condition) -> Condition:
        return Any_((self, other))

    def __invert__(self) -> Condition:
        return Not(self)


def parts_of(condition: Condition) -> Iterator[Condition]:
    """A condition and all that it is made of."""
    yield condition
    inner = [*getattr(condition, "parts", ())]
    inner += [getattr(condition, name, None) for name in ("part", "of", "checks", "otherwise")]
    for part in inner:
        if isinstance(part, Condition):
            yield from parts_of(part)


def _flat(kind: type[Composed], parts: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))


def _united(parts: tuple[Condition, ...]) -> tuple[Offered, tuple[Fold, ...], bool]:
    offers = Offered()
    folds: dict[str, Fold] = {}
    for part in parts:
        offers = offers | part.offers
        folds.update({fold.name: fold for fold in part.folds})
    return offers, tuple(folds.values()), any(part.random for part in parts)


class Composed(Condition):
    word = ""

    def __init__(self, parts: tuple[Condition, ...]) -> None:
        self.parts = _flat(type(self), parts)
        self.finite = all(part.finite for part in self.parts)
        self.offers, self.folds, self.random = _united(self.parts)

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
        _, self.folds, self.random = _united((part,))
        self.offers = Offered()

    def __repr__(self) -> str:
        return f"~{self.part}" if not isinstance(self.part, Composed) else f"~({self.part})"

    def __call__(self, view: View) -> Verdict:
        verdict = self.part(view)
        return Verdict(not verdict.met, f"not ({verdict.reason})")
