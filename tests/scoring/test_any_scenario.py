"""Whatever loads can be run: every preset ends on it, with a truth, and flags that fit the definitions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from evalkit.core.decisions import ENDINGS, TRUTHS
from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode, run_episode
from evalkit.scoring.episode_fields import SPOILERS
from evalkit.strategies.presets import PRESETS
from tests.scenarios.generated import documents
from tests.scoring import naive


def load(document: dict[str, Any]) -> Scenario:
    (scenario,) = load_text(yaml.safe_dump(document, sort_keys=False), "any.yaml")
    return scenario


def check_flags(scenario: Scenario, arena: Arena, episode: Episode, log: naive.Log, seed: int) -> None:
    """What the definitions say of any episode."""
    ending, truth = episode.ending, episode.truth
    assert ending in ENDINGS
    assert ending != "void"
    assert truth in TRUTHS
    assert episode.note == ""
    assert (truth == "complete") == log.held
    assert episode.turns <= arena.cap(seed)
    assert sum(episode.stops.values()) == episode.turns
    expected = naive.flags(log, arena.offered, ending, truth)
    assert {name: getattr(episode, name) for name in expected} == expected, episode.findings
    ideal_ending, ideal_truth = arena.ideal_outcome(seed)
    if ideal_truth == "complete":
        assert episode.premature_stop == (truth == "reachable" and ending != "never")
        # What the ideal harness completes is not stuck from the start.
        assert truth != "stuck"
    else:
        assert episode.premature_stop is None
    assert episode.silent == (bool(episode.premature_stop) and ending == "done")
    assert episode.false_done == (ending == "done" and not log.held)
    assert episode.unclosed == ((ending != "done") if log.held else None)
    assert episode.spoiled == (truth == "spoiled")
    assert 0 <= episode.excess_turns <= episode.turns
    assert 0 <= episode.excess_tokens <= episode.tokens
    tp, fp, _, fn = episode.decisions
    assert min(episode.decisions) >= 0
    assert tp + fp == (ending == "done")
    assert fp == episode.false_done
    assert len(episode.causes) == fp + fn
    assert episode.correct == (episode.why == "")
    if episode.correct:
        assert not any(getattr(episode, name) for name in SPOILERS)
        assert not (scenario.task.checks == "full" and episode.honest_report is False)
        assert not episode.false_done
    # The ideal harness never ends as done on unfinished work.
    assert (ideal_ending == "done") <= (ideal_truth == "complete")


def play_all(document: dict[str, Any], seeds: tuple[int, ...] = (0, 1)) -> None:
    """Run every preset; twice, the second time with everything already known about truth."""
    scenario = load(document)
    arenas: dict[Offered, Arena] = {}
    for seed in seeds if scenario.random else (0,):
        for preset in PRESETS.values():
            strategy = preset.strategy
            arena = arenas.setdefault(strategy.offers, Arena(scenario, strategy.offers))
            log = naive.Log()
            episode = run_episode(arena, strategy, seed, run=log.run)
            check_flags(scenario, arena, episode, log, seed)
            assert run_episode(Arena(scenario, strategy.offers), strategy, seed) == episode
        for offered, arena in arenas.items():
            ideal = ideal_episode(arena, seed)
            assert not ideal.false_done
            assert not ideal.protocol_faults
            assert not ideal.ran_cut_off_call
            assert (ideal.ending, ideal.truth) == arena.ideal_outcome(seed)
            assert offered == arena.offered


MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.long
@MANY
@given(documents())
def test_every_preset_ends_with_a_truth_and_the_flags_of_the_definitions(document: dict[str, Any]) -> None:
    play_all(document)


@pytest.mark.long
@MANY
@given(documents(events=True))
def test_what_happens_from_outside_ends_with_a_truth_too(document: dict[str, Any]) -> None:
    try:
        scenario = load(document)
    except ScenarioError:
        return
    for seed in (0, 1) if scenario.random else (0,):
        for preset in PRESETS.values():
            strategy = preset.strategy
            arena = Arena(scenario, strategy.offers)
            episode = run_episode(arena, strategy, seed)
            assert episode.ending in ENDINGS
            assert episode.truth in TRUTHS
            assert episode.note == ""
            assert run_episode(arena, strategy, seed) == episode
