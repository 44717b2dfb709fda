"""A message of the run's user is one rule: an episode, and what `judge` says of its own recording, agree.

An ending before the message stands as a decision and the conversation goes on, the count of nudges starts
anew, and turns after it are counted anew. So the same strategy, asked of the recording of its own episode,
ends at the same turn in the same way, having decided the same at every end of turn.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from evalkit.core.decisions import Action, RunTools, Send, Verdict
from evalkit.core.events import Event, UserWrites
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.drivers.in_process import LoopMind
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.moves import UserMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.judging.judge import judge
from evalkit.transcripts.judging.outcome import outcome_of
from evalkit.transcripts.recording import Conversation, Label, Recording
from evalkit.transcripts.replay import Replay
from tests.transcripts.test_exactness import STRATEGIES

#: Fifteen turns of talk, each asked for by the user, after everything was done.
LONG = """
scenario: fifteen-turns-of-talk
family: user_turns
task: {prompt: Fill every jar., done_when: Every jar is filled.}
world: {kind: items, items: [jar-red]}
model:
  - work: rest
  - {say: "It is filled.", claim: done}
""" + "".join(
    f"""  - user: {{text: "Question {number}?"}}
  - {{say: "Answer {number}.", claim: none}}
"""
    for number in range(15)
)


def recorded_talk(
    scenario: Scenario, strategy: Strategy, seed: int, patch: pytest.MonkeyPatch
) -> tuple[Episode, Recording]:
    """An episode, and what a recorder beside it would have kept: turns, results, nudges, the user's words."""
    conversation = Conversation()
    conversation.user(scenario.task.prompt)
    nudge: list[str] = []
    running = False

    def watch(turn: Turn, action: Action, verdict: Verdict | None, ran: tuple[Result, ...]) -> None:
        nonlocal running
        conversation.user("\n".join(nudge), "harness") if nudge else None
        nudge.clear()
        if not running:
            conversation.turn(turn)
        running = isinstance(action, RunTools)
        for result in ran if running else ():
            conversation.result(result.id, result.text, result.error)
        if isinstance(action, Send) and action.text is not None and verdict is not None:
            nudge.append(action.text)

    heard = LoopMind.event

    def event(mind: LoopMind, happened: Event) -> None:
        if isinstance(happened, UserWrites):
            # A user who writes at an end of turn is heard in place of a nudge, and beside it.
            conversation.user(happened.text)
            nudge.clear()
        heard(mind, happened)

    patch.setattr(LoopMind, "event", event)
    episode = run_episode(Arena(scenario, Offered()), strategy, seed, watch)
    ending: Any = episode.ending if episode.ending in ("done", "escalated", "limit", "error") else "unknown"
    recording = conversation.recording("r", "r", "scripted", (ending, episode.native))
    return episode, msgspec.structs.replace(recording, label=Label(episode.truth == "complete", "", None))


def _asked_at_ends(scenario: Scenario) -> bool:
    """Whether all that happens from outside is a user who writes at an end of turn and asks for no limit."""
    events = [move for move in walk(scenario.moves) if isinstance(move, UserMove)]
    plain = all(move.user.when == "ended" and not move.user.closes for move in events)
    return bool(events) and plain and scenario.events == ("user",) and scenario.limits.per == "episode"


def _conversations() -> list[Scenario]:
    found = load_suites(("user_turns", "population-many-questions"))
    return [*load_text(LONG), *filter(_asked_at_ends, found)]


def test_an_episode_and_its_recording_are_decided_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    for scenario, strategy, seed in itertools.product(_conversations(), STRATEGIES.values(), range(4)):
        with monkeypatch.context() as patch:
            episode, recording = recorded_talk(scenario, strategy, seed, patch)
        stop = judge(Replay(recording, lambda turn: turn.claim), strategy)
        assert (stop.ending, stop.turn) == (episode.ending, episode.turns), (scenario.name, strategy.name)
        compared += 1
    assert compared >= 50


def test_silence_does_not_end_a_conversation_at_its_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    (talk,) = load_text(LONG)
    with monkeypatch.context() as patch:
        episode, recording = recorded_talk(talk, STRATEGIES["silence"], 0, patch)
    stop = judge(Replay(recording, lambda turn: turn.claim), STRATEGIES["silence"])
    assert episode.outcome == "done/complete"
    assert (stop.ending, stop.turn, len(stop.ended)) == ("done", 17, 16)


def test_turns_that_the_user_asked_for_are_no_over_continuation_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifteen answers after the work was complete: by scoring and by `judge`, nobody went on for nothing."""
    (talk,) = load_text(LONG)
    with monkeypatch.context() as patch:
        episode, recording = recorded_talk(talk, STRATEGIES["silence"], 0, patch)
    recording = msgspec.structs.replace(recording, label=Label(True, "", 1, by="state"))
    replay = Replay(recording, lambda turn: turn.claim)
    judged = outcome_of(recording, replay, "silence", judge(replay, STRATEGIES["silence"]))
    assert (episode.over_continuation, judged.over_continuation) == (False, False)
    assert (episode.excess_turns, judged.excess_turns) == (0, 0)
