"""The gate: each rule by itself, on runs made by hand."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from evalkit.reports.ci.baseline import (
    Baseline,
    BaselineError,
    Incompatible,
    baseline_of,
    baseline_text,
    read_baseline,
)
from evalkit.reports.ci.gate import Judgement, Level, judge
from evalkit.reports.ci.junit import github_annotations, junit_xml, step_summary
from evalkit.reports.ci.rules import Rules, RulesError, read_rules
from evalkit.runs.store import Store, void_row
from evalkit.scenarios.suites import library_families
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row
from tests.stats.simulations import MANY

Right = list[list[int | list[int]]]


def baseline(folder: Path, right: Right, **options: object) -> Baseline:
    store = grid(folder / "before", right, strategies=["s"], **options)
    return baseline_of(store)


def gate(folder: Path, before: Right, now: Right, rules: Rules | None = None, **options: object) -> Judgement:
    made = baseline(folder, before)
    return judge(grid(folder / "now", now, strategies=["s"], **options), made, rules or Rules())


def messages(judgement: Judgement, level: Level) -> list[str]:
    return [f"{reason.scenario}: {reason.message}" for reason in judgement.of(level)]


def test_the_same_run_is_clean(tmp_path: Path) -> None:
    found = gate(tmp_path, [[1], [0]], [[1], [0]])
    assert found.code == 0
    # What always fails is named, even where the baseline has it.
    assert messages(found, "note") == [": 1 scenarios always fail, as in the baseline: s001"]


class TestSeeds:
    """A baseline of many seeds and a run of few, and the other way round, are held to the seeds of both."""

    @pytest.mark.parametrize(
        ("before", "now"),
        [([[[1, 0, 1]]], [[1]]), ([[1]], [[[1, 0, 0, 1]]]), ([[[0, 1, 1]]], [[0]])],
    )
    def test_what_is_the_same_on_shared_seeds_is_clean(
        self, tmp_path: Path, before: Right, now: Right
    ) -> None:
        found = gate(tmp_path, before, now)
        assert found.code == 0
        assert ": 1 scenarios are compared on the seeds that baseline and run both have" in messages(
            found, "note"
        )

    def test_what_differs_on_one_of_them_is_found(self, tmp_path: Path) -> None:
        assert gate(tmp_path, [[[1, 0, 1]]], [[[1, 0, 0]]], Rules(pass_share=0.5)).code == 1
        assert gate(tmp_path / "other", [[[1, 0, 1]]], [[0]]).code == 1

    def test_a_baseline_that_does_not_say_which_is_not_compared(self, tmp_path: Path) -> None:
        made = baseline(tmp_path, [[[1, 0, 1]]])
        bare = {name: msgspec.structs.replace(r, by_seed={}) for name, r in made.contenders["s"].items()}
        old = msgspec.structs.replace(made, contenders={"s": bare})
        found = judge(grid(tmp_path / "now", [[[1, 1]]], strategies=["s"]), old, Rules())
        assert found.code == 3
        assert "3 seeds in the baseline and 2 now" in messages(found, "not gateable")[0]

    def test_they_stand_in_the_file(self, tmp_path: Path) -> None:
        made = baseline(tmp_path, [[[1, 0, 1]], [1]])
        (tmp_path / "b.json").write_text(baseline_text(made))
        read = read_baseline(tmp_path / "b.json")
        assert read.contenders["s"]["s000"].by_seed["correct"] == "101"
        assert read.contenders["s"]["s000"].by_seed["false_done"] == "010"
        assert read.contenders["s"]["s001"].by_seed == {}


class TestWhatIsNotGuarded:
    """Families of the library of which nothing is compared are named, also where all is clean."""

    @staticmethod
    def judged(folder: Path, families: dict[str, str], cannot: tuple[str, ...] = ()) -> Judgement:
        entries = [entry(name, family) for name, family in families.items()]
        made = msgspec.structs.replace(
            recipe(entries, ["s"]), not_expressible={f"{n} × s": "no" for n in cannot}
        )
        rows = [row(cell, cell, 0) for cell, name in enumerate(families) if name not in cannot]
        before = made_run(folder / "before", made, rows)
        return judge(made_run(folder / "now", made, rows), baseline_of(before), Rules())

    def test_they_are_named(self, tmp_path: Path) -> None:
        others = [name for name in library_families() if name not in ("refusal", "truncation")]
        found = self.judged(tmp_path, {"a": "refusal", "b": "truncation"})
        assert found.code == 0
        assert found.left_open.endswith(
            f"{len(others)} of the library's {len(others) + 2} families: {', '.join(others)}"
        )
        assert found.left_open in step_summary(found)

    def test_nothing_is_said_where_all_are(self, tmp_path: Path) -> None:
        assert self.judged(tmp_path, {name: name for name in library_families()}).left_open == ""

    def test_what_was_tried_and_has_no_form_is_none(self, tmp_path: Path) -> None:
        found = self.judged(tmp_path, {name: name for name in library_families()}, ("stop_hook",))
        assert found.left_open == ""

    def test_of_the_library_nothing(self, tmp_path: Path) -> None:
        assert self.judged(tmp_path, {"a": "mine"}).left_open.startswith("not guarded: all ")


def test_holm_is_over_all_that_the_gate_tests(tmp_path: Path) -> None:
    """One contender of ten that falls by chance is no regression; by itself it would be."""
    before = [[1] * 10 for _ in range(24)]
    now = [[0 if scenario < 8 and contender == 0 else 1] * 1 for scenario in range(24) for contender in [0]]
    rules = Rules(allowed_flips=24, known_failures=tuple(f"s{number:03}" for number in range(24)))
    alone = judge(
        grid(tmp_path / "alone", [line[:1] for line in now], strategies=MANY[:1]),
        baseline_of(grid(tmp_path / "one", [line[:1] for line in before], strategies=MANY[:1])),
        rules,
    )
    both = [[line[0], *[1] * 9] for line in now]
    among = judge(
        grid(tmp_path / "among", both, strategies=MANY),
        baseline_of(grid(tmp_path / "ten", before, strategies=MANY)),
        rules,
    )
    assert any("correct fell" in message for message in messages(alone, "regression"))
    assert not any("correct fell" in message for message in messages(among, "regression"))


class TestFlips:
    def test_from_pass_to_fail(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[[1, 1]], [[1, 1]]], [[[1, 1]], [[1, 0]]])
        assert found.code == 1
        assert messages(found, "regression") == [
            "s001: flips from pass to fail: done/complete → done/complete 1, done/reachable 1 "
            "(1 of 2 correct)"
        ]

    def test_as_many_as_are_allowed(self, tmp_path: Path) -> None:
        found = gate(
            tmp_path, [[[1, 1]], [[1, 1]]], [[[1, 1]], [[1, 0]]], Rules(allowed_flips=1, new_faults=())
        )
        assert found.code == 0
        assert "flips from pass to fail" in messages(found, "note")[0]

    def test_a_share_may_pass_for_all(self, tmp_path: Path) -> None:
        assert gate(tmp_path, [[[1, 1]]], [[[1, 0]]], Rules(pass_share=0.5, new_faults=())).code == 0

    def test_what_passes_now_is_noted(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[0], [1]], [[1], [1]])
        assert found.code == 0
        assert messages(found, "note") == [": 1 scenarios pass now and did not: s000"]

    @pytest.mark.parametrize(("number", "dots"), [(5, ""), (6, " …")])
    def test_of_many_that_pass_now_five_are_named(self, tmp_path: Path, number: int, dots: str) -> None:
        found = gate(tmp_path, [[0]] * number, [[1]] * number)
        named = ", ".join(f"s{place:03}" for place in range(5))
        assert messages(found, "note") == [f": {number} scenarios pass now and did not: {named}{dots}"]


class TestAlwaysFailing:
    @pytest.mark.parametrize(
        "rules",
        [
            Rules(allowed_flips=99),
            Rules(allowed_drop=1.0, allowed_flips=99, limits={"correct": 0.0}),
            Rules(pass_share=0.0, allowed_flips=99),
        ],
    )
    def test_no_threshold_hides_one(self, tmp_path: Path, rules: Rules) -> None:
        found = gate(tmp_path, [[1]] * 200, [[1]] * 199 + [[0]], rules)
        assert found.code == 1
        assert messages(found, "regression") == [
            "s199: always fails: done/reachable; in the baseline 1 of 1 correct"
        ]

    def test_a_new_one_too(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1]], [[1], [0]])
        assert found.code == 1
        assert messages(found, "regression") == ["s001: always fails: done/reachable; it is new"]

    def test_unless_it_is_known(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1]], [[1], [0]], Rules(known_failures=("s001",)))
        assert found.code == 0
        assert "s001: always fails: done/reachable, a known failure" in messages(found, "note")

    def test_of_a_changed_scenario(self, tmp_path: Path) -> None:
        made = baseline(tmp_path, [[1]])
        other = Baseline(**{**_fields(made), "scenarios": {"s000": "another text"}})
        found = judge(grid(tmp_path / "now", [[0]], strategies=["s"]), other, Rules())
        assert found.code == 1


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "said"),
        [
            ({"correct": 0.9}, "correct is 80 % (8 of 10 scenarios), below the limit of 90 %"),
            ({"false_done": 0.1}, "false done is 20 % (2 of 10 scenarios), above the limit of 10 %"),
            (
                {"false_done": {"two": 0.0}},
                "false done in two is 20 % (1 of 5 scenarios), above the limit of 0 %",
            ),
            (
                {"correct": {"none": 1.0}},
                "correct in none is 80 % (4 of 5 scenarios), below the limit of 100 %",
            ),
        ],
    )
    def test_broken(self, tmp_path: Path, limits: dict[str, float], said: str) -> None:
        entries = [entry(f"s{n}", "one" if n < 5 else "two", "full" if n < 5 else "none") for n in range(10)]
        right: Right = [[n % 5 > 0] for n in range(10)]
        before = grid(tmp_path / "a", right, strategies=["s"], entries=entries)
        now = grid(tmp_path / "b", right, strategies=["s"], entries=entries)
        found = judge(now, baseline_of(before), Rules(limits=limits))
        assert found.code == 1
        assert messages(found, "regression") == [f": {said}"]

    def test_kept(self, tmp_path: Path) -> None:
        assert (
            gate(tmp_path, [[1], [0]], [[1], [0]], Rules(limits={"correct": 0.5, "false_done": 0.5})).code
            == 0
        )

    @pytest.mark.parametrize(
        ("limits", "why"),
        [
            ({"correct": {"nowhere": 0.5}}, "no such family or level in the run"),
            ({"honest_report": 0.5}, "empty base"),
        ],
    )
    def test_with_nothing_to_hold_it_against(
        self, tmp_path: Path, limits: dict[str, float], why: str
    ) -> None:
        found = gate(tmp_path, [[1]], [[1]], Rules(limits=limits))
        assert found.code == 3
        (message,) = messages(found, "not gateable")
        assert message.endswith(f"nothing to hold the limit against ({why})")

    def test_of_each_strategy_by_itself(self, tmp_path: Path) -> None:
        both = {"strategies": ["s", "t"]}
        before = baseline_of(grid(tmp_path / "before", [[1, 0]], **both))
        found = judge(grid(tmp_path / "now", [[1, 0]], **both), before, Rules(limits={"correct": 0.5}))
        assert [reason.contender for reason in found.of("regression")] == ["t"]


class TestDifferences:
    def test_a_fall_that_chance_does_not_explain(self, tmp_path: Path) -> None:
        before: Right = [[[1, 1]]] * 40
        now: Right = [[[1, 1]]] * 30 + [[[1, 0]]] * 10
        found = gate(tmp_path, before, now, Rules(allowed_flips=99, new_faults=()))
        assert found.code == 1
        assert any(
            "correct fell by 12.5 points over 40 scenarios" in m for m in messages(found, "regression")
        )
        rules = Rules(allowed_flips=99, allowed_drop=0.2, new_faults=())
        assert gate(tmp_path / "x", before, now, rules).code == 0

    def test_one_that_chance_may_explain(self, tmp_path: Path) -> None:
        before: Right = [[[1, 1]]] * 40
        now: Right = [[[1, 1]]] * 37 + [[[1, 0]]] * 3
        assert gate(tmp_path, before, now, Rules(allowed_flips=99, new_faults=())).code == 0


class TestNotGateable:
    def test_nothing_evaluated(self, tmp_path: Path) -> None:
        empty = made_run(tmp_path / "now", recipe([entry("s000")], ["s"]), [])
        found = judge(empty, baseline(tmp_path, [[1]]), Rules())
        assert found.code == 3
        assert messages(found, "not gateable") == [": nothing was evaluated: the run has no episode"]

    def test_too_many_void(self, tmp_path: Path) -> None:
        made = recipe([entry("s000"), entry("s001")], ["s"])
        run = made_run(tmp_path / "now", made, [row(0, 0, 0), void_row(1, 1, 0, 0, "died")])
        found = judge(run, baseline(tmp_path, [[1], [1]]), Rules())
        assert found.code == 3
        assert messages(found, "not gateable") == [
            ": 1 of 2 episodes are void, above 1 %: died (1 times)",
        ]

    def test_few_void_are_noted_with_their_reason(self, tmp_path: Path) -> None:
        made = recipe([entry("s000")], ["s"], seeds=200)
        rows = [row(n, 0, 0, n) for n in range(199)]
        run = made_run(tmp_path / "now", made, [*rows, void_row(199, 0, 0, 199, "no room")])
        found = judge(run, baseline(tmp_path, [[[1] * 199]]), Rules())
        assert ": 1 of 200 episodes are void and left out: no room (1 times)" in messages(found, "note")

    @pytest.mark.parametrize(("silent", "code"), [(3, 3), (2, 0)])
    def test_a_harness_that_asked_for_nothing(self, tmp_path: Path, silent: int, code: int) -> None:
        made = recipe([entry("s000")], ["s"], seeds=200)
        rows = [row(n, 0, 0, n, no_requests=int(n < silent)) for n in range(200)]
        run = made_run(tmp_path / "now", made, rows)
        found = judge(run, baseline(tmp_path, [[[1] * 200]]), Rules())
        assert found.code == code
        level: Level = "not gateable" if code else "note"
        said = [m for m in messages(found, level) if f"no request at all in {silent} of 200" in m]
        assert len(said) == 1

    def test_a_flag_may_be_limited(self, tmp_path: Path) -> None:
        made = recipe([entry("s000")], ["s"], seeds=10)
        rows = [row(n, 0, 0, n, reworded_results=int(n < 2)) for n in range(10)]
        run = made_run(tmp_path / "now", made, rows)
        against = baseline(tmp_path, [[[1] * 10]])
        assert judge(run, against, Rules(limits={"reworded_results": 0.2})).code == 0
        found = judge(run, against, Rules(limits={"reworded_results": 0.1}))
        assert messages(found, "regression") == [
            ": reworded results is 20 % (2 of 10 episodes), above the limit of 10 %"
        ]

    def test_what_always_fails_says_why(self, tmp_path: Path) -> None:
        made = recipe([entry("s000")], ["s"])
        run = made_run(tmp_path / "now", made, [row(0, 0, 0, correct=0, why="undone: turn 3")])
        found = judge(run, baseline(tmp_path, [[1]]), Rules())
        assert (
            "s000: always fails: done/complete; in the baseline 1 of 1 correct; undone: turn 3"
            in messages(found, "regression")
        )

    def test_a_strategy_that_is_not_there(self, tmp_path: Path) -> None:
        run = grid(tmp_path / "now", [[1]], strategies=["t"])
        found = judge(run, baseline(tmp_path, [[1]]), Rules())
        assert found.code == 3
        assert messages(found, "not gateable") == [": is not in the run, which has: t"]
        assert judge(run, baseline(tmp_path / "x", [[1]]), Rules(strategies=("t",))).code == 3

    def test_what_keeps_it_from_being_judged_is_told_first(self, tmp_path: Path) -> None:
        before = baseline_of(grid(tmp_path / "before", [[1, 1]], strategies=["s", "t"]))
        found = judge(grid(tmp_path / "now", [[0]], strategies=["s"]), before, Rules())
        levels = [reason.level for reason in found.reasons]
        assert levels[0] == "not gateable"
        assert "regression" in levels[1:]
        assert levels == sorted(levels, key=["not gateable", "regression", "note"].index)

    def test_too_few_scenarios(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1], [1]], [[1], [1]], Rules(min_scenarios=3))
        assert found.code == 3
        assert messages(found, "not gateable") == [": 2 scenarios in common with the baseline, 3 needed"]

    def test_missing_scenarios_unless_allowed(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1], [1]], [[1]])
        assert found.code == 3
        assert messages(found, "not gateable") == ["s001: is in the baseline and was not run"]
        assert gate(tmp_path / "x", [[1], [1]], [[1]], Rules(missing_scenarios="allow")).code == 0

    def test_changed_scenarios_where_refused(self, tmp_path: Path) -> None:
        made = baseline(tmp_path, [[1], [1]])
        other = Baseline(**{**_fields(made), "scenarios": {"s000": "digest of s000", "s001": "another"}})
        run = grid(tmp_path / "now", [[1], [1]], strategies=["s"])
        assert judge(run, other, Rules()).code == 0
        assert judge(run, other, Rules(changed_scenarios="refuse")).code == 3

    def test_new_scenarios_where_refused(self, tmp_path: Path) -> None:
        assert gate(tmp_path, [[1]], [[1], [1]]).code == 0
        assert gate(tmp_path / "x", [[1]], [[1], [1]], Rules(new_scenarios="refuse")).code == 1


def _fields(made: Baseline) -> dict[str, object]:
    return {name: getattr(made, name) for name in Baseline.__struct_fields__}


class TestBaselineFile:
    def test_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        made = baseline(tmp_path, [[[1, 0]], [1]])
        file = tmp_path / "baseline.json"
        file.write_text(baseline_text(made), encoding="utf-8")
        assert read_baseline(file) == made

    def test_has_a_line_for_each_scenario(self, tmp_path: Path) -> None:
        lines = baseline_text(baseline(tmp_path, [[1], [0]])).splitlines()
        assert '   "s000": {"episodes":1,"correct":1,"outcomes":{"done/complete":1}},' in lines
        assert sum('"s001": {' in line for line in lines) == 1

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"schema": "evalkit.summary/1"}', '{"schema": "evalkit.baseline/1"}']
    )
    def test_is_refused_where_it_is_none(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "b.json"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(BaselineError, match=r"b\.json"):
            read_baseline(file)

    def test_of_another_version_is_incompatible(self, tmp_path: Path) -> None:
        file = tmp_path / "b.json"
        file.write_text('{"schema": "evalkit.baseline/9"}', encoding="utf-8")
        with pytest.raises(Incompatible):
            read_baseline(file)


class TestRules:
    def test_from_pyproject(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert read_rules(None) == Rules()
        Path("pyproject.toml").write_text(
            "[tool.evalkit.gate]\nallowed_flips = 1\n[tool.evalkit.gate.limits]\n"
            "false_done = 0.05\npremature_stop = {all = 0.1, pause_turn = 0}\n",
            encoding="utf-8",
        )
        rules = read_rules(None)
        assert rules.allowed_flips == 1
        assert rules.bounds() == [
            ("false_done", "all", 0.05),
            ("premature_stop", "all", 0.1),
            ("premature_stop", "pause_turn", 0),
        ]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("alow_flips = 1", "alow_flips"),
            ("allowed_flips = -1", "0 or more"),
            ("pass_share = 2", "from 0 to 1"),
            ("limits = {corect = 0.5}", "unknown rate"),
            ("limits = {correct = 50}", "from 0 to 1"),
            ("new_scenarios = 'maybe'", "maybe"),
            ("[", "not TOML"),
        ],
    )
    def test_bad_ones_are_named_in_one_line(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "rules.toml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(RulesError) as caught:
            read_rules(file)
        assert said in str(caught.value)
        assert str(file) in str(caught.value)


class TestForCi:
    def test_junit(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1], [0], [1]], [[0], [0], [1]], Rules(limits={"correct": 0.9}))
        root = ElementTree.fromstring(junit_xml(found))
        (suite,) = root
        assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
        cases = {case.get("name"): [child.tag for child in case] for case in suite}
        assert cases == {"as a whole": ["failure"], "s000": ["failure"], "s001": ["skipped"], "s002": []}

    def test_junit_of_what_cannot_be_gated(self, tmp_path: Path) -> None:
        empty = made_run(tmp_path / "now", recipe([entry("s000")], ["s"]), [])
        root = ElementTree.fromstring(junit_xml(judge(empty, baseline(tmp_path, [[1]]), Rules())))
        assert [suite.get("errors") for suite in root] == ["1"]

    def test_names_that_are_markup(self, tmp_path: Path) -> None:
        entries = [entry("<b>&\x0b")]
        before = grid(tmp_path / "a", [[1]], strategies=["s"], entries=entries)
        now = grid(tmp_path / "b", [[0]], strategies=["s"], entries=entries)
        found = judge(now, baseline_of(before), Rules())
        (case,) = ElementTree.fromstring(junit_xml(found)).iter("testcase")
        assert case.get("name") == "<b>&"
        assert "<b>" not in step_summary(found)

    def test_github(self, tmp_path: Path) -> None:
        found = gate(tmp_path, [[1], [1]], [[0], [1]])
        (line,) = github_annotations(found)
        assert line.startswith("::error title=evalkit gate%3A s::regression: s: s000: always fails")
        assert "gate: regression" in step_summary(found)


class TestNewFaults:
    """A new false done or duplicate effect is a regression, whatever else was wrong before."""

    @staticmethod
    def run(folder: Path, **values: object) -> Store:
        return made_run(
            folder, recipe([entry("a"), entry("b")], ["s"]), [row(0, 0, 0, **values), row(1, 1, 0)]
        )

    FAILED = {
        "ending": "escalated",
        "truth": "reachable",
        "correct": 0,
        "premature_stop": 1,
        "unclosed": None,
    }

    def test_where_the_scenario_failed_before(self, tmp_path: Path) -> None:
        before = baseline_of(self.run(tmp_path / "before", **self.FAILED))
        now = self.run(tmp_path / "now", **FALSE_DONE)
        found = judge(now, before, Rules())
        assert found.code == 1
        assert messages(found, "regression") == ["a: new: false done: escalated/reachable → done/reachable"]
        assert judge(now, before, Rules(new_faults=())).code == 0
        assert judge(now, before, Rules(known_failures=("a",))).code == 0

    def test_an_old_one_is_none(self, tmp_path: Path) -> None:
        before = baseline_of(self.run(tmp_path / "before", **FALSE_DONE))
        assert judge(self.run(tmp_path / "now", **FALSE_DONE), before, Rules()).code == 0

    def test_a_duplicate_effect(self, tmp_path: Path) -> None:
        before = baseline_of(self.run(tmp_path / "before", **self.FAILED))
        now = self.run(tmp_path / "now", **self.FAILED, duplicate_effects=1)
        found = judge(now, before, Rules())
        assert found.code == 1
        (said,) = messages(found, "regression")
        assert said.startswith("a: new: duplicate effects: ")


def test_a_scenario_that_nobody_has_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match=r"'s00' is neither in the run nor in the baseline \(did you mean"):
        gate(tmp_path, [[1]], [[1]], Rules(known_failures=("s00",)))


def test_rules_may_stand_in_evalkit_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalkit.toml").write_text("[gate]\nallowed_flips = 3\n")
    (tmp_path / "pyproject.toml").write_text("[tool.evalkit.gate]\nallowed_flips = 4\n")
    assert read_rules(None).allowed_flips == 3
