"""Each rule that the code marks has one test that is named for it, and such a test comes to its line."""

from __future__ import annotations

import ast
from collections import Counter

from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS
from tests.helpers import scenario
from tests.rules import ROOT, Watching, rules


def named() -> Counter[str]:
    """How often each rule stands in a test's mark."""
    found: Counter[str] = Counter()
    for file in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
                found.update(ast.literal_eval(argument) for argument in node.args)
    return found


def test_each_rule_has_one_test_and_each_such_test_its_rules() -> None:
    assert named() == dict.fromkeys(rules(), 1)


def test_what_is_carried_out_is_seen_and_nothing_else() -> None:
    loaded = scenario([{"work": "rest"}, {"say": "Done.", "claim": "done"}])
    strategy = PRESETS["silence"].strategy
    with Watching() as watching:
        assert run_episode(Arena(loaded, strategy.offers), strategy, 0).ending == "done"
    assert {"done_when_is_met", "truth_is_complete"} <= watching.met
    assert "false_done" not in watching.met
