"""Where a scripted crash kills the worker, and that its work is done once all the same."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.stage.stage import Stage
from evalkit.strategies.presets import PRESETS
from tests.helpers import scenario

ITEMS = {"once": True}
LEDGER = {"kind": "ledger", "items": ["pay-a", "pay-b", "pay-c"]}
DONE = {"say": "Done.", "claim": "done"}


def worked(model: list[Any], strategy: str, **fields: Any) -> tuple[Episode, list[tuple[int, int, bool]]]:
    """The worker's episode, and at each crash the turns, the effects, and whether a call was answered."""
    stages: list[Stage] = []
    seen: list[tuple[int, int, bool]] = []

    def watch(stage: Stage) -> Stage:
        stages.append(stage)
        return stage

    def on_crash() -> None:
        stage = stages[0]
        seen.append((stage.turns, sum(stage.world.effects.values()), bool(stage.ran)))

    chosen = PRESETS[strategy].strategy
    arena = Arena(scenario(model, **fields), chosen.offers)
    return run_worker_episode(arena, chosen, 0, watch=watch, on_crash=on_crash), seen


@pytest.mark.parametrize("world", [ITEMS, LEDGER], ids=["items", "ledger"])
@pytest.mark.parametrize(
    ("crash", "turns", "effects", "answered"),
    [
        (True, 2, 1, False),
        ({"at": "tool"}, 2, 1, False),
        ({"at": "tool", "before": True}, 2, 0, False),
        ({"at": "answered"}, 2, 1, True),
        ({"at": "request"}, 2, 1, True),
        ({"at": "reply"}, 3, 1, False),
    ],
)
def test_each_moment(world: dict[str, Any], crash: Any, turns: int, effects: int, answered: bool) -> None:
    lists = {"call": "list_payments" if "kind" in world else "list_items"}
    model = [lists, {"work": 1}, {"crash": crash}, {"work": "rest"}, DONE]
    episode, crashes = worked(model, "acceptance", world=world)
    assert crashes == [(turns, effects, answered)]
    assert (episode.outcome, episode.turns, episode.duplicate_effects) == ("done/complete", 5, 0)


def test_after_its_ending() -> None:
    model = [
        {"call": "list_items"},
        {"work": 1},
        {"say": "The first is done.", "claim": "done"},
        {"crash": {"at": "ended"}},
        {"user": {"text": "Do the others too."}},
        {"work": "rest"},
        DONE,
    ]
    episode, crashes = worked(model, "silence", world=ITEMS)
    assert [turns for turns, _, _ in crashes] == [3]
    assert (episode.outcome, episode.decisions) == ("done/complete", (1, 1, 0, 0))


def test_one_after_words_alone_comes_with_the_next_request() -> None:
    model = [{"call": "list_items"}, {"say": "So."}, {"crash": True}, {"work": "rest"}, DONE]
    episode, crashes = worked(model, "acceptance", world=ITEMS)
    assert [turns for turns, _, _ in crashes] == [2]
    assert episode.outcome == "done/complete"
