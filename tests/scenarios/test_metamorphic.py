"""Changes that must not change a decision: batch or single, the order of answers, faults, noise."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from evalkit.core.requests import Result
from evalkit.core.tasks import CHECKLIST_TOOL
from evalkit.core.turns import Call
from evalkit.loop.state import Loop, start
from evalkit.loop.transitions import on_results
from evalkit.scenarios.emissions import DELEGATE_TOOL
from evalkit.scenarios.moves import FaultMove, FaultSpec
from evalkit.scenarios.scenario import walk
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.folds import Ran
from evalkit.strategies.presets import PRESETS
from tests.helpers import document, library, play, scenario

LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}
#: Scripts of work alone, which may be done in batches or one by one.
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "honest": [LIST, {"work": "rest"}, DONE],
    "report": [LIST, {"work": 1}, {"say": "One.", "claim": "partial"}, {"work": "rest"}, DONE],
    "fabricated": [LIST, {"work": "rest", "reply": {"effect": "none"}}, {**DONE, "until": "named"}, DONE],
    "forgotten": [LIST, {"work": 2}, {**DONE, "until": "named"}, {"work": "rest"}, DONE],
    "stuck": [LIST, {"work": 2}, {"say": "I cannot.", "claim": "blocked", "until": "never"}],
}


def outcome(episode: Episode) -> tuple[object, ...]:
    return episode.outcome, episode.correct, episode.false_done, episode.premature_stop


@pytest.mark.parametrize("name", list(PRESETS))
@pytest.mark.parametrize("script", SCRIPTS)
def test_batch_and_single_are_judged_alike(script: str, name: str) -> None:
    single = scenario(SCRIPTS[script])
    batch = scenario([{**move, "parallel": True} if "work" in move else move for move in SCRIPTS[script]])
    assert outcome(play(single, name)) == outcome(play(batch, name))


@pytest.mark.parametrize("name", list(PRESETS))
def test_the_order_in_which_tools_end_changes_nothing(name: str) -> None:
    """Three items, one of which fails, a hand-off and a tick: the loop remembers the same in any order."""
    strategy = PRESETS[name].strategy
    task = Arena(scenario([DONE]), strategy.offers).task(0)
    does = task.tools["do_item"]
    ran = [
        Ran(
            Call(str(bit), "do_item", f'{{"item":"{item}"}}'),
            Result(str(bit), item, item == "orders"),
            does,
            bit,
        )
        for item, bit in task.vocabulary.items()
    ]
    ran.append(Ran(Call("h", DELEGATE_TOOL, '{"name":"child"}'), Result("h", "back")))
    ran.append(Ran(Call("t", CHECKLIST_TOOL, '{"done":["users"]}'), Result("t", "recorded")))
    loop, state = Loop(strategy, task), start(strategy, task)
    assert len({on_results(loop, state, order) for order in itertools.permutations(ran)}) == 1


WITHOUT_FAULTS = [
    loaded
    for loaded in library()
    if loaded.world.kind in ("items", "ledger")
    and not loaded.events
    and loaded.limits.tokens is None
    and loaded.limits.usd is None
    and loaded.twin is None
    and not loaded.random
    and not any(isinstance(move, FaultMove) for move in walk(loaded.moves))
]


@pytest.mark.parametrize("place", range(8))
def test_a_fault_before_any_move_changes_nothing(place: int) -> None:
    """Retried requests are the same requests: outcome, effects and turns stay, wherever the API fails."""
    fault = FaultMove(fault=FaultSpec(status=529))
    for number, loaded in enumerate(WITHOUT_FAULTS[place::8]):
        at = (place + number) % len(loaded.moves)
        failing = msgspec.structs.replace(loaded, moves=(*loaded.moves[:at], fault, *loaded.moves[at:]))
        for name in ("silence", "gate"):
            strategy = PRESETS[name].strategy
            usual = run_episode(Arena(loaded, strategy.offers), strategy, 0)
            other = run_episode(Arena(failing, strategy.offers), strategy, 0)
            assert outcome(other) == outcome(usual), (loaded.name, at)
            assert (other.turns, other.duplicate_effects) == (usual.turns, usual.duplicate_effects)


@pytest.mark.parametrize("name", list(PRESETS))
def test_noise_around_tool_output_changes_nothing(name: str) -> None:
    for script in SCRIPTS.values():
        plain = document(script)
        noisy = document(script, world={"noise": "warning: nothing to see"})
        assert plain["world"] != noisy["world"]
        quiet = play(scenario(script), name)
        loud = play(scenario(script, world={"noise": "warning: nothing to see"}), name)
        assert outcome(quiet) == outcome(loud)
