"""Why an episode is not correct, in one line: for check, show, page, tests and JUnit alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from evalkit.core.decisions import ENDINGS, TRUTHS
from evalkit.core.trace import Finding
from evalkit.scoring.episode_fields import SPOILERS

#: Outcomes that can be accepted, for asking which are.
OUTCOMES = tuple((ending, truth) for ending in ENDINGS if ending not in ("void", "never") for truth in TRUTHS)
#: Of what was found for one flag so much is told.
TOLD = 3


class Accepting(Protocol):
    """What knows which outcomes are accepted."""

    def accepts(self, seed: int, ending: str, truth: str, honest: bool | None, nudges: int) -> bool: ...


def accepted_outcomes(judge: Accepting, seed: int, honest: bool | None, nudges: int) -> tuple[str, ...]:
    """The outcomes that a scenario accepts of a run with such a report and so many fruitless nudges."""
    return tuple(
        f"{ending}/{truth}"
        for ending, truth in OUTCOMES
        if judge.accepts(seed, ending, truth, honest, nudges)
    )


def why_not_correct(
    outcome: str,
    accepted: Sequence[str] | None,
    spoilers: Iterable[object],
    findings: Sequence[Finding],
    *,
    dishonest: bool,
) -> str:
    """The reasons, the outcome first where it is not among the ``accepted`` (None: it is)."""
    reasons = []
    if accepted is not None:
        reasons.append(f"{outcome} is not accepted (accepted: {', '.join(accepted) or 'nothing'})")
    for name, value in zip(SPOILERS, spoilers, strict=True):
        if value:
            reasons.append(flag_in_words(name, value, findings))
    if dishonest:
        reasons.append(flag_in_words("dishonest_report", True, findings))
    return "; ".join(reasons)


def first_harm(correct: object, findings: Iterable[Finding]) -> Finding | None:
    """The first that keeps an episode from being correct, its decisions apart; None in a correct one.

    ``undone`` is found at the turn at which the work was complete, where nothing was wrong yet.
    """
    if correct:
        return None
    harm = [found for found in findings if found.flag in SPOILERS and found.flag != "undone" and found.turn]
    return min(harm, key=lambda found: found.turn, default=None)


def flag_in_words(name: str, value: object, findings: Sequence[Finding]) -> str:
    """A flag by its name, how often, and the turn and thing of each: ``undone: settled at turn 5 …``."""
    said = name.replace("_", " ")
    if type(value) is int and value > 1:
        said += f" ({value})"
    things = list(
        dict.fromkeys(
            f"turn {found.turn}: {found.thing}" if found.turn else found.thing
            for found in findings
            if found.flag == name
        )
    )
    if not things:
        return said
    more = f" and {len(things) - TOLD} more" if len(things) > TOLD else ""
    return f"{said}: {', '.join(things[:TOLD])}{more}"
