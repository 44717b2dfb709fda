"""The worst that a model can make of a harness that can only be run: looked for, never proved absent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from evalkit.harnesses.callables import CallableRunner, Function
from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.manifest import Harness
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import Contract, contract_of, hear, runner_of, server_for_harnesses
from evalkit.search.falsification.counterexample_search import HarnessFailed, Looked, Progress, Search
from evalkit.search.falsification.proposals import Memory
from evalkit.search.falsification.trials import Alphabet, Trials
from evalkit.search.falsification.violations import OF_HARNESSES, Caps
from evalkit.search.proofs.environment import Setting
from evalkit.search.properties import Property, find_properties

MAX_RUNS, MAX_SECONDS, MAX_MOVES = 400, 300.0, 24


class Falsified(msgspec.Struct, frozen=True):
    """The answers on one harness. ``moves`` is the size of the model's alphabet, ``runs`` are all runs made.

    ``left_out`` are the moves that its dialect cannot say. ``transcripts`` are the runs of the
    counterexamples, by property.
    """

    harness: str
    setting: Setting
    seed: int
    moves: int
    left_out: tuple[str, ...]
    runs: int
    searched: int
    seconds: float
    results: tuple[Looked, ...]
    transcripts: dict[str, tuple[Kept, Episode]] = {}

    @property
    def holds(self) -> bool:
        """Whether nothing is refuted."""
        return all(result.answer != "refuted" for result in self.results)


def falsify(
    harness: Harness | Function,
    setting: Setting | None = None,
    names: tuple[str, ...] = (),
    *,
    called: str = "",
    seed: int = 0,
    max_runs: int = MAX_RUNS,
    max_seconds: float = MAX_SECONDS,
    max_moves: int = MAX_MOVES,
    run_seconds: float | None = None,
    caps: Caps | None = None,
    without: tuple[str, ...] = (),
    database: Path | None = None,
    progress: Progress | None = None,
) -> Falsified:
    """Look for scripts under which a harness breaks properties (all that concern it without ``names``).

    At most ``max_runs`` runs look for a first failure, and as many again make each finding small;
    ``max_seconds`` bounds everything, ``run_seconds`` one run. Scripts have at most ``max_moves`` moves,
    none of those that a pattern of ``without`` names. Findings are kept in ``database`` and tried first the
    next time. ``called`` is the name under which a user finds the harness.

    ValueError for an unknown property, NoSuchMove for a pattern that fits none, ManifestError for a harness
    that is not set up, HarnessFailed for one that asks nothing of its model.
    """
    wanted = find_properties(names, OF_HARNESSES)
    setting = setting or Setting(2, "none")
    streamed = False
    if isinstance(harness, Harness):
        harness = hear(harness)
        contract, streamed = contract_of(harness), harness.streamed
        runner: Any = runner_of(harness, seconds=run_seconds)
    else:
        contract = Contract(getattr(harness, "__name__", type(harness).__name__))
        runner = CallableRunner(harness, run_seconds or 60.0)
    try:
        alphabet = Alphabet(contract, setting, streamed=streamed, without=without)
        with server_for_harnesses() as server:
            began = time.monotonic()
            trials = Trials(contract, runner, server, alphabet, caps or Caps(), began + max_seconds)
            name = called or contract.name
            memory = Memory(database, alphabet, name)
            search = Search(name, alphabet, trials, seed, max_runs, max_moves, memory, progress)
            results = search.answers(
                tuple(one for one in wanted if names or _concerns(one, contract, setting))
            )
            return Falsified(
                contract.name,
                setting,
                seed,
                len(alphabet.moves),
                alphabet.left_out,
                trials.runs,
                search.searched,
                time.monotonic() - began,
                results,
                search.transcripts,
            )
    finally:
        runner.close()


def _concerns(one: Property, contract: Contract, setting: Setting) -> bool:
    """Whether a property can be broken by a harness with these notions, in this setting."""
    if one.name == "approved_calls":
        return contract.events.approve is not None
    return one.name != "within_limits" or setting.calls is not None


__all__ = ["MAX_MOVES", "MAX_RUNS", "MAX_SECONDS", "Falsified", "HarnessFailed", "Looked", "falsify"]
