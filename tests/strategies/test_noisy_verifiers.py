"""Strategies whose verifier errs at an assumed rate."""

from __future__ import annotations

import pytest

from evalkit.strategies import conditions as c
from evalkit.strategies.noisy_verifiers import SWEPT, has_verifier, split_name, swept_names, with_sweeps
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import StrategyError, find_strategy
from tests.helpers import play, scenario

EARLY = [
    {"call": "list_items"},
    {"work": 1},
    {"say": "On it.", "claim": "partial"},
    {"work": "rest"},
    {"say": "Done.", "claim": "done"},
]


def test_a_name_and_its_rates() -> None:
    assert split_name("gate") == ("gate", {})
    assert split_name("gate@misses=0.1,fooled=0.05") == ("gate", {"misses": 0.1, "fooled": 0.05})
    assert split_name("folder@home/mine.yaml") == ("folder@home/mine.yaml", {})


@pytest.mark.parametrize("name", ["gate", "unattended", "checks_first", "verifier_claim"])
def test_every_verifier_within_errs(name: str) -> None:
    strategy = find_strategy(f"{name}@misses=0.25")
    assert strategy.random
    assert not find_strategy(name).random
    assert "misses=0.25" in repr(strategy.done_when)
    assert strategy.name == f"{name}@misses=0.25"
    assert strategy.but(name=name, done_when=find_strategy(name).done_when) == find_strategy(name)


def test_under_not() -> None:
    assert has_verifier(~(c.silence() & c.verifier()))
    assert not has_verifier(~c.silence())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("silence@misses=0.1", "no verifier"),
        ("gate@misses=lots", "a probability"),
        ("gate@misses=2", "a probability"),
        ("gate@misses=0.1,misses=0.2", "misses"),
        ("nobody@misses=0.1", "unknown strategy 'nobody'"),
    ],
)
def test_bad_names(name: str, said: str) -> None:
    with pytest.raises(StrategyError, match=said):
        find_strategy(name)


def test_a_sweep_is_of_those_that_ask_a_verifier() -> None:
    names = with_sweeps({name: PRESETS[name].strategy for name in ("silence", "gate")})
    assert names == ("silence", "gate", *swept_names("gate"))
    assert len(swept_names("gate")) == 2 * len(SWEPT)


def test_certain_errors_decide() -> None:
    fooled = play(scenario(EARLY), find_strategy("verifier_claim@fooled=1"))
    assert (fooled.outcome, fooled.turns) == ("done/reachable", 3)
    missed = play(scenario(EARLY), find_strategy("verifier_claim@misses=1"))
    assert missed.outcome == "escalated/complete"
    assert play(scenario(EARLY), "verifier_claim").outcome == "done/complete"


def test_rates_are_about_what_they_say() -> None:
    strategy = find_strategy("verifier_claim@fooled=0.3")
    ended = [play(scenario(EARLY), strategy, seed).turns == 3 for seed in range(200)]
    assert 0.2 < sum(ended) / 200 < 0.4
