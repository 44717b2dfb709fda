"""Two runs against each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from evalkit.cli import main
from evalkit.harnesses.episode_record import Exchange, Kept
from evalkit.reports.run_comparison import Partings, versus_lines
from evalkit.runs.foreign_records import keep_trace
from evalkit.runs.plan import Contender, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store, void_row
from evalkit.scenarios.suites import load_suites
from evalkit.stats.run_comparison import together, versus
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row


def test_only_what_both_have_is_compared_and_the_rest_is_named(tmp_path: Path) -> None:
    a = grid(
        tmp_path / "a", [[1], [1], [1]], strategies=["s"], entries=[entry("x"), entry("y"), entry("old")]
    )
    entries = [entry("x"), replace(entry("y"), digest="changed"), entry("new")]
    b = grid(tmp_path / "b", [[0], [0], [0]], strategies=["s"], entries=entries)
    found = versus(a, b)
    assert (found.shared, found.only_a, found.only_b, found.changed) == (1, ("old",), ("new",), ("y",))
    (match,) = found.matches
    assert match.scenarios == 1
    assert [flip.scenario for flip in match.flips] == ["x"]
    lines = "\n".join(versus_lines(found, Partings(a, b)))
    for said in (
        "only in A, not compared: 1: old",
        "only in B, not compared: 1: new",
        "changed between them",
    ):
        assert said in lines


def test_of_several_shown_together_each_pays_for_all(tmp_path: Path) -> None:
    a = grid(tmp_path / "a", [[1]] * 30, strategies=["s"])
    others = [grid(tmp_path / str(n), [[1]] * 22 + [[0]] * 8, strategies=["s"]) for n in range(2)]
    apart = [versus(a, other) for other in others]
    both = together(apart)
    assert [one.b for one in both] == [one.b for one in apart]
    (alone,), (among,) = (apart[0].matches, both[0].matches)
    first, second = alone.differences[0], among.differences[0]
    assert first.result == second.result
    assert first.p_holm is not None
    assert second.p_holm == pytest.approx(min(1.0, 2 * first.p_holm))


def test_differences_with_ranges(tmp_path: Path) -> None:
    a = grid(tmp_path / "a", [[1]] * 30, strategies=["s"])
    b = grid(tmp_path / "b", [[1]] * 20 + [[0]] * 10, strategies=["s"])
    (match,) = versus(a, b).matches
    correct = match.differences[0]
    assert (correct.rate, correct.before, correct.after) == ("correct", 1.0, 2 / 3)
    assert correct.result.p == 2 / 2**10
    assert correct.result.low is not None
    assert correct.result.high is not None
    assert correct.result.low < -1 / 3 < correct.result.high < 0
    # Over what is shown: five rates, of which two do not differ.
    assert correct.p_holm == 5 * 2 / 2**10


def test_flips_say_from_what_to_what_and_why(tmp_path: Path) -> None:
    a = grid(tmp_path / "a", [[[1, 1]], [[0, 1]]], strategies=["s"])
    b = grid(tmp_path / "b", [[[1, 0]], [[1, 1]]], strategies=["s"])
    (match,) = versus(a, b).matches
    worse, better = match.flips
    assert (worse.scenario, worse.seed, worse.worse) == ("s000", 1, True)
    assert (worse.before, worse.after) == ("done/complete", "done/reachable")
    assert (worse.why_before, worse.why_after) == ("", FALSE_DONE["causes"])
    assert (better.scenario, better.seed, better.worse) == ("s001", 0, False)


def test_another_ending_that_is_as_right_is_neither_better_nor_worse(tmp_path: Path) -> None:
    made = recipe([entry("x"), entry("y")], ["s"])
    a = made_run(tmp_path / "a", made, [row(0, 0, 0, **FALSE_DONE), row(1, 1, 0)])
    ended = {"ending": "escalated", "truth": "complete"}
    b = made_run(
        tmp_path / "b", made, [row(0, 0, 0, **{**FALSE_DONE, "ending": "limit"}), row(1, 1, 0, **ended)]
    )
    (match,) = versus(a, b).matches
    assert [(flip.scenario, flip.worse) for flip in match.flips] == [("x", None), ("y", None)]


def test_the_only_two_are_compared_whatever_they_are_called(tmp_path: Path) -> None:
    found = versus(
        grid(tmp_path / "a", [[1]], strategies=["old"]), grid(tmp_path / "b", [[1]], strategies=["new"])
    )
    assert [(match.before, match.after) for match in found.matches] == [("old", "new")]
    assert "different names" in found.notes[0]
    none = versus(
        grid(tmp_path / "c", [[1, 1]], strategies=["p", "q"]), grid(tmp_path / "d", [[1]], strategies=["new"])
    )
    assert none.matches == ()


def test_versions_seeds_and_void_episodes_are_said(tmp_path: Path) -> None:
    made = recipe([entry("x")], ["s"], seeds=3, evalkit="9.9")
    b = made_run(tmp_path / "b", made, [row(0, 0, 0), void_row(1, 0, 0, 1, "died")])
    notes = " | ".join(versus(grid(tmp_path / "a", [[1]], strategies=["s"]), b).notes)
    for said in ("different versions of evalkit: A 0, B 9.9", "different numbers of seeds", "B has 1 void"):
        assert said in notes


def _played(folder: Path, strategies: tuple[str, ...]) -> Store:
    scenarios = load_suites(("migration-reports-at-four-of-six",))
    sources = {scenario.place: Path(scenario.place).read_text(encoding="utf-8") for scenario in scenarios}
    plan = make_plan(scenarios, sources, strategies, 1, None)
    store = Store.create(folder, plan.recipe)
    run_plan(plan, store, 1)
    return store


def test_the_decision_at_which_two_part_is_played_again(tmp_path: Path) -> None:
    a, b = _played(tmp_path / "a", ("acceptance",)), _played(tmp_path / "b", ("silence",))
    lines = "\n".join(versus_lines(versus(a, b), Partings(a, b)))
    assert "worse  migration-reports-at-four-of-six: done/complete → done/reachable" in lines
    assert "A turn 6: end_turn, nudged (not done: checks fail" in lines
    assert "B turn 6: end_turn, ended done (done_when) (done: the turn has no calls)" in lines


def test_of_foreign_harnesses_it_is_read_from_what_was_kept(tmp_path: Path) -> None:
    stores = []
    for name, action, ending in (("a", "nudged", {}), ("b", "ended done", FALSE_DONE)):
        made = replace(recipe([entry("s")], ["mine"]), contenders=(Contender("mine", "mine"),))
        stores.append(made_run(tmp_path / name, made, [row(0, 0, 0, **ending)]))
        listed = [{"kind": "call", "text": "list_items {}"}]
        calls = Exchange(1, "tool_use", None, "none", listed, action="went on")
        says = Exchange(2, "end_turn", None, "partial", [{"kind": "text", "text": "Half."}], action=action)
        keep_trace(tmp_path / name, 0, Kept("mine", 0, [calls, says]))
    lines = "\n".join(versus_lines(versus(*stores), Partings(*stores)))
    assert "worse  s: done/complete → done/reachable" in lines
    assert "A turn 2: end_turn, nudged" in lines
    assert "B turn 2: end_turn, ended done" in lines


def test_a_strategy_that_has_changed_since_is_not_played_again(tmp_path: Path) -> None:
    a, b = _played(tmp_path / "a", ("acceptance",)), _played(tmp_path / "b", ("silence",))
    b.recipe.strategies["silence"] = "another"
    lines = "\n".join(versus_lines(versus(a, b), Partings(a, b)))
    assert "B turn 6" not in lines
    assert "B fell for: say (claim partial), turn 6" in lines


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    a = grid(tmp_path / "a", [[1]], strategies=["s"], entries=[entry("one")])
    b = grid(tmp_path / "b", [[1]], strategies=["s"], entries=[entry("other")])
    lines = list(versus_lines(versus(a, b), Partings(a, b)))
    assert lines[-1] == "s: nothing to compare: no scenario in common"


def test_command(tmp_path: Path) -> None:
    _played(tmp_path / "a", ("acceptance",)).close()
    _played(tmp_path / "b", ("acceptance",)).close()

    def call(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["compare", *words], catch_exceptions=False)
        return result.exit_code, result.output

    code, said = call(str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 0
    assert "acceptance: nothing changed in 1 scenarios" in said
    code, text = call(str(tmp_path / "a"), str(tmp_path / "b"), "--json")
    assert json.loads(text)["schema"] == "evalkit.compare/1"
    assert call(str(tmp_path / "a"), "nowhere")[0] == 2
    # Nothing compared is nothing that was found to be unchanged.
    grid(tmp_path / "c", [[1]], strategies=["acceptance"], entries=[entry("other")]).close()
    code, said = call(str(tmp_path / "a"), str(tmp_path / "c"))
    assert (code, said.splitlines()[-1]) == (1, "evalkit: nothing was compared")
    assert call(str(tmp_path / "a"), str(tmp_path / "c"), str(tmp_path / "c"))[0] == 1
    assert call(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "c"))[0] == 0
