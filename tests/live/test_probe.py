"""The probe against a scripted provider: ``reachable`` is what the script says itself, where it can know.

It cannot know what a script does to the world behind the model's back: the provider here only talks.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.requests import FALLBACK_MODEL
from evalkit.core.tasks import Offered
from evalkit.models.ledger import Ledger
from evalkit.models.spending import LimitReached, Usage
from evalkit.runs.live import Live, Session
from evalkit.runs.medium import Medium
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.wire.episode import Episode as WireEpisode
from evalkit.wire.server import Server
from tests.helpers import scenario

LIST: Any = {"call": "list_items"}
PARTIAL: Any = {"say": "1 of 3 is done; two remain.", "claim": "partial"}
DONE: Any = {"say": "All items have been done.", "claim": "done"}

SCRIPTS: dict[str, list[Any]] = {
    "whole": [LIST, {"work": "rest"}, DONE],
    "stops with a report": [LIST, {"work": 1}, PARTIAL, {"work": "rest"}, DONE],
    "claims all after one": [LIST, {"work": 1}, DONE, {"work": "rest"}, DONE],
    "claims all after nothing": [DONE, {"work": "rest"}, DONE],
    "stops twice": [{"work": 1}, PARTIAL, {"work": 1}, PARTIAL, {"work": "rest"}, DONE],
    "stops at a fault that passes": [
        {"work": 1},
        PARTIAL,
        {"fault": {"status": 500}},
        {"work": "rest"},
        DONE,
    ],
    "never goes on": [{"work": 1}, {**DONE, "until": "never"}],
    "says it is blocked for ever": [
        {"work": 1},
        {"say": "I am blocked: nobody approves.", "claim": "blocked", "until": "never"},
    ],
    "refused for ever": [{"work": 1}, {"refuse": {}, "until": "never"}],
}
STRATEGIES = ("silence", "acceptance", "stop_hook", "turn_cap")
TURNS = 40


def live(model: list[Any], strategy: str, *, probe: int, ledger: Ledger | None = None) -> Episode:
    """An episode with a provider that plays the script."""
    loaded, chosen = scenario(model), PRESETS[strategy].strategy
    with Server() as server:
        stage = Arena(loaded, Offered()).stage(0, trace=False)
        url = server.url(server.add(WireEpisode(stage)))
        medium = Medium(
            model="openai-chat:scripted", base_url=url, max_tokens=10**9, probe=probe, fallback=FALLBACK_MODEL
        )
        with Session(medium, ledger or Ledger()) as session:
            return Live(medium, session)(Arena(loaded, chosen.offers), chosen, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_reachable_is_what_the_script_says(name: str, strategy: str) -> None:
    loaded, chosen = scenario(SCRIPTS[name]), PRESETS[strategy].strategy
    wanted = run_episode(Arena(loaded, chosen.offers), chosen, 0)
    found = live(SCRIPTS[name], strategy, probe=TURNS)
    truth = {"stuck": f"not_reached_in_{TURNS}", "spoiled": f"not_reached_in_{TURNS}"}
    assert (found.ending, found.truth) == (wanted.ending, truth.get(wanted.truth, wanted.truth))
    if wanted.truth == "reachable":
        assert (found.premature_stop, found.silent) == (wanted.premature_stop, wanted.silent)
    assert found.false_done == wanted.false_done


def test_both_truths_are_among_the_scripts() -> None:
    found = {live(model, "silence", probe=TURNS).truth for model in SCRIPTS.values()}
    assert found == {"complete", "reachable", f"not_reached_in_{TURNS}"}


def test_what_takes_more_turns_than_the_probe_has_is_not_reached_in_them() -> None:
    model = SCRIPTS["stops twice"]
    assert [live(model, "silence", probe=turns).truth for turns in (1, 2, 3)] == [
        *["not_reached_in_1", "not_reached_in_2"],
        "reachable",
    ]


def test_a_probe_that_the_limit_forbids_leaves_the_truth_open_and_the_episode_kept() -> None:
    class NoneForProbes(Ledger):
        """A limit that is reached when the episode ends."""

        def reserve(self, attempt: int, purpose: str, model: str, worst: Usage) -> int:
            if purpose == "probe":
                raise LimitReached("--max-tokens 1: 1 spent")
            return super().reserve(attempt, purpose, model, worst)

    ledger = NoneForProbes()
    episode = live(SCRIPTS["claims all after one"], "silence", probe=TURNS, ledger=ledger)
    assert (episode.ending, episode.truth, episode.premature_stop) == ("done", "incomplete", None)
    assert ledger.requests == episode.turns
    with pytest.raises(LimitReached):
        live(SCRIPTS["whole"], "acceptance", probe=0, ledger=Ledger(max_tokens=6_000))
