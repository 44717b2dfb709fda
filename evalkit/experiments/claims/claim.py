"""A claim, the experiment on it, and what the experiment found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from evalkit.experiments.claims.bench import Bench
from evalkit.experiments.claims.number import Number

Verdict: TypeAlias = Literal["shown", "example", "construction", "not shown", "outside"]
VERDICTS: dict[Verdict, str] = {
    "shown": "shown",
    "example": "shown by single scenarios",
    "construction": "true by construction",
    "not shown": "not shown",
    "outside": "outside what scripted models can say",
}


class Finding(msgspec.Struct, frozen=True):
    """What an experiment found. ``note`` says what the verdict leaves out."""

    numbers: tuple[Number, ...]
    shown: bool
    note: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A claim of a seed or paper in our own words, and the experiment on it; None where none is possible.

    ``rule`` says what must be found for it to count as shown, before anything is run; without an experiment,
    why there is none. ``construction`` says what of the outcome follows from how evalkit defines its words or
    writes its populations: such a claim is illustrated, not tested.
    """

    id: str
    source: str
    says: str
    experiment: str
    rule: str
    run: Callable[[Bench], Finding] | None = None
    construction: str = ""


class Result(msgspec.Struct, frozen=True):
    """A claim with its finding. ``alone``: the written scenarios without any one of which it is not shown."""

    claim: Claim
    finding: Finding | None
    alone: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """How the claim came out."""
        if self.finding is None:
            return "outside"
        if not self.finding.shown:
            return "not shown"
        if self.claim.construction:
            return "construction"
        return "example" if self.alone else "shown"
