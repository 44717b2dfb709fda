"""What recordings predict, held against what this project alone can do: run the other strategy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from evalkit.core.decisions import Action, RunTools, Send, Verdict
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.judge import BEYOND, Stop, judge
from evalkit.transcripts.recording import Conversation, Recording
from evalkit.transcripts.replay import Replay

#: Strategies that agree no channel of their own, so that the model says the same to each.
STRATEGIES = {
    "silence": PRESETS["silence"].strategy,
    "verifier_claim": PRESETS["verifier_claim"].strategy,
    "turn_cap": PRESETS["turn_cap"].strategy,
    "one_nudge": Strategy(done_when=c.verifier(sees="claim"), nudges=1, then="done", name="one_nudge"),
}
#: Populations without words of a user's, whom a recording cannot be asked about.
POPULATIONS = ("honest-worker", "fabricator", "progress-reporter", "charitable-reader", "box-ticker")


def recorded(scenario: Scenario, strategy: Strategy, seed: int) -> tuple[Episode, Recording]:
    """An episode, and what a recorder beside the model would have kept of it."""
    conversation = Conversation()
    conversation.user(scenario.task.prompt)
    running = False

    def watch(turn: Turn, action: Action, verdict: Verdict | None, ran: tuple[Result, ...]) -> None:
        nonlocal running
        if not running:
            conversation.turn(turn)
        # A turn with calls is told twice: when they run, and when they have.
        running = isinstance(action, RunTools)
        for result in ran if running else ():
            conversation.result(result.id, result.text, result.error)
        if isinstance(action, Send) and action.text is not None and verdict is not None:
            conversation.user(action.text, "harness")

    episode = run_episode(Arena(scenario, Offered()), strategy, seed, watch)
    ending: Any = episode.ending if episode.ending in ("done", "escalated", "limit", "error") else "unknown"
    return episode, conversation.recording("r", "r", "scripted", (ending, episode.native))


def pairs(seeds: int) -> Iterator[tuple[str, str, Stop, Episode]]:
    """What recordings of each strategy say of each other one, and what that one does."""
    scenarios = [
        scenario
        for scenario in load_suites(("scenarios/populations",))
        if scenario.name.removeprefix("population-") in POPULATIONS
    ]
    assert len(scenarios) == len(POPULATIONS)
    for scenario, seed in itertools.product(scenarios, range(seeds)):
        runs = {name: recorded(scenario, strategy, seed) for name, strategy in STRATEGIES.items()}
        for one, other in itertools.permutations(STRATEGIES, 2):
            replay = Replay(runs[one][1], lambda turn: turn.claim)
            yield one, other, judge(replay, STRATEGIES[other]), runs[other][0]


def test_exact_rows_are_what_the_other_strategy_does(capsys: pytest.CaptureFixture[str]) -> None:
    exact = right = bounded = 0
    counts: dict[tuple[str, str], list[int]] = {}
    for one, other, stop, episode in pairs(seeds=8):
        count = counts.setdefault((one, other), [0, 0, 0])
        done = episode.ending == "done"
        count[1] += done
        if stop.parted or stop.ending == BEYOND:
            # It would have said something else, or gone on: what would have come is not in the recording.
            bounded += 1
            count[2] += 1
            continue
        exact += 1
        right += (stop.ending, stop.turn) == (episode.ending, episode.turns)
        count[0] += stop.ending == "done"
    with capsys.disabled():
        print(f"\nexact rows: {right} of {exact} as the strategy ran; {bounded} bounded", end="")
    assert exact > 100
    assert right == exact
    for (one, other), (sure, happened, may) in counts.items():
        assert sure <= happened <= sure + may, (one, other)
