"""What a scenario tells apart, and when it is said to tell nothing."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.scoring.distinguish import distinguish
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS
from tests.helpers import scenario

LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}
REPORT = {"say": "Two are done.", "claim": "partial"}


def test_the_design_s_example_in_small() -> None:
    found = distinguish(scenario([LIST, {"work": 2}, REPORT, {"work": "rest"}, DONE]))
    assert set(found.failed) == {"silence", "read_text", "turn_cap", "artifact"}
    assert set(found.passed) == set(PRESETS) - set(found.failed)
    assert found.reasons["silence"].startswith("done/reachable is not accepted")
    assert found.tells


def test_what_everybody_passes_tells_nothing() -> None:
    found = distinguish(scenario([LIST, {"work": "rest"}, DONE]))
    assert found.failed == ()
    assert not found.tells


def test_seeds_count_where_there_are_choices() -> None:
    moves = [LIST, {"work": 2}, {"either": [{"p": 0.5, "do": [REPORT]}]}, {"work": "rest"}, DONE]
    found = distinguish(scenario(moves), {"silence": PRESETS["silence"].strategy}, seeds=20)
    assert found.seeds == 20
    assert 0 < found.correct["silence"] < 20
    assert found.failed == ("silence",)


@pytest.mark.long
def test_the_command_says_it() -> None:
    name = "migration-reports-at-four-of-six"
    result = CliRunner().invoke(main, ["scenarios", "check", name, "--presets"])
    assert result.exit_code == 0
    assert f"{name}: 15 presets pass, 4 fail" in result.output
    assert "  fail: silence: done/reachable is not accepted" in result.output
    quiet = CliRunner().invoke(main, ["scenarios", "check", "last-words-final", "--presets"])
    assert "0 fail; it tells no preset from another" in quiet.output
    assert CliRunner().invoke(main, ["scenarios", "check", name, "--seeds", "0"]).exit_code == 2


def test_twins_that_a_reader_of_words_tells_apart_are_none() -> None:
    def half(name: str, twin: str, polls: object) -> object:
        wait = {"wait": {"item": "invoices", "polls": polls}}
        return scenario([LIST, {"work": 2}, wait, DONE], scenario=name, twin=twin)

    # The claim never comes in one of them, so that the words differ where they are judged.
    one, other = half("a", "b", 3), half("b", "a", "forever")
    found = check_scenario(one, {"a": one, "b": other})  # type: ignore[arg-type,dict-item]
    assert [finding.message for finding in found] == ["twin 'b': a reader of words alone tells the two apart"]
