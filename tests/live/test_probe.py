"""The probe against a scripted provider: ``reachable`` is what the script says itself, where it can know.

It cannot know what a script does to the world behind the model's back, for the provider here only talks; nor
what a script means otherwise than its words are read. Refusals that the limiter waits out are no faults live,
and a conversation that was shortened is to a script that is not told one begun anew.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.channels import skip_told
from evalkit.core.requests import FALLBACK_MODEL
from evalkit.core.tasks import Task
from evalkit.core.turns import Turn, make_turn
from evalkit.media.live import Live, Session
from evalkit.media.medium import PROVIDERS, Medium, unplayable
from evalkit.models.ledger import Ledger
from evalkit.models.pacing import BUSY
from evalkit.models.spending import LimitReached, Usage
from evalkit.scenarios.moves import DelegateMove, FaultMove, RawMove, TruncateMove, WaitMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.claim_reader import read_claim, read_skips
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.wire.episode import WireEpisode
from evalkit.wire.expressible import not_expressible
from evalkit.wire.server import Server
from tests.helpers import library, scenario

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


def played(
    loaded: Scenario,
    strategy: Strategy,
    *,
    probe: int = TURNS,
    ledger: Ledger | None = None,
    provider: str = "openai-chat",
) -> Episode:
    """An episode with a provider that plays the script."""
    with Server(stall_scale=0.0) as server:
        stage = Arena(loaded, strategy.offers).stage(0, trace=False)
        medium = Medium(
            model=f"{provider}:scripted",
            base_url=server.url(server.add(WireEpisode(stage))),
            max_tokens=10**9,
            probe=probe,
            fallback=FALLBACK_MODEL,
        )
        with Session(medium, ledger or Ledger()) as session:
            return Live(medium, session)(Arena(loaded, strategy.offers), strategy, 0)


def live(model: list[Any], strategy: str, *, probe: int, ledger: Ledger | None = None) -> Episode:
    """The same of a script of one's own."""
    return played(scenario(model), PRESETS[strategy].strategy, probe=probe, ledger=ledger)


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_reachable_is_what_the_script_says(name: str, strategy: str) -> None:
    loaded, chosen = scenario(SCRIPTS[name]), PRESETS[strategy].strategy
    wanted = run_episode(Arena(loaded, chosen.offers), chosen, 0)
    found = live(SCRIPTS[name], strategy, probe=TURNS)
    assert (found.ending, found.truth) == (wanted.ending, probed(wanted.truth))
    if wanted.truth == "reachable":
        assert (found.premature_stop, found.silent) == (wanted.premature_stop, wanted.silent)
    assert found.false_done == wanted.false_done


def probed(truth: str) -> str:
    """What the probe calls a truth of a script."""
    return f"not_reached_in_{TURNS}" if truth in ("stuck", "spoiled") else truth


# The shipped library


def acts(loaded: Scenario) -> bool:
    """Whether the script does to the world, or to the line, what no live provider can."""
    for move in walk(loaded.moves):
        if isinstance(move, WaitMove | DelegateMove) or getattr(move, "reply", None) is not None:
            return True
        if isinstance(move, FaultMove) and (move.fault.status in BUSY or move.fault.window):
            return True
        if isinstance(move, TruncateMove) and move.limit == "context_window":
            return True
        labels = (move.stop, move.raw.stop if isinstance(move, RawMove) else None)
        if "context_window" in labels or "model_context_window_exceeded" in labels:
            return True
    return False


def skips_otherwise(turn: Turn, task: Task) -> bool:
    """Whether a turn's words skip other items, as they are read, than the script means."""
    told = read_skips(turn.text, task.vocabulary)
    read = make_turn(turn.content, turn.stop, native=turn.native, claim=turn.claim, told=told)
    return skip_told(read, task.offered) != skip_told(turn, task.offered)


def claims_otherwise(turn: Turn) -> bool:
    """Whether a turn's words are read as another claim than the script means."""
    return turn.kind in ("content", "unknown") and read_claim(turn.text).claim != turn.claim


def provider_of(loaded: Scenario, strategy: Strategy) -> str | None:
    """The first provider whose dialect can say all of a script; None where none can, or live runs cannot."""
    if unplayable(Medium(model="openai-chat:scripted"), loaded, (strategy.offers,)):
        return None
    for provider, (dialect, _, _) in PROVIDERS.items():
        if not not_expressible(loaded, dialect, streamed=False, offered=(strategy.offers,)):  # type: ignore[arg-type]
            return provider
    return None


def compared(loaded: Scenario, name: str) -> tuple[str, tuple[str, str], tuple[str, str]] | None:
    """The scenario, what its script says of ending and truth, and what the probe does.

    None where it cannot know: the script acts, words skip otherwise than they are read, or a claim that is
    read otherwise has let the runs part.
    """
    strategy = PRESETS[name].strategy
    provider = provider_of(loaded, strategy)
    if provider is None or acts(loaded):
        return None
    arena, turns = Arena(loaded, strategy.offers), list[Turn]()
    wanted = run_episode(arena, strategy, 0, watch=lambda turn, *rest: turns.append(turn))
    if any(skips_otherwise(turn, arena.task(0)) for turn in turns):
        return None
    found = played(loaded, strategy, provider=provider)
    parted = (wanted.ending, wanted.turns) != (found.ending, found.turns)
    if parted and any(map(claims_otherwise, turns)):
        return None
    place = f"{loaded.name}, {name}, {provider}"
    return place, (wanted.ending, probed(wanted.truth)), (found.ending, found.truth)


LIBRARY = [loaded for loaded in library() if not acts(loaded)]


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted({loaded.family for loaded in LIBRARY}))
def test_the_probe_says_of_the_library_what_the_scripts_say(family: str) -> None:
    mine = [loaded for loaded in LIBRARY if loaded.family == family]
    found = [compared(loaded, name) for loaded in mine for name in ("silence", "acceptance", "stop_hook")]
    told = [one for one in found if one is not None]
    assert [one for one in told if one[1] != one[2]] == []


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
