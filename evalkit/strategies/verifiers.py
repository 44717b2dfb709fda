"""Imperfect readers of a run: a verifier with assumed error rates, and evidence over repeated looks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Offered
from evalkit.strategies.condition import Condition, condition_of
from evalkit.strategies.folds import (
    FAILED,
    KNOWN,
    SHOWN,
    SKIPPED,
    SUCCEEDED,
    Evidence,
    Fold,
)
from evalkit.strategies.view import View

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
        verdict = self._ideal_verdict(view)
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

    def _ideal_verdict(self, view: View) -> Verdict:
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
        try:
            object.__setattr__(self, "of", condition_of(self.of))
        except ValueError as error:
            raise ValueError(f"of: {error}") from None
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
        before: Any = view.memory.get(fold.name) or fold.start(view.task)
        memory = fold.weigh(before, True)
        against = f"evidence {fold.e_value(memory):.3g} of {1 / self.alpha:.3g}"
        if not fold.suffices(memory):
            return Verdict(False, f"{verdict.reason}, to be looked at again: {against}")
        return Verdict(True, f"{verdict.reason}; {against}", 0, verdict.names)
