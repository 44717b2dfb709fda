"""Short ways to build scenarios and run them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import library_folder, load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy


@lru_cache(maxsize=1)
def library() -> list[Scenario]:
    """The shipped scenarios but for populations, loaded once for all tests of a process."""
    return load_suites()


@lru_cache(maxsize=1)
def library_and_populations() -> list[Scenario]:
    """All shipped scenarios."""
    return load_suites((str(library_folder()),))


ITEMS = ("users", "orders", "invoices")


def document(model: Any, **fields: Any) -> dict[str, Any]:
    """A scenario document in the items world; fields of ``world`` and ``task`` may be given as such."""
    world = {"kind": "items", "items": list(ITEMS), **fields.pop("world", {})}
    task = {"prompt": "Do every item.", "done_when": "Every item is done.", **fields.pop("task", {})}
    return {
        "scenario": "a-scenario",
        "family": "tests",
        "task": task,
        "world": world,
        "model": model,
        **fields,
    }


def scenario(model: Any, **fields: Any) -> Scenario:
    """One scenario, loaded as a user's file would be."""
    text = yaml.safe_dump(document(model, **fields), sort_keys=False)
    (loaded,) = load_text(text, "scenario.yaml")
    return loaded


def play(loaded: Scenario, strategy: str | Strategy, seed: int = 0) -> Episode:
    """Run one episode of the reference loop."""
    chosen = PRESETS[strategy].strategy if isinstance(strategy, str) else strategy
    return run_episode(Arena(loaded, chosen.offers), chosen, seed)
