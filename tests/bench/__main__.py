"""Prints turns per CPU-second of evalkit and of the bare loop, in one run, for several lengths."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text
from tests.bench import bare

LENGTHS = (8, 32, 128, 512)
STRATEGIES = ("silence", "acceptance", "gate")
TURNS = 24_000
ROUNDS = 5


def scenario_text(turns: int) -> str:
    """A scenario of so many turns with a choice in it, so that every seed is an episode."""
    items = ", ".join(f"item-{number}" for number in range(turns - 2))
    return f"""
scenario: bench-{turns}
family: bench
task: {{prompt: Do every item., done_when: Every item is done.}}
limits: {{turns: 1000}}
world: {{kind: items, items: [{items}]}}
model:
  - call: list_items
  - work: rest
  - either: [{{p: 0.5, do: [{{say: All is done., claim: done}}]}}]
  - say: All is done.
    claim: done
"""


def rate(work: Callable[[], int]) -> float:
    """Turns per CPU-second."""
    start = time.process_time()
    turns = work()
    return turns / (time.process_time() - start)


def evalkit_turns(turns: int, strategy: str, folder: Path) -> int:
    """Run episodes through plan, loop, scoring and store in this process; the model turns."""
    scenarios = load_text(scenario_text(turns))
    # Long scripts cannot end within the presets' own 40 turns.
    plan = make_plan(scenarios, {}, (strategy,), max(1, TURNS // turns))
    plan.strategies[0] = plan.strategies[0].but(max_turns=None)
    store = Store.create(folder, plan.recipe)
    run_plan(plan, store, 1)
    (total,) = next(store.rows("select sum(turns) from episode where correct"))
    store.close()
    return int(total)


def main() -> None:
    """Print the table."""
    print("turns per CPU-second, one process, best of", ROUNDS)
    print(
        f"{'turns':>6} {'bare loop':>12}" + "".join(f"{name:>14}" for name in STRATEGIES) + "   bare / gate"
    )
    with tempfile.TemporaryDirectory() as temp:
        number = 0
        for turns in LENGTHS:
            best: dict[str, float] = {}
            for _ in range(ROUNDS):
                count = max(1, TURNS // turns)
                with (Path(temp) / "bare.jsonl").open("w") as out:
                    figure = rate(lambda: bare.run(count, turns, out))  # noqa: B023
                best["bare"] = max(best.get("bare", 0), figure)
                for name in STRATEGIES:
                    number += 1
                    folder = Path(temp) / str(number)
                    figure = rate(lambda: evalkit_turns(turns, name, folder))  # noqa: B023
                    best[name] = max(best.get(name, 0), figure)
            line = f"{turns:>6} {best['bare']:>12,.0f}" + "".join(f"{best[n]:>14,.0f}" for n in STRATEGIES)
            print(f"{line}   {best['bare'] / best['gate']:>6.1f}", flush=True)


if __name__ == "__main__":
    main()
