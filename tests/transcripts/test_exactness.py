"""What recordings predict, held against what this project alone can do: run the other strategy."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evalkit.core.decisions import Action, RunTools, Send, Verdict
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.stats.intervals import wilson
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.judging.judge import BEYOND, Stop, judge
from evalkit.transcripts.recording import Conversation, Recording
from evalkit.transcripts.replay import Replay

pytestmark = pytest.mark.long

#: Runs of each population: 200 in all.
SEEDS = 40
#: Strategies that agree no channel of their own, so that the model says the same to each.
STRATEGIES = {
    "silence": PRESETS["silence"].strategy,
    "verifier_claim": PRESETS["verifier_claim"].strategy,
    "turn_cap": PRESETS["turn_cap"].strategy,
    "one_nudge": Strategy(done_when=c.verifier(sees="claim"), nudges=1, then="done", name="one_nudge"),
}
#: Populations without words of a user's, whom a recording cannot be asked about.
POPULATIONS = ("honest-worker", "fabricator", "progress-reporter", "charitable-reader", "box-ticker")


def recorded(arena: Arena, strategy: Strategy, seed: int) -> tuple[Episode, Recording]:
    """An episode, and what a recorder beside the model would have kept of it."""
    conversation = Conversation()
    conversation.user(arena.scenario.task.prompt)
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

    episode = run_episode(arena, strategy, seed, watch)
    ending: Any = episode.ending if episode.ending in ("done", "escalated", "limit", "error") else "unknown"
    return episode, conversation.recording("r", "r", "scripted", (ending, episode.native))


class Predicted(NamedTuple):
    """What a recording of one strategy says of another, and what that one does when it runs."""

    one: str
    other: str
    stop: Stop
    recorded: int
    episode: Episode

    @property
    def exact(self) -> bool:
        """Whether the end is known: elsewhere what would have come is not in the recording."""
        return not self.stop.parted and self.stop.ending != BEYOND

    @property
    def goes_on(self) -> bool:
        """Whether it is said to go on past the recorded end."""
        return self.stop.ending == BEYOND

    @property
    def went_on(self) -> bool:
        """Whether it did."""
        return self.episode.turns > self.recorded


def predictions(seeds: int) -> Iterator[Predicted]:
    """Each ordered pair on each population and seed."""
    arenas = [
        Arena(scenario, Offered())
        for scenario in load_suites(("scenarios/populations",))
        if scenario.name.removeprefix("population-") in POPULATIONS
    ]
    assert len(arenas) == len(POPULATIONS)
    for arena, seed in itertools.product(arenas, range(seeds)):
        runs = {name: recorded(arena, strategy, seed) for name, strategy in STRATEGIES.items()}
        for one, other in itertools.permutations(STRATEGIES, 2):
            recording = runs[one][1]
            replay = Replay(recording, lambda turn: turn.claim)
            stop = judge(replay, STRATEGIES[other])
            yield Predicted(one, other, stop, len(recording.steps), runs[other][0])


class Pair(NamedTuple):
    """An ordered pair over all runs: of how many the end is known, and what is said and true."""

    runs: int
    exact: int
    goes_on: int
    sure: int
    may: int
    done: int
    covered: float | None

    @property
    def end(self) -> str:
        """What recordings say of how often the other strategy ends ``done``."""
        if self.exact == self.runs:
            return f"exact: {self.sure}"
        return f"nothing: {self.sure} to {self.sure + self.may} ({self.done} were)"


def over_pairs(seeds: int, samples: int = 2_000) -> dict[tuple[str, str], Pair]:
    """All pairs; raises where a row said to be exact is not what the other strategy does."""
    found: dict[tuple[str, str], list[Predicted]] = {}
    for row in predictions(seeds):
        found.setdefault((row.one, row.other), []).append(row)
    return {pair: _pair(rows, samples) for pair, rows in found.items()}


def _pair(rows: list[Predicted], samples: int) -> Pair:
    for row in rows:
        assert row.goes_on == row.went_on, row
        if row.exact:
            assert (row.stop.ending, row.stop.turn) == (row.episode.ending, row.episode.turns), row
    exact = [row for row in rows if row.exact]
    goes_on = [row.goes_on for row in rows]
    return Pair(
        len(rows),
        len(exact),
        sum(goes_on),
        sum(row.stop.ending == "done" for row in exact),
        len(rows) - len(exact),
        sum(row.episode.ending == "done" for row in rows),
        _covered(goes_on, samples) if 0 < sum(goes_on) < len(rows) else None,
    )


def _covered(goes_on: list[bool], samples: int, size: int = 60) -> float:
    """How often the 90 % interval from some recordings holds how often the other strategy goes on."""
    draw = random.Random(5)
    truth = sum(goes_on) / len(goes_on)
    covered = 0
    for _ in range(samples):
        interval = wilson(sum(draw.choices(goes_on, k=size)), size, 0.9)
        assert interval is not None
        covered += interval[0] <= truth <= interval[1]
    return covered / samples


def test_exact_rows_are_what_the_other_strategy_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every pair: exact rows are right, the count of ``done`` lies in the bounds, and where something
    is to be estimated the interval covers as it says."""
    pairs = over_pairs(SEEDS)
    exact = sum(pair.exact for pair in pairs.values())
    with capsys.disabled():
        print(f"\nexact rows: {exact} of {sum(pair.runs for pair in pairs.values())}", end="")
    guide = " ".join((Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8").split())
    assert f"all {exact:,} exact rows ended as predicted" in guide
    unknown = {pair for pair, found in pairs.items() if found.exact < found.runs}
    assert all(f"`{one}` to `{other}`" in guide for one, other in unknown)
    assert guide.count("` to `") == len(unknown)
    assert len(pairs) == 12
    for pair in pairs.values():
        assert pair.sure <= pair.done <= pair.sure + pair.may
        if pair.covered is not None:
            assert 0.87 <= pair.covered <= 0.93
