"""The task in evalkit: plan, loop, truth, score and store, with a strategy as the third argument.

The scenario comes on standard input.
"""

import sys
import tempfile
from pathlib import Path

from measure import arguments, report

from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text

turns, episodes = arguments()
(strategy,) = sys.argv[3:]
scenario = sys.stdin.read()


def run(count: int) -> int:
    scenarios = load_text(scenario)
    plan = make_plan(scenarios, {}, (strategy,), count)
    # Long scripts cannot end within the presets' own 40 turns.
    plan.strategies[0] = plan.strategies[0].but(max_turns=None)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder), plan.recipe)
        run_plan(plan, store, 1)
        query = "select count(*) from episode where correct and turns = ?"
        ((done,),) = store.rows(query, (turns,))
        store.close()
    return int(done)


run(1)
report(turns, episodes, lambda: run(episodes))
