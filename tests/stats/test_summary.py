"""``summary.json`` against figures worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from evalkit.reports.write import summary_text
from evalkit.runs.plan import Entry, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store, void_row
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.episode_fields import FLAGS, RATES
from evalkit.stats.causes import told_once
from evalkit.stats.summary import summarize
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row


def of(summary: dict[str, Any], strategy: str, family: str = "all", checks: str = "all") -> dict[str, Any]:
    (found,) = [
        line
        for line in summary["rows"]
        if (line["strategy"], line["family"], line["checks"]) == (strategy, family, checks)
    ]
    return found


class TestRows:
    def test_counts_are_whole_and_divided_last(self, tmp_path: Path) -> None:
        entries = [entry("a", "one", "full"), entry("b", "one", "none"), entry("c", "two", "none")]
        summary = summarize(grid(tmp_path, [[1], [0], [1]], strategies=["s"], entries=entries))
        whole = of(summary, "s")
        assert (whole["correct"]["count"], whole["correct"]["base"]) == (2, 3)
        assert whole["correct"]["rate"] == 2 / 3
        assert whole["outcomes"] == {"done/complete": 2, "done/reachable": 1}
        assert (whole["premature_stop"]["silent"], whole["premature_stop"]["declared"]) == (1, 0)
        assert of(summary, "s", family="one")["correct"]["rate"] == 0.5
        assert of(summary, "s", checks="none")["correct"]["rate"] == 0.5
        assert of(summary, "s", checks="full")["false_done"]["count"] == 0
        assert {(line["family"], line["checks"]) for line in summary["rows"]} == {
            ("all", "all"),
            ("one", "all"),
            ("two", "all"),
            ("all", "full"),
            ("all", "none"),
        }

    def test_means_are_over_episodes_and_recall_over_what_held(self, tmp_path: Path) -> None:
        missed = {"ending": "escalated", "unclosed": 1, "tp": 0, "fn": 1, "correct": 0, "turns": 8}
        rows = [row(0, 0, 0), row(1, 1, 0, **missed), row(2, 2, 0, **missed)]
        store = made_run(tmp_path, recipe([entry("a"), entry("b"), entry("c")], ["s"]), rows)
        whole = of(summarize(store), "s")
        assert (whole["turns"], whole["tokens"]) == (20 / 3, 100.0)
        assert whole["recall"] == 1 / 3
        assert whole["precision"] == 1.0
        # A written library is no sample.
        assert "turns_interval" not in whole

    def test_a_run_of_which_only_void_and_not_exercised_is_left_is_not_gateable(self, tmp_path: Path) -> None:
        made = recipe([entry("a")], ["s"], seeds=200)
        rows = [row(n, 0, 0, n, not_exercised=1) for n in range(199)]
        store = made_run(tmp_path, made, [*rows, void_row(199, 0, 0, 199, "died")])
        run = summarize(store)["run"]
        assert (run["episodes"], run["void"], run["not_exercised"]) == (200, 1, 199)
        assert run["gateable"] is False

    @pytest.mark.parametrize(("episodes", "gateable"), [(100, True), (99, False)])
    def test_one_in_a_hundred_may_have_asked_for_nothing(
        self, tmp_path: Path, episodes: int, gateable: bool
    ) -> None:
        rows = [row(n, 0, 0, n, no_requests=int(n == 0)) for n in range(episodes)]
        store = made_run(tmp_path, recipe([entry("a")], ["s"], seeds=episodes), rows)
        assert of(summarize(store), "s")["gateable"] is gateable

    def test_what_failed_is_said_with_how_often(self, tmp_path: Path) -> None:
        rows = [
            row(0, 0, 0, 0),
            void_row(1, 0, 0, 1, "no room"),
            void_row(2, 0, 0, 2, "no room"),
            row(3, 0, 0, 3, ending="error", note="ValueError: x", correct=0),
        ]
        run = summarize(made_run(tmp_path, recipe([entry("a")], ["s"], seeds=4), rows))["run"]
        assert run["void_reasons"] == ["no room (2 times)"]
        assert run["raised"] == ["s failed by itself in an episode, first in a: ValueError: x"]

    def test_an_empty_base_has_no_rate(self, tmp_path: Path) -> None:
        store = made_run(
            tmp_path,
            recipe([entry("a")], ["s"]),
            [row(0, 0, 0, ending="escalated", truth="stuck", premature_stop=None, unclosed=None, tp=0, tn=1)],
        )
        whole = of(summarize(store), "s")
        for name in ("premature_stop", "unclosed", "honest_report"):
            assert (whole[name]["count"], whole[name]["base"], whole[name]["rate"]) == (0, 0, None)
        assert whole["precision"] is None
        assert whole["recall"] is None

    def test_a_contender_without_one_episode_is_there(self, tmp_path: Path) -> None:
        made = recipe([entry("a"), entry("b", "two")], ["s", "t"])
        store = made_run(
            tmp_path,
            made,
            [row(0, 0, 0), void_row(1, 0, 1, 0, "died"), row(2, 1, 0), void_row(3, 1, 1, 0, "x")],
        )
        summary = summarize(store)
        gone = of(summary, "t")
        assert gone["episodes"] == 0
        assert all(gone[rate]["rate"] is None for rate in RATES)
        assert (gone["turns"], gone["usd"], gone["per_correct"]["tokens"]) == (None, None, None)
        assert all((gone[rate]["count"], gone[rate]["base"]) == (0, 0) for rate in RATES)
        assert not any(gone[flag] for flag in FLAGS)
        assert (gone["precision"], gone["recall"]) == (None, None)
        assert set(gone["decisions"].values()) == {0}
        assert set(gone["decisions_weighted"].values()) == {0.0}
        assert summary["run"]["void"] == 2
        assert summary["run"]["gateable"] is False
        assert summary["pairs"] == []
        assert not any(math.isnan(value) for value in _numbers(summary))

    def test_errors_stay_in_the_base(self, tmp_path: Path) -> None:
        failed = {
            "ending": "error",
            "truth": "reachable",
            "correct": 0,
            "tp": 0,
            "fn": 0,
            "tn": 1,
            "unclosed": None,
        }
        store = made_run(
            tmp_path, recipe([entry("a"), entry("b")], ["s"]), [row(0, 0, 0), row(1, 1, 0, **failed)]
        )
        whole = of(summarize(store), "s")
        assert (whole["correct"]["count"], whole["correct"]["base"]) == (1, 2)

    def test_seeds_are_averaged_within_the_scenario(self, tmp_path: Path) -> None:
        # 1 of 4 seeds, and one scenario that is not random: by scenarios 1.25 of 2, by episodes 2 of 5.
        whole = of(summarize(grid(tmp_path, [[[1, 0, 0, 0]], [1]], strategies=["s"])), "s")
        assert (whole["correct"]["count"], whole["correct"]["base"]) == (2, 5)
        assert whole["correct"]["scenario_count"] == 1.25
        assert whole["correct"]["scenario_base"] == 2
        assert whole["correct"]["scenario_rate"] == 0.625
        assert whole["outcomes"] == {"done/complete": 2, "done/reachable": 3}
        assert whole["scenario_outcomes"] == {"done/complete": 1.25, "done/reachable": 0.75}
        # Of the one scenario in which seeds matter.
        assert whole["pass_k"][:2] == [
            {"k": 1, "rate": 0.25, "scenarios": 1},
            {"k": 2, "rate": 0.0, "scenarios": 1},
        ]

    def test_each_episode_has_weight_one_in_the_decisions(self, tmp_path: Path) -> None:
        # One episode of four decisions (3 tn, 1 tp) and one of a single false done.
        store = made_run(
            tmp_path,
            recipe([entry("a"), entry("b")], ["s"]),
            [row(0, 0, 0, tn=3), row(1, 1, 0, **FALSE_DONE)],
        )
        whole = of(summarize(store), "s")
        assert whole["decisions"] == {"tp": 1, "fp": 1, "tn": 3, "fn": 0}
        assert whole["decisions_weighted"] == {"tp": 0.25, "fp": 1.0, "tn": 0.75, "fn": 0.0}
        assert whole["precision"] == 0.2
        assert whole["recall"] == 1.0

    def test_cost_of_a_correct_episode(self, tmp_path: Path) -> None:
        # 2 episodes of 100 tokens, 20 of them output, one correct: 2 * (80 * 3 + 20 * 15) / 1e6 dollars.
        whole = of(summarize(grid(tmp_path, [[1], [0]], strategies=["s"])), "s")
        assert whole["per_correct"] == {"turns": 8, "tokens": 200, "usd": pytest.approx(0.00108)}
        assert whole["usd"] == pytest.approx(0.00054)
        none = of(summarize(grid(tmp_path / "n", [[0], [0]], strategies=["s"])), "s")
        assert none["per_correct"] == {"turns": None, "tokens": None, "usd": None}


class TestIntervals:
    def test_a_written_library_gets_none(self, tmp_path: Path) -> None:
        whole = of(summarize(grid(tmp_path, [[1]] * 30, strategies=["s"])), "s")["correct"]
        assert (whole["low"], whole["high"]) == (None, None)
        assert "interval" not in whole

    def test_a_population_gets_one_by_scenario(self, tmp_path: Path) -> None:
        entries = [entry(f"p{number}", population=True) for number in range(20)]
        right = [[[1, 1, 1]]] * 10 + [[[0, 0, 0]]] * 10
        whole = of(summarize(grid(tmp_path, right, strategies=["s"], entries=entries)), "s")
        # Seeds are copies, so the scenario is the unit: 10 of 20.
        assert whole["correct"]["low"] < 0.29
        assert whole["correct"]["high"] > 0.71
        assert whole["correct"]["interval"] == "exact at the effective size, clustered by 20 scenarios"
        assert whole["honest_report"]["interval"] == "n/a: empty base"
        assert whole["turns_interval"]["note"] == "n/a: no variance between scenarios"

    def test_variants_of_one_file_are_one_cluster(self, tmp_path: Path) -> None:
        entries = [Entry(f"p{n}", "made", "full", f"file {n // 4}", "f.yaml", None, True) for n in range(40)]
        right = [[[1, 1]] if n // 4 % 2 else [[0, 0]] for n in range(40)]
        whole = of(summarize(grid(tmp_path, right, strategies=["s"], entries=entries)), "s")["correct"]
        assert whole["scenario_base"] == 40
        assert whole["interval"] == "exact at the effective size, clustered by 10 scenarios"
        assert whole["low"] < 0.22

    def test_one_written_scenario_among_them_takes_it_away(self, tmp_path: Path) -> None:
        entries = [entry("p", population=True), entry("q", population=True), entry("written")]
        whole = of(summarize(grid(tmp_path, [[1], [0], [1]], strategies=["s"], entries=entries)), "s")
        assert whole["correct"]["low"] is None


class TestPairs:
    def test_over_scenarios_with_holm_over_all_that_is_shown(self, tmp_path: Path) -> None:
        right = [[0, 1, 1]] * 8 + [[1, 1, 0]] * 2 + [[1, 1, 1]] * 20
        summary = summarize(grid(tmp_path, right, strategies=["base", "up", "mixed"]))
        whole = {pair["strategy"]: pair for pair in summary["pairs"] if pair["checks"] == "all"}
        assert (whole["up"]["better"], whole["up"]["worse"], whole["up"]["scenarios"]) == (8, 0, 30)
        assert whole["up"]["p"] == 2 / 2**8
        # Eight up, two down of ten: 2 * (1 + 10 + 45) / 1024.
        assert whole["mixed"]["p"] == pytest.approx(112 / 1024)
        # Five tests are shown: two strategies, over all and at the one level, and the first beside the next.
        assert whole["up"]["p_holm"] == pytest.approx(5 * 2 / 2**8)
        assert whole["up"]["difference"] == pytest.approx(8 / 30)

    def test_levels_are_compared_apart_and_few_scenarios_give_counts(self, tmp_path: Path) -> None:
        entries = [entry(f"s{n}", checks="full" if n < 20 else "none") for n in range(25)]
        summary = summarize(grid(tmp_path, [[0, 1]] * 25, strategies=["a", "b"], entries=entries))
        levels = {pair["checks"]: pair for pair in summary["pairs"]}
        assert levels["full"]["p"] == 2 / 2**20
        assert levels["none"]["p"] is None
        assert levels["none"]["p_holm"] is None
        assert levels["none"]["note"] == "fewer than 20 scenarios: counts only"
        assert levels["none"]["better"] == 5

    def test_seeds_do_not_add_weight(self, tmp_path: Path) -> None:
        one = summarize(grid(tmp_path / "1", [[0, 1]] * 6 + [[1, 1]] * 20, strategies=["a", "b"]))
        many = summarize(
            grid(tmp_path / "5", [[[0] * 5, [1] * 5]] * 6 + [[[1] * 5, [1] * 5]] * 20, strategies=["a", "b"])
        )
        assert one["pairs"][0]["p"] == many["pairs"][0]["p"] == 2 / 2**6


class TestTwins:
    def test_a_pair_counts_when_the_decision_is_right_on_both(self, tmp_path: Path) -> None:
        entries = [entry("x", twin="y"), entry("y", twin="x"), entry("u", twin="v"), entry("v", twin="u")]
        store = grid(
            tmp_path, [[1, 1], [0, 1], [1, 1], [1, 1]], strategies=["words", "world"], entries=entries
        )
        rows = {line["strategy"]: line for line in summarize(store)["twins"]}
        assert (rows["words"]["pairs"], rows["words"]["right"], rows["words"]["rate"]) == (2, 1, 0.5)
        assert rows["words"]["missed"] == ["x / y"]
        assert rows["world"]["right"] == 2
        assert (rows["world"]["words_alone"], rows["world"]["coin_at_most"]) == (0.0, 0.25)

    def test_seed_by_seed(self, tmp_path: Path) -> None:
        entries = [entry("x", twin="y"), entry("y", twin="x")]
        store = grid(tmp_path, [[[1, 0, 1, 1]], [[0, 1, 1, 1]]], strategies=["s"], entries=entries)
        (line,) = summarize(store)["twins"]
        assert (line["right"], line["rate"]) == (0, 0.5)


def test_a_move_is_told_once_with_its_turns() -> None:
    fallen = ["empty, turn 3", "say (claim done), turn 4", "empty, turn 5", "empty, after turn 7"]
    assert told_once(fallen) == ["empty, 3 times, turns 3 to 7", "say (claim done), turn 4"]


def test_causes_and_stops(tmp_path: Path) -> None:
    missed = {"fn": 2, "tp": 0, "causes": "say (claim done), turn 4\nempty, turn 5", "correct": 0}
    both = FALSE_DONE | {
        "fn": 1,
        "causes": "refuse, turn 1\nsay (claim done), after turn 3",
        "final_stop": "max_tokens",
    }
    store = made_run(
        tmp_path,
        recipe([entry("a", "one"), entry("b", "two")], ["s"]),
        [row(0, 0, 0, **missed), row(1, 1, 0, **both)],
    )
    summary = summarize(store)
    assert [(line["move"], line["called_done"], line["missed"]) for line in summary["causes"]] == [
        ("say (claim done)", 1, 1),
        ("empty", 0, 1),
        ("refuse", 0, 1),
    ]
    whole, one, two = summary["stops"]
    assert (whole["family"], one["family"], two["family"]) == ("all", "one", "two")
    assert whole["stops"] == {"end_turn": 2, "tool_use": 6}
    assert whole["endings"] == {"done": 2}
    assert (whole["text_only_open"], whole["open_episodes"], whole["truncated_finals"]) == (1, 1, 1)
    assert one["truncated_finals"] == 0


def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path) -> None:
    scenarios = load_suites(("pause_turn", "progress_updates"))
    sources = {scenario.place: Path(scenario.place).read_text(encoding="utf-8") for scenario in scenarios}
    texts = []
    for workers in (1, 2):
        plan = make_plan(scenarios, sources, ("silence", "gate", "keyword"), 2, None)
        store = Store.create(tmp_path / str(workers), plan.recipe)
        run_plan(plan, store, workers)
        texts.append(summary_text(summarize(store)))
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["schema"] == "evalkit.summary/1"


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in _numbers(inner)]
    return [value] if isinstance(value, float) else []
