"""Episodes a second with the README's agent: one process for many, and a process for each, in one run."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.harnesses.find import find_harness
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import (
    contract_of,
    hear,
    run_foreign,
    runner_of,
    server_for_harnesses,
    why_not_expressible,
)

README = Path(__file__).resolve().parents[2] / "README.md"
FAMILIES = ("partial_completion", "finish_batch", "background_work")
GOAL = 10
#: Of a fresh process each episode pays for its imports, so that fewer make a figure.
COUNT = {"resident": 54, "fresh": 6}
ROUNDS = 1


def agent(folder: Path) -> Path:
    """The Python agent of the README, in a file."""
    found = re.search(r"```python\n# my_agent\.py\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert found is not None
    file = folder / "my_agent.py"
    file.write_text(found[1], encoding="utf-8")
    return file


def measure(rounds: int = ROUNDS) -> dict[str, Any]:
    """Episodes a second in each way, round by round, one at a time; the start of a process included."""
    with tempfile.TemporaryDirectory() as folder, server_for_harnesses() as server:
        harness = hear(find_harness(str(agent(Path(folder)))))
        scenarios = [s for s in load_suites(FAMILIES) if why_not_expressible(s, harness) is None]
        found: dict[str, Any] = {"episodes": dict(COUNT), "resident": [], "fresh": []}
        for _ in range(rounds):
            for way, count in COUNT.items():
                print(f"{way}: {count} episodes", file=sys.stderr, flush=True)
                chosen = [scenarios[place % len(scenarios)] for place in range(count)]
                found[way].append(_rate(harness, chosen, server, fresh=way == "fresh"))
        return found


def _rate(harness: Any, scenarios: list[Scenario], server: Any, *, fresh: bool) -> float:
    contract, runner = contract_of(harness), runner_of(harness, fresh=fresh)
    arenas = [Arena(scenario, contract.offered) for scenario in scenarios]
    for arena in arenas:
        # What is worked out once for a scenario is no part of an episode.
        arena.cap(0)
    start = time.perf_counter()
    try:
        for arena in arenas:
            episode, _ = run_foreign(arena, 0, contract, runner, server)
            if episode.no_requests or episode.ending in ("void", "error"):
                raise RuntimeError(f"{arena.scenario.name}: {episode.ending}: {episode.note}")
    finally:
        runner.close()
    return len(arenas) / (time.perf_counter() - start)


def markdown(figures: dict[str, Any]) -> list[str]:
    """The table; of several rounds the best, and the ratios of each."""
    counts = figures["episodes"]
    lines = [
        f"The README's Python agent on `{'`, `'.join(FAMILIES)}`, one episode at a time, the start of its "
        f"process included: {counts['resident']} episodes of a resident process, {counts['fresh']} of fresh "
        f"ones; episodes a second. Goal: {GOAL} times as many.",
        "",
        "| one process for all | a process for each (`--fresh`) | times |",
        "| ---: | ---: | ---: |",
    ]
    ratios = sorted(one / other for one, other in zip(figures["resident"], figures["fresh"], strict=True))
    spread = f" ({ratios[0]:.1f} to {ratios[-1]:.1f})" if len(ratios) > 1 else ""
    best = max(figures["resident"]), max(figures["fresh"])
    return [*lines, f"| {best[0]:.2f} | {best[1]:.2f} | {ratios[-1]:.1f}{spread} |"]
