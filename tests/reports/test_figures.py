"""How figures are written, what the answer says, and that levels of checks stay apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.reports.answer import answer, caveats, facts
from evalkit.reports.charts.tables import chart_table
from evalkit.reports.formatting import at_level, count, number, p_value, percent, rate
from evalkit.reports.markdown import report_markdown
from evalkit.reports.tables import causes_table, level_tables, stops_table, twins_table
from evalkit.reports.terminal import print_table
from evalkit.reports.verifier_sweep import sweeps
from evalkit.stats.summary import summarize
from tests.made_runs import FALSE_DONE, entry, grid, made_run, recipe, row


def cell(hits: float, of: int, **more: Any) -> dict[str, Any]:
    shares = {"scenario_count": hits, "scenario_base": of, "scenario_rate": hits / of if of else None}
    return {"count": 0, "base": of, "low": None, "high": None, **shares, **more}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (cell(3, 12), "3 of 12"),
        (cell(12, 58), "12 of 58 (21 %)"),
        (cell(41.5, 58), "41.5 of 58 (72 %)"),
        (cell(0, 0), "n/a"),
        (cell(10, 20, low=0.28, high=0.72), "10 of 20 (50 %) [28 %, 72 %]"),
    ],
)
def test_rate(value: dict[str, Any], text: str) -> None:
    assert rate(value) == text


def test_numbers() -> None:
    assert [percent(v) for v in (0, 0.004, 0.5, 0.998, 1)] == ["0 %", "0.4 %", "50 %", "99.8 %", "100 %"]
    assert [number(v) for v in (None, 7.25, 1234.5)] == ["n/a", "7.2", "1,234"]
    assert [p_value(v) for v in (None, 0.0001, 0.25)] == ["–", "< 0.001", "0.250"]
    assert [count(v) for v in (4.0, 4.333)] == ["4", "4.3"]


def summary(folder: Path) -> dict[str, Any]:
    """Twenty scenarios with full checks, five without: ``sure`` wins the first, ``lucky`` the second."""
    entries = [entry(f"s{n}", "one" if n % 2 else "two", "full" if n < 20 else "none") for n in range(25)]
    right = [[n < 4, n < 20, n >= 12] for n in range(25)]
    return summarize(grid(folder, right, strategies=["base", "sure", "lucky"], entries=entries))


def test_the_answer_is_one_sentence_and_what_it_rests_on(tmp_path: Path) -> None:
    found = answer(summary(tmp_path))
    assert found.sentence == "Your harness can run full checks: take sure. None: lucky. Unsure: lucky."
    full, none, unsure = found.picks
    assert full.result == "20 of 20 (100 %) scenarios correct"
    assert full.faults == "0 false dones, 0 premature stops"
    # Seven tests are shown, sure against lucky among them: its p-value, 2 / 2^12, is the second smallest.
    assert full.against.startswith("against lucky (8 of 20 (40 %)): better in 12, worse in 0; a difference")
    assert none.against.endswith("better in 5, worse in 0; fewer than 20 scenarios: counts only")
    assert "4.0 turns and 100 tokens an episode" in full.cost
    # Lucky is second with full checks and first without: the only one near the top at each level.
    assert unsure.result.startswith("second with full checks (8 of 20 (40 %)), first with no checks")
    assert unsure.faults == "12 + 0 false dones, 12 + 0 premature stops"


def test_the_telling_episode_is_the_nearest_rivals_worst_fault(tmp_path: Path) -> None:
    full, *_ = answer(summary(tmp_path)).picks
    assert full.telling is not None
    assert (full.telling.by, full.telling.fault) == ("lucky", "calls unfinished work done")
    # From s4 to s11 both others fail; of those the first by name.
    assert full.telling.episode == "s10/lucky"
    assert full.telling.view == "case=s10/lucky/0/sure"


def test_a_tie_is_said_and_not_settled_by_cost(tmp_path: Path) -> None:
    rows = [row(n, n, 0) for n in range(3)] + [row(3 + n, n, 1, tokens=10) for n in range(3)]
    entries = [entry(f"s{n}") for n in range(3)]
    found = answer(summarize(made_run(tmp_path, recipe(entries, ["a", "b"]), rows)))
    assert found.sentence == "Your harness can run full checks: take a or b."
    assert found.picks[0].against == "a tie: as many correct, as many false dones and premature stops"


def test_of_equally_correct_ones_fewer_false_dones_come_first(tmp_path: Path) -> None:
    false = {**FALSE_DONE, "premature_stop": 0, "tokens": 1}
    other = {"correct": 0, "over_continuation": 1}
    rows = [row(0, 0, 0, **false), row(1, 1, 0), row(2, 0, 1, **other), row(3, 1, 1)]
    entries = [entry(f"s{n}") for n in range(2)]
    found = answer(summarize(made_run(tmp_path, recipe(entries, ["cheap", "honest"]), rows)))
    assert found.sentence == "Your harness can run full checks: take honest."
    assert found.picks[0].against.endswith("as often correct, with fewer false dones (0 and 1)")


def test_one_contender_is_no_choice_and_nothing_correct_is_not_taken(tmp_path: Path) -> None:
    alone = answer(summarize(grid(tmp_path / "a", [[0]], strategies=["a"])))
    assert alone.sentence == "Only a was run: there is nothing to choose from."
    none = answer(summarize(grid(tmp_path / "b", [[0, 0]], strategies=["a", "b"])))
    assert "take nothing of this, none is ever correct" in none.sentence


def test_the_answer_is_the_same_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = summary(tmp_path)
    print_table(found, folder="reports/x", width=80)
    terminal = " ".join(capsys.readouterr().out.split())
    markdown = " ".join(report_markdown(found).split())
    for pick in answer(found).picks:
        for _, text in facts(pick):
            assert " ".join(text.split()) in terminal
            assert " ".join(text.split()) in markdown


@pytest.mark.parametrize("width", [60, 80])
def test_the_terminal_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str], width: int) -> None:
    names = ["verifier_transcript", "a_harness_of_my_own_with_a_long_name_indeed:gate", "gate"]
    entries = [entry(f"a-scenario-with-a-long-name-{n}") for n in range(200)]
    found = summarize(grid(tmp_path, [[1, n % 2, 0] for n in range(200)], strategies=names, entries=entries))
    print_table(found, folder="reports/x", width=width)
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if len(line.rstrip()) > width and "evalkit show" not in line] == []
    assert out[0].startswith("Your harness can run full checks: take verifier_transcript.")
    # A command is never broken: it is there to be pasted.
    assert any(line.startswith("  evalkit show reports/x a-scenario-with-a-long-name-0/") for line in out)


def test_what_may_be_claimed(tmp_path: Path) -> None:
    said = " ".join(caveats(summary(tmp_path)))
    assert "written, not sampled" in said
    assert "never pooled" in said
    people = [entry(f"p{n}", population=True) for n in range(5)]
    sampled = summarize(grid(tmp_path / "p", [[1]] * 5, strategies=["a"], entries=people))
    assert "clustered by scenario" in " ".join(caveats(sampled))


def test_no_text_pools_the_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = summary(tmp_path)
    print_table(found)
    for text in (capsys.readouterr().out, report_markdown(found, "2026-11-30")):
        assert "20 of 20 (100 %)" in text
        assert "% of 25" not in text
        # Over both levels sure has 20 of 25 and lucky 13: said nowhere but in the paired comparison.
        assert "of 25 (" not in text


def test_tables(tmp_path: Path) -> None:
    found = summary(tmp_path)
    full, none = level_tables(found)
    assert [row[0].text for row in full["rows"]] == ["sure", "lucky", "base"]
    assert none["scenarios"] == 5
    stops = stops_table(found)["rows"]
    assert [line["name"] for line in stops] == ["sure", "lucky", "base"]
    assert stops[2] == {"name": "base", "family": "all", "cells": [21, 0, 25, 25, 75]}
    moves = causes_table(found)
    assert moves["names"] == [row["strategy"] for row in at_level(found, "all")]
    assert [cell.text for cell in moves["moves"][0]["cells"]] == ["5", "12", "21"]


def test_twins_table(tmp_path: Path) -> None:
    entries = [entry("x", twin="y"), entry("y", twin="x")]
    found = summarize(grid(tmp_path, [[1, 1], [0, 1]], strategies=["words", "world"], entries=entries))
    table = twins_table(found)
    assert table["coin"] == "0.25"
    assert dict(zip(table["names"], table["totals"], strict=True)) == {"world": "1", "words": "0"}
    assert table["rows"] == [{"pair": "x / y", "cells": [True, False]}]


def test_pass_k_is_over_the_scenarios_in_which_seeds_matter(tmp_path: Path) -> None:
    found = summarize(grid(tmp_path, [[[1, 0, 1]], [1], [1]], strategies=["s"]))
    (table,) = level_tables(found)
    assert table["pass_k"]["scenarios"] == 1
    # 2 of 3 right: a pair of tries is all right in 1 of 3.
    assert table["pass_k"]["rows"] == [{"name": "s", "cells": ["0.7 of 1", "0.3 of 1", "0 of 1"]}]


def test_charts_are_there_as_tables(tmp_path: Path) -> None:
    found = summary(tmp_path)
    outcomes = chart_table(found, "outcomes-full")
    assert outcomes is not None
    assert outcomes["heads"] == ["strategy, scenarios", "done, complete", "called done, was not"]
    assert outcomes["rows"][1] == ["lucky", "8", "12"]
    forest = chart_table(found, "forest-full")
    assert forest is not None
    assert forest["rows"][0][:5] == ["sure", "20", "16", "0", "+80"]
    families = chart_table(found, "heat-correct")
    assert families is not None
    assert families["rows"][0] == ["one", "10/12", "6/12", "2/12"]
    turns = chart_table(found, "turns")
    assert turns is not None
    assert turns["rows"][0] == ["sure", *["4"] * 7, "0"]
    # Its figures stand in the comparison.
    assert chart_table(found, "cost-full") is None


def test_a_sweep_has_a_table_of_its_own(tmp_path: Path) -> None:
    names = ["plain", "reader", "reader@misses=0.1", "reader@misses=0.4", "reader@fooled=0.1"]
    right = [[n < 5, n < 9, n < 7, n < 5, n < 9] for n in range(10)]
    found = summarize(grid(tmp_path, right, strategies=names))
    assert [row["strategy"] for row in at_level(found, "all")] == ["reader", "plain"]
    assert {pair["strategy"] for pair in found["pairs"]} == {"reader"}
    misses, fooled = sweeps(found)
    assert [value["scenario_count"] for value in misses.rates.values()] == [9, 7, 5]
    assert (misses.rival, misses.below, fooled.below) == ("plain", 0.4, None)
    assert "If the verifier errs" in report_markdown(found)
