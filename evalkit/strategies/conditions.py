"""Conditions: each is one signal for "done". They compose with ``&``, ``|`` and ``~``.

A condition is a value without state of a run; one instance serves many runs at once. Its ``offers`` are the
channels it agrees with the model, its ``folds`` what it remembers of the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import DEFAULT_OUTPUT, KEYWORD, Offered, occurs_whole
from evalkit.scenarios.output_schema import matches, schema_problem
from evalkit.strategies import wording
from evalkit.strategies.folds import (
    FAILED,
    FAILURES,
    KNOWN,
    LISTED_IN_CONVERSATION,
    SHOWN,
    SKIPPED,
    SUCCEEDED,
    TICKED,
    TICKED_IN_CONVERSATION,
    Evidence,
    Fold,
    Heard,
    Idle,
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


def _flat(kind: type[_Composed], parts: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))


def _united(parts: tuple[Condition, ...]) -> tuple[Offered, tuple[Fold, ...], bool]:
    offers = Offered()
    folds: dict[str, Fold] = {}
    for part in parts:
        offers = offers | part.offers
        folds.update({fold.name: fold for fold in part.folds})
    return offers, tuple(folds.values()), any(part.random for part in parts)


class _Composed(Condition):
    word = ""

    def __init__(self, parts: tuple[Condition, ...]) -> None:
        self.parts = _flat(type(self), parts)
        self.finite = all(part.finite for part in self.parts)
        self.offers, self.folds, self.random = _united(self.parts)

    def __repr__(self) -> str:
        return f" {self.word} ".join(
            f"({part})" if isinstance(part, _Composed) else repr(part) for part in self.parts
        )


class All(_Composed):
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


class Any_(_Composed):
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
        return f"~{self.part}" if not isinstance(self.part, _Composed) else f"~({self.part})"

    def __call__(self, view: View) -> Verdict:
        verdict = self.part(view)
        return Verdict(not verdict.met, f"not ({verdict.reason})")


@dataclass(frozen=True)
class silence(Condition):
    """A turn without client calls. The one-line loop: no comparison with the task at all."""

    finite = True

    def __call__(self, view: View) -> Verdict:
        if view.turn.calls:
            return Verdict(False, "the turn has calls")
        return Verdict(True, "the turn has no calls")


@dataclass(frozen=True)
class acceptance(Condition):
    """The task's acceptance checks pass; without checks it is met."""

    finite = True

    def __call__(self, view: View) -> Verdict:
        return view.instruments.checks()


@dataclass(frozen=True)
class checklist(Condition):
    """Every known item is ticked, a recorded skip included.

    ``kept`` says where the list lives: with the loop, or only in the conversation, where a compaction takes
    it away and the model writes another.
    """

    finite = True
    kept: Literal["loop", "conversation"] = "loop"
    offers: Offered = field(default=Offered(checklist=True), repr=False, init=False)

    def __post_init__(self) -> None:
        if self.kept not in ("loop", "conversation"):
            raise ValueError(f"kept is loop or conversation, got {self.kept!r}")

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        if self.kept == "loop":
            return (KNOWN, TICKED, SKIPPED)
        return (LISTED_IN_CONVERSATION, TICKED_IN_CONVERSATION, SKIPPED)

    def __call__(self, view: View) -> Verdict:
        where = "" if self.kept == "loop" else " in the conversation"
        known = view.items("known") if not where else view.items(LISTED_IN_CONVERSATION.name)
        if not known:
            return Verdict(False, "no items known")
        gaps = known & ~view.items(f"ticked{where}") & ~view.items("skipped")
        if gaps:
            return Verdict(False, f"not ticked: {view.named(gaps)}", gaps, True)
        return Verdict(True, "every item ticked", 0, True)


@dataclass(frozen=True)
class finish(Condition):
    """A finish call. Validated: every known item is in it, completed or skipped with a reason."""

    finite = True
    validate: bool = False
    offers: Offered = field(default=Offered(finish=True), repr=False, init=False)
    folds: tuple[Fold, ...] = field(default=(KNOWN,), repr=False, init=False)

    def __call__(self, view: View) -> Verdict:
        told = view.finish
        if told is None:
            return Verdict(False, wording.NO_FINISH)
        if not self.validate:
            return Verdict(True, "finish called")
        known = view.items("known")
        if not known:
            return Verdict(False, wording.NOTHING_LISTED)
        accounted = view.task.items_of(told.completed)
        if told.reason:
            accounted |= view.task.items_of(told.skipped)
        gaps = known & ~accounted
        if gaps:
            total = known.bit_count()
            reason = f"{gaps.bit_count()} of {total} items unaccounted for: {view.named(gaps)}"
            return Verdict(False, reason, gaps, True)
        return Verdict(True, "every item accounted for", 0, True)


@dataclass(frozen=True)
class keyword(Condition):
    """The model says the agreed word: case-sensitive, whole. ``any``: wherever the word occurs."""

    finite = True
    word: str = KEYWORD
    scope: Literal["assistant", "any"] = "assistant"

    def __post_init__(self) -> None:
        if not self.word.strip():
            raise ValueError("a keyword cannot be blank: it would match every text")

    @property
    def offers(self) -> Offered:  # type: ignore[override]
        return Offered(keyword=self.word)

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        return (Heard(self.word),) if self.scope == "any" else ()

    def __call__(self, view: View) -> Verdict:
        if occurs_whole(self.word, view.text):
            return Verdict(True, f"says {self.word}")
        if self.scope == "any" and view.items(f"heard {self.word}"):
            return Verdict(True, f"{self.word} occurs in the conversation")
        return Verdict(False, f"does not say {self.word}")


@dataclass(frozen=True)
class typed_output(Condition):
    """The whole text is JSON of the schema (the task's, or a default one)."""

    finite = True
    schema: Mapping[str, Any] | None = None
    offers: Offered = field(default=Offered(output=True), repr=False, init=False)

    def __post_init__(self) -> None:
        problem = schema_problem(self.schema) if self.schema is not None else ""
        if problem:
            raise ValueError(f"typed_output: {problem}")

    def __call__(self, view: View) -> Verdict:
        schema = self.schema or view.task.output or DEFAULT_OUTPUT
        problem = "the turn has calls" if view.turn.calls else matches(view.text, schema)
        if problem:
            return Verdict(False, f"no typed output: {problem}")
        return Verdict(True, "typed output of the schema")


Sees = Literal["claim", "evidence", "transcript"]


@dataclass(frozen=True)
class verifier(Condition):
    """A reader of the run, ideal but for assumed error rates.

    ``claim``: the turn claims done. ``evidence``: every known item has a recorded success or skip, whatever
    the turn says. ``transcript``: both as the conversation shows them, and no item's last result is an error;
    a compaction takes that evidence away. ``misses`` is the probability of calling finished work unfinished,
    ``fooled`` of the reverse. ``errors`` says whether an error is drawn anew at each turn (``independent``,
    by stream, seed and turn) or once for the whole run (``persistent``, by stream and seed): who is fooled by
    this work is then fooled at every look.
    """

    finite = True
    sees: Sees = "claim"
    misses: float = 0.0
    fooled: float = 0.0
    errors: Literal["independent", "persistent"] = "independent"

    def __post_init__(self) -> None:
        if self.errors not in ("independent", "persistent"):
            raise ValueError(f"errors is independent or persistent, got {self.errors!r}")
        if self.sees not in ("claim", "evidence", "transcript"):
            raise ValueError(f"sees is claim, evidence or transcript, got {self.sees!r}")
        for name in ("misses", "fooled"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a probability from 0 to 1, got {getattr(self, name)!r}")

    @property
    def random(self) -> bool:  # type: ignore[override]
        return bool(self.misses or self.fooled)

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        if self.sees == "claim":
            return ()
        return (KNOWN, SUCCEEDED, SKIPPED) if self.sees == "evidence" else (KNOWN, SHOWN, SKIPPED, FAILED)

    def __call__(self, view: View) -> Verdict:
        verdict = self._read(view)
        if not self.random:
            return verdict
        if verdict.met and self.draw(view, "misses") < self.misses:
            return Verdict(False, f"verifier error ({verdict.reason})", 0, verdict.names)
        if not verdict.met and self.draw(view, "fooled") < self.fooled:
            return Verdict(True, f"verifier error ({verdict.reason})", 0, verdict.names)
        return verdict

    def draw(self, view: View, error: Literal["misses", "fooled"]) -> float:
        """What is drawn for a kind of error at a look, from 0 to 1: it is made where the rate is above."""
        task, turn = view.task, view.turns if self.errors == "independent" else "run"
        text = f"{task.stream}\n{task.seed}\n{error}\n{turn}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64

    def _read(self, view: View) -> Verdict:
        claims = view.claim == "done"
        if self.sees == "claim":
            return Verdict(claims, "claims done" if claims else "does not claim done")
        known = view.items("known")
        if not known:
            return Verdict(False, "no items known")
        success = "shown" if self.sees == "transcript" else "succeeded"
        gaps = known & ~view.items(success) & ~view.items("skipped")
        if self.sees == "transcript":
            gaps |= known & view.items("failed") & ~view.items("skipped")
        if gaps:
            return Verdict(False, f"no recorded success: {view.named(gaps)}", gaps, True)
        if self.sees == "transcript" and not claims:
            return Verdict(False, "does not claim done", 0, True)
        return Verdict(True, "every item has a recorded success", 0, True)


@dataclass(frozen=True)
class evidence_over_time(Condition):
    """The looks of a check that errs, weighed together: met after enough passes in a row.

    Asked again after every nudge until it passes once, a check that is sometimes fooled passes by luck. Here
    ``of`` is the check and ``fooled`` the rate, *stated* and at most, at which it passes unfinished work.
    Each look is a bet (:class:`~evalkit.strategies.folds.Evidence`), and by Ville's inequality the
    probability that the bets ever stand at ``1 / alpha`` while the work is not done is ``alpha`` at most,
    however often it is looked and whatever decides when. How many passes that takes grows with the looks
    before, slowly. The price is paid on finished work: each look is a turn.

    It assumes that at each look unfinished work passes with probability ``fooled`` or less *whatever the
    looks before said*, and that what is done stays done. Errors that persist break it: work that fools the
    check at every look gathers evidence as finished work does, and false dones come at the rate of such work.
    Passes that do not begin within 64 looks are no evidence any more.

    After Cho and Sun, "When Should an AI Workflow Release?" (arXiv 2605.12947), with a check's stated rate in
    the place of a pool of failures; e-processes and their mixtures: Ramdas and others, "Game-theoretic
    statistics and safe anytime-valid inference" (arXiv 2210.01948). ValueError for rates that are none.
    """

    alpha: float = 0.05
    of: Condition = field(default_factory=verifier)
    fooled: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.of, Condition):
            raise ValueError(f"of is a condition, got {self.of!r}")
        for name in ("alpha", "fooled"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} is a probability above 0 and below 1, got {getattr(self, name)!r}")

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return self.of.finite

    @property
    def random(self) -> bool:  # type: ignore[override]
        return self.of.random

    @property
    def offers(self) -> Offered:  # type: ignore[override]
        return self.of.offers

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        return (*self.of.folds, self.evidence)

    @cached_property
    def evidence(self) -> Evidence:
        """What it remembers of the looks."""
        return Evidence(self.of, self.fooled, self.alpha)

    def __call__(self, view: View) -> Verdict:
        verdict = self.of(view)
        if not verdict.met:
            return verdict
        fold = self.evidence
        kept: Any = view.memory.get(fold.name) or fold.start(view.task)
        memory = fold.weigh(kept, True)
        against = f"evidence {fold.worth(memory):.3g} of {1 / self.alpha:.3g}"
        if not fold.enough(memory):
            return Verdict(False, f"{verdict.reason}, to be looked at again: {against}")
        return Verdict(True, f"{verdict.reason}; {against}", 0, verdict.names)


@dataclass(frozen=True)
class artifact(Condition):
    """The work left something behind: a commit, a diff, a file, a changed row."""

    finite = True

    def __call__(self, view: View) -> Verdict:
        if view.instruments.artifact():
            return Verdict(True, "there is an artifact")
        return Verdict(False, "there is no artifact")


@dataclass(frozen=True)
class certificate(Condition):
    """Each known item is bound to a recorded success that replays: read again, it is done.

    After "When May an Agent Stop?" (arXiv 2608.23623): a claim holds only with evidence that can be replayed.
    """

    finite = True
    folds: tuple[Fold, ...] = field(default=(KNOWN, SUCCEEDED, SKIPPED), repr=False, init=False)

    def __call__(self, view: View) -> Verdict:
        known = view.items("known")
        if not known:
            return Verdict(False, "no items known")
        claimed = known & ~view.items("skipped")
        unbound = claimed & ~view.items("succeeded")
        stale = 0
        for name, bit in view.task.vocabulary.items():
            if bit & claimed & ~unbound and not view.instruments.replays(name):
                stale |= bit
        if unbound | stale:
            reasons = []
            if unbound:
                reasons.append(f"no evidence for {view.named(unbound)}")
            if stale:
                reasons.append(f"the evidence does not replay for {view.named(stale)}")
            return Verdict(False, "; ".join(reasons), unbound | stale, True)
        return Verdict(True, "every claim has evidence that replays", 0, True)


# Why to give up


def _at_least_one(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is a whole number of at least 1, got {value!r}")


@dataclass(frozen=True)
class no_progress(Condition):
    """For ``turns`` model turns no call of a tool that changes anything has succeeded.

    For ``give_up_when``: the most common early stop. Reading, planning and reporting are no progress.
    """

    finite = True
    turns: int = 6

    def __post_init__(self) -> None:
        _at_least_one("turns", self.turns)

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        return (Idle(self.turns),)

    def __call__(self, view: View) -> Verdict:
        idle = view.items(Idle(self.turns).name)
        said = f"{idle} turns without an effect"
        return Verdict(idle >= self.turns, said if idle < self.turns else f"{said}, of {self.turns} allowed")


@dataclass(frozen=True)
class same_failure(Condition):
    """The same call has failed with the same answer ``times`` times, with no effect in between.

    For ``give_up_when``. A call that fails otherwise, or another one, begins a new count.
    """

    finite = True
    times: int = 3
    folds: tuple[Fold, ...] = field(default=(FAILURES,), repr=False, init=False)

    def __post_init__(self) -> None:
        _at_least_one("times", self.times)

    def __call__(self, view: View) -> Verdict:
        kept: Any = view.memory.get(FAILURES.name) or FAILURES.start(view.task)
        return Verdict(kept[1] >= self.times, f"the same failure {kept[1]} times in a row")


@dataclass(frozen=True)
class out_of_budget(Condition):
    """What is left of ``turns`` is less than ``each`` turn for every known item without a success or skip.

    For ``give_up_when``: the budget held against the work that is left, before it is spent.
    """

    turns: int = 40
    each: float = 1.0
    folds: tuple[Fold, ...] = field(default=(KNOWN, SUCCEEDED, SKIPPED), repr=False, init=False)

    def __post_init__(self) -> None:
        _at_least_one("turns", self.turns)
        if not self.each > 0:
            raise ValueError(f"each is a number of turns above 0, got {self.each!r}")

    def __call__(self, view: View) -> Verdict:
        items = view.items("known") & ~view.items("succeeded") & ~view.items("skipped")
        needed, left = items.bit_count() * self.each, self.turns - view.turns
        return Verdict(needed > left, f"{items.bit_count()} items are left for {left} turns", items, True)


@dataclass(frozen=True)
class when(Condition):
    """A condition from a plain function of the view, for signals of your own.

    ``finite`` declares that the function reads the turn, folds and instruments alone, not ``view.turns``.
    """

    test: Callable[[View], Verdict | bool]
    name: str = "when"
    finite: bool = False

    def __call__(self, view: View) -> Verdict:
        answer: object = self.test(view)
        if isinstance(answer, Verdict):
            return answer
        if not isinstance(answer, bool):
            found = f"{type(answer).__name__} {answer!r}"[:100]
            raise TypeError(f"{self.name} must answer with a bool or a Verdict, got {found}")
        return Verdict(answer, f"{self.name} is {'met' if answer else 'not met'}")
