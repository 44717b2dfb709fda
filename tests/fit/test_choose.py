"""The strategy that costs least for what mistakes cost its user, or what he has to decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.fit.choose import COSTS, EXACT, Group, choice, frontier, ratio_map, to_decide
from evalkit.fit.document import document
from tests.fit.test_drawn import population


def evalkit(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def _rates(**of: float) -> dict[str, float]:
    return {**dict.fromkeys(COSTS, 0.0), **of}


def _written(**contenders: dict[str, float]) -> Group:
    rates = {name: {EXACT: {0: found}} for name, found in contenders.items()}
    return Group("checks: full", False, "", rates)


def _sampled(**contenders: dict[str, list[float]]) -> Group:
    """Looks of each contender by level, a value a draw; nobody does anything else wrong."""
    rates = {
        name: {
            level: {draw: _rates(look=look) for draw, look in enumerate(looks)} for level, looks in of.items()
        }
        for name, of in contenders.items()
    }
    return Group("p", True, "not validated", rates, ("repairs",))


CAREFUL, CHEAP = _rates(look=0.5, token=3.0), _rates(false_done=0.2, token=1.0)


@pytest.mark.parametrize(("false_done", "winner"), [(1.0, "cheap"), (10.0, "careful")])
def test_what_a_mistake_costs_decides(false_done: float, winner: str) -> None:
    found = choice(_written(careful=CAREFUL, cheap=CHEAP), {"false_done": false_done, "look": 1.0})
    assert found.winner == winner
    # A written library has no chance in it.
    assert all(ends == (None, None) for _, *rest in found.costs.values() for ends in [tuple(rest)])


def test_the_expected_cost_adds_up() -> None:
    found = choice(
        _written(only=_rates(false_done=0.2, look=0.1, token=50.0)), {"false_done": 10, "token": 0.01}
    )
    assert found.costs["only"][0] == pytest.approx(0.2 * 10 + 50 * 0.01)


def test_equal_costs_are_a_tie_and_no_winner() -> None:
    found = choice(_written(one=CAREFUL, two=dict(CAREFUL)), {"look": 1.0})
    assert (found.winner, found.by_level[EXACT]) == (None, ("one", "two"))


def test_a_winner_is_named_only_where_it_stays_one_over_what_is_assumed() -> None:
    always = _sampled(
        a={"middle": [0.1], "low": [0.1], "high": [0.1]}, b={"middle": [0.2], "low": [0.2], "high": [0.2]}
    )
    assert choice(always, {"look": 1.0}).winner == "a"
    turns = _sampled(
        a={"middle": [0.1], "low": [0.1], "high": [0.3]}, b={"middle": [0.2], "low": [0.2], "high": [0.2]}
    )
    found = choice(turns, {"look": 1.0})
    assert found.winner is None
    assert found.by_level == {"middle": ("a",), "low": ("a",), "high": ("b",)}


def test_costs_of_a_population_have_an_interval_and_a_paired_difference() -> None:
    group = _sampled(a={"middle": [0.1, 0.5]}, b={"middle": [0.2, 0.6]})
    found = choice(group, {"look": 1.0})
    mean, low, high = found.costs["a"]
    assert mean == pytest.approx(0.3)
    assert low is not None
    assert high is not None
    assert low < mean < high
    assert found.apart is not None
    # Draw by draw the second costs as much more: chance that both share is no doubt of who is cheaper.
    assert found.apart[0] == "b"
    assert found.apart[1:] == pytest.approx((0.1, 0.1, 0.1))


def test_the_map_says_who_wins_where() -> None:
    found = ratio_map(_written(careful=CAREFUL, cheap=CHEAP), {"look": 2.0})
    assert found[1.0][EXACT] == ("cheap",)
    assert found[3.0][EXACT] == ("careful",)


def test_the_frontier_leaves_out_what_is_worse_in_everything() -> None:
    worse = _rates(false_done=0.3, look=0.6, token=9.0)
    found = frontier(_written(careful=CAREFUL, cheap=CHEAP, worse=worse))
    assert list(found) == ["careful", "cheap"]
    (line,) = to_decide(found)
    assert line.startswith(
        "careful rather than cheap: 200 false dones fewer in 1,000 tasks, for 500 more looks"
    )


# Of runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choose")
    file = folder / "persona.yaml"
    file.write_text(document(population(tasks=3, draws=2)), encoding="utf-8")
    for name, suite, strategies in (
        ("fitted", str(file), ("silence", "acceptance")),
        ("written", "refusal", ("silence", "acceptance")),
        ("more", "refusal", ("gate",)),
        ("other", "pause_turn", ("checklist",)),
        ("persona", "population-stuck", ("silence",)),
        ("library", "refusal population-stuck", ("silence",)),
    ):
        chosen = [word for strategy in strategies for word in ("-s", strategy)]
        made = evalkit(
            "run",
            *([suite] if name == "fitted" else suite.split()),
            *chosen,
            "--out",
            str(folder / name),
            "--no-charts",
        )
        assert made.exit_code == 0, made.output
    return folder


@pytest.mark.long
def test_a_run_of_a_population_says_that_it_is_not_validated(runs: Path) -> None:
    told = evalkit("choose", str(runs / "fitted"), "--false-done", "100", "--look", "1")
    assert told.exit_code == 0
    assert "persona: not validated" in told.output
    assert "take acceptance: the least expected cost, over all that is assumed" in told.output


def test_runs_of_the_same_scenarios_are_one_choice(runs: Path) -> None:
    told = evalkit("choose", str(runs / "written"), str(runs / "more"), "--false-done", "5", "--look", "1")
    assert told.exit_code == 0
    for name in ("silence", "acceptance", "gate"):
        assert f"  {name}: " in told.output
    assert "90 %" not in told.output


def test_without_costs_it_says_what_has_to_be_decided(runs: Path) -> None:
    told = evalkit("choose", str(runs / "fitted"))
    assert "without costs: none is better in everything than" in told.output
    assert "acceptance rather than silence" in told.output


def test_costs_of_a_sample_without_a_fit_are_told_as_such(runs: Path) -> None:
    told = evalkit("choose", str(runs / "persona"), "--look", "1")
    assert told.exit_code == 0
    assert told.output.startswith("checks: full: a sample, of which no interval is told here")
    # As in the report: one drawn scenario among written ones makes no sample of them.
    for written in ("written", "library"):
        assert "a sample" not in evalkit("choose", str(runs / written), "--look", "1").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "is no run folder"),
        (("written", "written"), "'acceptance' is in two of the runs"),
        (("written", "other"), "the runs are of different scenarios; choose from each by itself"),
        (("written", "--look", "-1"), "--look"),
    ],
)
def test_what_cannot_be_chosen_from_is_one_line(runs: Path, words: tuple[str, ...], said: str) -> None:
    named = [str(runs / word) if (runs / word).exists() else word for word in words]
    found = evalkit("choose", *named)
    assert found.exit_code == 2
    assert said in found.output
