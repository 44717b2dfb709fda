"""Conditions: each is one signal for "done". They compose with ``&``, ``|`` and ``~``.

A condition is a value without state of a run; one instance serves many runs at once. Its ``offers`` are the
channels it agrees with the model, its ``folds`` what it remembers of the run. What a condition is, how they
compose, and imperfect verifiers stand in modules beside this one; whoever writes strategies has all from
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evalkit.core.decisions import Verdict as Verdict
from evalkit.core.tasks import DEFAULT_OUTPUT, KEYWORD, Offered, occurs_whole
from evalkit.scenarios.output_schema import matches, schema_problem
from evalkit.strategies import wording
from evalkit.strategies.condition import All as All
from evalkit.strategies.condition import Any_ as Any_
from evalkit.strategies.condition import Condition as Condition
from evalkit.strategies.condition import Not as Not
from evalkit.strategies.condition import parts_of as parts_of
from evalkit.strategies.condition import when as when
from evalkit.strategies.folds import (
    FAILURES,
    KNOWN,
    LISTED_IN_CONVERSATION,
    SKIPPED,
    SUCCEEDED,
    TICKED,
    TICKED_IN_CONVERSATION,
    Fold,
    IdleTurns,
    KeywordSeen,
)
from evalkit.strategies.verifiers import evidence_over_time as evidence_over_time
from evalkit.strategies.verifiers import verifier as verifier
from evalkit.strategies.view import View


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
        reported = view.finish
        if reported is None:
            return Verdict(False, wording.NO_FINISH)
        if not self.validate:
            return Verdict(True, "finish called")
        known = view.items("known")
        if not known:
            return Verdict(False, wording.NOTHING_LISTED)
        accounted = view.task.items_of(reported.completed)
        if reported.reason:
            accounted |= view.task.items_of(reported.skipped)
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
        if not isinstance(self.word, str):
            raise ValueError(f"word is a text, got {self.word!r}")
        if not self.word.strip():
            raise ValueError("a keyword cannot be blank: it would match every text")
        if self.scope not in ("assistant", "any"):
            raise ValueError(f"scope is assistant or any, got {self.scope!r}")

    @property
    def offers(self) -> Offered:  # type: ignore[override]
        return Offered(keyword=self.word)

    @property
    def folds(self) -> tuple[Fold, ...]:  # type: ignore[override]
        return (KeywordSeen(self.word),) if self.scope == "any" else ()

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
        return (IdleTurns(self.turns),)

    def __call__(self, view: View) -> Verdict:
        idle = view.items(IdleTurns(self.turns).name)
        reason = f"{idle} turns without an effect"
        return Verdict(
            idle >= self.turns, reason if idle < self.turns else f"{reason}, of {self.turns} allowed"
        )


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
        memory: Any = view.memory.get(FAILURES.name) or FAILURES.start(view.task)
        return Verdict(memory[1] >= self.times, f"the same failure {memory[1]} times in a row")


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
