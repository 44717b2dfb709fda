"""Whether a twin is a twin: the model's output alike until the requests differ, the oracles not."""

from __future__ import annotations

from evalkit.core.decisions import Action, Verdict
from evalkit.core.requests import Result
from evalkit.core.turns import Turn
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode, run_episode
from evalkit.strategies.presets import PRESETS

_WORDS_ALONE = PRESETS["verifier_claim"].strategy


def twin_problem(one: Arena, other: Arena) -> str:
    """What keeps two scenarios from being twins with one set of channels; empty where nothing does."""
    heard_one, heard_other = _Heard(), _Heard()
    ideal_episode(one, 0, heard_one)
    ideal_episode(other, 0, heard_other)
    for number, (mine, theirs) in enumerate(zip(heard_one.turns, heard_other.turns, strict=False), 1):
        if mine != theirs:
            return f"the model's output differs in turn {number} after equal requests"
        if heard_one.requests[number - 1] != heard_other.requests[number - 1]:
            break
    # The ideal driver repeats no effect, so its own oracles agree where a repetition is the difference.
    first, second = (run_episode(arena, _WORDS_ALONE, 0).twin_oracle for arena in (one, other))
    if first == second:
        return "the oracles agree at the first claim, so there is nothing to tell apart"
    return ""


def words_tell(scenario: Scenario, twin: Scenario) -> bool:
    """Whether a reader of words alone is right about both."""
    return all(
        run_episode(Arena(half, _WORDS_ALONE.offers), _WORDS_ALONE, 0).twin for half in (scenario, twin)
    )


class _Heard:
    """Keeps each turn and what the harness made of it."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.requests: list[tuple[Action, tuple[Result, ...]]] = []

    def __call__(
        self, turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]
    ) -> None:
        if type(action).__name__ != "RunTools" and not turn.is_no_turn:
            self.turns.append(turn)
            self.requests.append((action, results))
