"""The shipped table and the scenarios it links: each still shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalkit.scenarios.loader import load_file
from evalkit.scenarios.moves import CrashMove
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import prove
from evalkit.search.proofs.shipped_proofs import COMMAND, table_text
from evalkit.search.properties import PROPERTIES
from evalkit.strategies.presets import PRESETS

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHIPPED = sorted((DOCS / "proofs").glob("*.yaml"))
CLAIM = re.compile(r"^# With seed (\d+) (\S+) ends (\S+) here, in (\d+) turns:$", re.MULTILINE)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_counterexample_shows_what_it_says(path: Path) -> None:
    claim = CLAIM.search(path.read_text())
    assert claim is not None
    seed, name, outcome, turns = claim.groups()
    (scenario,) = load_file(path)
    strategy = PRESETS[name].strategy
    arena = Arena(scenario, strategy.offers)
    killed = any(isinstance(move, CrashMove) for move in scenario.moves)
    run = run_worker_episode if killed or path.stem.endswith("-worker") else run_episode
    episode = run(arena, strategy, int(seed))
    assert episode.outcome == outcome, f"the table is out of date: {COMMAND}"
    assert episode.turns >= int(turns)


@pytest.mark.parametrize("name", ["silence", "keyword", "finish_tool", "typed_output", "artifact"])
def test_the_shipped_table_is_up_to_date(name: str) -> None:
    text = (DOCS / "proofs.md").read_text()
    fresh = table_text([prove(PRESETS[name].strategy, Setting(3))], "proofs").splitlines()
    lines = [line for line in fresh if f"`{name}`" in line]
    assert len(lines) >= 2
    for line in lines:
        assert line in text, f"the table is out of date: {COMMAND}"


def test_the_shipped_table_has_every_preset_and_links_every_scenario() -> None:
    text = (DOCS / "proofs.md").read_text()
    assert all(f"| `{name}` |" in text for name in PRESETS)
    assert all(name.replace("_", " ") in text for name in PROPERTIES)
    assert {path.name for path in SHIPPED} == set(re.findall(r"proofs/([\w.-]+\.yaml)", text))
