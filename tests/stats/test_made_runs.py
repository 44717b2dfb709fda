"""What is computed from a run's rows, on runs small enough to work it out by hand."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from evalkit.core.prices import cost
from evalkit.runs.store import Store
from evalkit.stats.causes import causes, told_once
from evalkit.stats.pilot_variance import pilot_pair
from evalkit.stats.power import NotPlannable
from evalkit.stats.ranking import leads, places, ranked, standing
from evalkit.stats.run_comparison import _first_apart, versus
from evalkit.stats.scenario_results import Record, contender_name, first_reasons, records, shared
from evalkit.stats.strategy_comparison import Paired, adjusted, paired, paired_comparisons, rates_by_scenario
from evalkit.stats.summary import summarize
from evalkit.stats.tally import make_tally
from evalkit.stats.turns import turns_to_the_end
from evalkit.stats.twins import twin_rows
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row


def tallied(store: Store) -> Store:
    make_tally(store)
    return store


def over_all(store: Store) -> dict[str, Any]:
    (line,) = [row for row in summarize(store)["rows"] if (row["family"], row["checks"]) == ("all", "all")]
    return line


class TestCost:
    def test_is_over_all_episodes_and_over_the_correct_ones(self, tmp_path: Path) -> None:
        line = over_all(grid(tmp_path, [[1], [1], [0]], strategies=["s"]))
        one = cost(80, 20)
        assert line["usd"] == pytest.approx(one)
        assert line["per_correct"] == {"turns": 6.0, "tokens": 150.0, "usd": pytest.approx(1.5 * one)}

    def test_of_none_that_is_correct_is_none(self, tmp_path: Path) -> None:
        line = over_all(grid(tmp_path, [[0]], strategies=["s"]))
        assert set(line["per_correct"].values()) == {None}


class TestTurns:
    def test_of_each_contender(self, tmp_path: Path) -> None:
        turns = [(0, 3), (0, 5), (0, 5), (0, 9), (1, 7)]
        rows = [
            row(cell, cell, contender, turns=n, **({"ending": "never", "correct": 0} if n == 9 else {}))
            for cell, (contender, n) in enumerate(turns)
        ]
        store = made_run(tmp_path, recipe([entry(f"s{n}") for n in range(5)], ["a", "b"]), rows)
        first, second = turns_to_the_end(store)
        assert {
            name: first[name] for name in ("strategy", "harness", "episodes", "never", "least", "most")
        } == {
            "strategy": "a",
            "harness": "loop",
            "episodes": 4,
            "never": 1,
            "least": 3,
            "most": 9,
        }
        assert first["quantiles"]["0.5"] == 5
        assert (second["strategy"], second["least"], second["most"], second["never"]) == ("b", 7, 7, 0)


class TestCauses:
    def test_the_last_of_a_false_done_is_called_done_and_the_others_were_missed(self, tmp_path: Path) -> None:
        told = "say, turn 2\nsay, turn 4\nfinish, turn 6"
        rows = [
            row(0, 0, 0, **{**FALSE_DONE, "causes": told}),
            row(1, 1, 0, causes="say, turn 3\npause, after turn 3", fp=0, correct=0),
        ]
        store = made_run(tmp_path, recipe([entry("x"), entry("y")], ["s"]), rows)
        found = [(each["move"], each["called_done"], each["missed"]) for each in causes(store)]
        assert found == [("say", 0, 3), ("finish", 1, 0), ("pause", 0, 1)]
        assert {(each["strategy"], each["harness"]) for each in causes(store)} == {("s", "loop")}

    def test_each_is_told_once(self) -> None:
        assert told_once(["say, turn 2", "pause, turn 3", "say, after turn 5"]) == [
            "say, 2 times, turns 2 to 5",
            "pause, turn 3",
        ]


class TestTwins:
    def test_are_told_apart_where_both_are_right(self, tmp_path: Path) -> None:
        entries = [entry("a", twin="b"), entry("b", twin="a"), entry("c", twin="d"), entry("d", twin="c")]
        #: By scenario whether the decision was right, a seed each: a/b with one of two, c/d with both.
        right = [(1, 1), (1, 0), (1, 1), (1, 1)]
        rows = [
            row(2 * scenario + seed, scenario, 0, seed, twin=twin)
            for scenario, seeds in enumerate(right)
            for seed, twin in enumerate(seeds)
        ]
        (line,) = twin_rows(made_run(tmp_path, recipe(entries, ["s", "never-played"], seeds=2), rows))
        assert (line["pairs"], line["right"], line["rate"]) == (2, 1, 0.75)
        assert (line["told_apart"], line["missed"]) == (["c / d"], ["a / b"])
        assert (line["words_alone"], line["coin_at_most"]) == (0.0, 0.25)


class TestRecords:
    def test_seeds_that_were_not_played_leave_a_gap(self, tmp_path: Path) -> None:
        rows = [row(0, 0, 0, 0), row(1, 0, 0, 2, **FALSE_DONE), row(2, 1, 0, 0)]
        store = tallied(made_run(tmp_path, recipe([entry("x"), entry("y")], ["s"], seeds=3), rows))
        found = records(store)["s"]
        assert found["x"].by_seed["correct"] == "1-0"
        assert found["x"].by_seed["false_done"] == "0-1"
        assert "unclosed" not in found["x"].by_seed
        assert found["x"].seeds() == {0, 2}
        assert found["y"].by_seed == {}
        assert found["y"].seeds() == {0}
        assert found["x"].outcome == "done/complete 1, done/reachable 1"
        assert (found["x"].count("false_done"), found["x"].share("correct")) == (1, Fraction(1, 2))
        assert found["x"].count("undone") == 0

    def test_of_some_seeds(self) -> None:
        many = Record(
            4, 2, {"done/complete": 4}, {"false_done": 2}, {"correct": "1010", "false_done": "0101"}
        )
        few = Record(2, 1, {"done/complete": 2}, {}, {"correct": "01"})
        found = shared(many, few)
        assert found is not None
        assert (found[0].episodes, found[0].correct, found[0].faults) == (2, 1, {"false_done": 1})
        assert found[1] is few
        assert many.only(frozenset()) is None
        untold = Record(3, 3, {"done/complete": 3})
        assert untold.outcome == "done/complete"
        assert (
            Record(3, 2, {"done/complete": 2, "limit/stuck": 1}).outcome == "done/complete 2, limit/stuck 1"
        )
        assert untold.only(frozenset((0, 1))) is None
        assert shared(untold, few) is None
        apart = Record(1, 1, {"done/complete": 1}, {}, {"correct": "---1"})
        assert shared(few, apart) is None

    def test_names_and_reasons(self, tmp_path: Path) -> None:
        assert contender_name("gate", "loop") == "gate"
        assert contender_name("", "other") == contender_name("other", "other") == "other"
        assert contender_name("gate", "other") == "other:gate"
        rows = [
            row(0, 0, 0),
            row(1, 1, 0, **FALSE_DONE, why="false done"),
            row(2, 1, 0, 1, **FALSE_DONE, why="later"),
        ]
        store = made_run(tmp_path, recipe([entry("x"), entry("y")], ["s"], seeds=2), rows)
        assert first_reasons(store) == {"s": {"y": "false done"}}


class TestPilot:
    RIGHT = [
        [1, 0, 1],
        [0, 1, 1],
        [1, 1, 1],
        [0, 0, 1],
        [1, 0, 0],
        [1, 1, 1],
        [0, 1, 1],
        [1, 0, 1],
        *[[1, 1, 1]] * 2,
    ]

    def store(self, folder: Path, strategies: tuple[str, ...] = ("a", "b", "c"), **more: object) -> Store:
        lines = [line[: len(strategies)] for line in self.RIGHT]
        return grid(folder, lines, strategies=strategies, **more)

    def test_of_two_one_or_none_that_are_named(self, tmp_path: Path) -> None:
        store = self.store(tmp_path)
        assert pilot_pair(store, ("b", "c")).source == "pilot: c less b"
        assert pilot_pair(store, ("c",)).source == "pilot: c less a"
        # b less a is -1, 1, 0, 0, -1, 0, 1, -1 and varies more than c less a.
        assert pilot_pair(store).source == "pilot: b less a"
        variance = pilot_pair(store)
        assert variance.between == pytest.approx((5 - 1 / 10) / 9)
        assert variance.within == 0

    def test_against_the_baseline_wherever_it_stands(self, tmp_path: Path) -> None:
        store = self.store(tmp_path, baseline="c")
        assert pilot_pair(store, ("a",)).source == "pilot: a less c"

    def test_against_the_first_where_the_baseline_was_not_played(self, tmp_path: Path) -> None:
        store = self.store(tmp_path, baseline="z")
        assert pilot_pair(store, ("b",)).source == "pilot: b less a"

    def test_what_is_no_pair(self, tmp_path: Path) -> None:
        store = self.store(tmp_path / "three")
        with pytest.raises(KeyError, match="'z' is not in the pilot, which has: a, b, c"):
            pilot_pair(store, ("z",))
        with pytest.raises(KeyError, match="one or two, got 3"):
            pilot_pair(store, ("a", "b", "c"))
        with pytest.raises(NotPlannable, match="one strategy"):
            pilot_pair(self.store(tmp_path / "one", ("a",)))
        with pytest.raises(NotPlannable, match="no variance"):
            pilot_pair(grid(tmp_path / "same", [[1, 1]] * 10, strategies=["a", "b"]))


class TestComparisons:
    def test_of_nothing_says_so(self) -> None:
        nothing = Paired(0, 0, 0, None, None, None, None, "no scenario in common")
        assert paired([], []) == nothing

    def test_against_the_baseline_at_each_level(self, tmp_path: Path) -> None:
        entries = [entry(f"s{n}", checks="full" if n < 20 else "none") for n in range(40)]
        store = tallied(
            grid(
                tmp_path, [[1, 0, 1]] * 20 + [[1, 1, 1]] * 20, strategies=["a", "b", "a@0.1"], entries=entries
            )
        )
        found = {each["checks"]: each for each in paired_comparisons(store)}
        assert set(found) == {"all", "full", "none"}
        assert {each["strategy"] for each in found.values()} == {"b"}
        assert (found["all"]["scenarios"], found["all"]["worse"], found["all"]["difference"]) == (
            40,
            20,
            -0.5,
        )
        assert (found["full"]["difference"], found["full"]["p"]) == (-1.0, 2 / 2**20)
        assert (found["none"]["difference"], found["none"]["better"]) == (0.0, 0)
        assert rates_by_scenario(store, 1) == {n: Fraction(int(n >= 20)) for n in range(40)}

    def test_variants_of_a_file_are_flipped_together(self) -> None:
        one = [Fraction(1)] * 22
        assert paired(one, range(22)).p == 2 / 2**22
        assert paired(one, [0, 0, 1, 1, *range(2, 20)]).p == 2 / 2**20
        assert paired(one, [0, 0, 0, 1, *range(2, 20)]).p == 2 / 2**20
        assert paired(one, [0, 0, 0, 0, *range(1, 19)]).p is None
        cancelled = paired([Fraction(1), Fraction(-1)] * 20, [n // 2 for n in range(40)])
        assert (cancelled.p, cancelled.better, cancelled.worse) == (1.0, 20, 20)

    def test_halves_count_as_better_and_worse(self) -> None:
        found = paired([Fraction(1, 2)] * 15 + [Fraction(-1, 3)] * 5, range(20))
        assert (found.better, found.worse) == (15, 5)

    def test_equal_ones_are_counted_as_tests_and_few_are_none(self) -> None:
        equal, few = paired([Fraction(0)] * 20, range(20)), paired([Fraction(1)], [0])
        assert (equal.p, few.p) == (None, None)
        assert equal.note != few.note
        assert adjusted([(0.01, ""), (equal.p, equal.note), (few.p, few.note)]) == [0.02, None, None]

    def test_a_scenario_whose_seeds_are_not_the_same_is_left_out(self, tmp_path: Path) -> None:
        def run(name: str, seeds: tuple[int, ...]) -> Store:
            rows = [row(0, 0, 0, 0), *(row(1 + at, 1, 0, seed) for at, seed in enumerate(seeds))]
            return made_run(tmp_path / name, recipe([entry("x"), entry("y")], ["s"], seeds=9), rows)

        (match,) = versus(run("a", (0, 1)), run("b", (2, 3))).matches
        assert match.scenarios == 1


class TestRanking:
    def lines(self, store: Store) -> list[dict[str, object]]:
        return leads(tallied(store), summarize(store)["rows"])

    def store(self, folder: Path) -> Store:
        """``a`` is first with full checks, ``b`` without any; ``c`` ties with ``b`` at full checks."""
        entries = [entry(f"f{n}") for n in range(6)] + [entry(f"n{n}", checks="none") for n in range(6)]
        full, none = [[1, 0, 0]] + [[1, 1, 1]] * 5, [[0, 1, 0]] * 2 + [[1, 1, 0]] * 4
        return grid(folder, full + none, strategies=["a", "b", "c"], entries=entries)

    def test_first_next_ties_and_the_one_to_take_unsure(self, tmp_path: Path) -> None:
        full, none, unsure = self.lines(self.store(tmp_path))
        assert (full["checks"], full["strategy"], full["next"]["strategy"]) == ("full", "a", "b")
        assert (full["scenarios"], full["better"], full["worse"], full["tied"]) == (6, 1, 0, [])
        assert (none["checks"], none["strategy"], none["next"]["strategy"]) == ("none", "b", "a")
        assert (none["better"], none["difference"]) == (2, pytest.approx(1 / 3))
        # Both have the places 1 and 2; b has fewer false dones.
        assert (unsure["strategy"], unsure["places"]) == ("b", {"full": 2, "none": 1})

    def test_the_telling_episode_is_of_the_nearest_rival(self, tmp_path: Path) -> None:
        full, none, _ = self.lines(self.store(tmp_path))
        assert full["telling"] == {
            "strategy": "b",
            "harness": "loop",
            "scenario": "f0",
            "seed": 0,
            "fault": "false_done",
            "beside": {"strategy": "a", "harness": "loop"},
        }
        # Of a's two, that of the first name; both are shared with c.
        assert (none["telling"]["strategy"], none["telling"]["scenario"]) == ("a", "n0")

    def test_an_accepted_fault_tells_nothing(self, tmp_path: Path) -> None:
        """A contender alone, correct throughout, that stopped early where that is accepted."""
        accepted = {"ending": "escalated", "truth": "reachable", "premature_stop": 1, "correct": 1}
        rows = [row(0, 0, 0, 0, **accepted)]
        (lead,) = self.lines(made_run(tmp_path, recipe([entry("x")], ["a"]), rows))
        assert lead["telling"] is None

    def test_ties_share_a_place_and_sweeps_have_none(self, tmp_path: Path) -> None:
        store = grid(tmp_path, [[1, 1, 0, 1]] * 3, strategies=["a", "b", "c", "d@0.1"])
        order = ranked(summarize(store)["rows"], "full")
        assert [each["strategy"] for each in order] == ["a", "b", "c"]
        assert list(places(order).values()) == [1, 1, 3]
        (lead,) = self.lines(store)
        assert [each["strategy"] for each in lead["tied"]] == ["b"]
        assert lead["next"]["strategy"] == "c"

    def test_that_less_can_be_stopped_too_early_is_no_merit(self) -> None:
        def row(base: int) -> dict[str, object]:
            counts = {"correct": (9, 10), "false_done": (0, 10), "premature_stop": (2, base)}
            shares = {
                name: {"scenario_count": count, "scenario_rate": count / of}
                for name, (count, of) in counts.items()
            }
            return {"scenarios": 10, **shares}

        assert standing(row(8)) == standing(row(7))

    def test_who_has_no_episode_has_no_rank(self, tmp_path: Path) -> None:
        rows = summarize(grid(tmp_path, [[1, 1]], strategies=["a", "b"]))["rows"]
        rows = [{**each, "episodes": 0} if each["strategy"] == "b" else each for each in rows]
        assert [each["strategy"] for each in ranked(rows, "full")] == ["a"]

    def test_one_alone_is_beside_nobody(self, tmp_path: Path) -> None:
        (lead,) = self.lines(grid(tmp_path, [[1]] * 3, strategies=["a"]))
        assert (lead["next"], lead["scenarios"], lead["p"], lead["telling"]) == (None, 0, None, None)

    def test_nobody_is_taken_unsure_who_is_never_correct_somewhere(self, tmp_path: Path) -> None:
        entries = [entry("x"), entry("y", checks="none")]
        found = self.lines(grid(tmp_path, [[1, 0], [0, 1]], strategies=["a", "b"], entries=entries))
        assert [each["checks"] for each in found] == ["full", "none"]


def test_the_first_decision_that_the_other_did_not_make(tmp_path: Path) -> None:
    def run(name: str, told: str) -> Store:
        wrong = {**FALSE_DONE, "causes": told} if told else {}
        return made_run(tmp_path / name, recipe([entry("x")], ["s"]), [row(0, 0, 0, **wrong)])

    one, two, none = run("one", "say, turn 2"), run("two", "say, turn 2\npause, turn 4"), run("none", "")
    (match,) = versus(two, none).matches
    (flip,) = match.flips
    assert "say, turn 2" in str(flip)
    assert _first_apart("say, turn 2\npause, turn 4", "say, turn 2") == ("pause, turn 4", "")
    assert _first_apart("say, turn 2", "say, turn 2\npause, turn 4") == ("", "pause, turn 4")
    assert _first_apart("say", "say") == ("", "")
    assert versus(one, one).matches[0].flips == ()
