"""``evalkit prove`` and ``evalkit mutants``: exit codes, what is printed, what is saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli.mutants import command as mutants
from evalkit.cli.prove import command as prove
from evalkit.scenarios.loader import load_file
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS


def run_prove(*words: str) -> Result:
    return CliRunner().invoke(prove, list(words))


def test_proved() -> None:
    result = run_prove("gate", "--items", "1", "--property", "no_false_done")
    assert result.exit_code == 0, result.output
    assert "no false done  proved: " in result.stdout
    assert "transitions" in result.stdout


def test_what_a_proof_does_not_cover_is_named_beside_it() -> None:
    said = run_prove("certificate", "--property", "no false done", "--items", "1").output
    assert "proved" in said
    line = "it cannot catch beyond them: Invariants broken beside the items, and items it never listed."
    assert line in said


def test_refuted_with_a_transcript_and_a_scenario(tmp_path: Path) -> None:
    saved = tmp_path / "found" / "silence.yaml"
    result = run_prove("silence", "--property", "no_false_done", "--save", str(saved))
    assert result.exit_code == 1, result.output
    assert "refuted in 1 turn\n" in result.stdout
    assert "1. the model reports progress" in result.stdout
    assert "outcome: done/reachable (done_when) after 1 turn, " in result.stdout
    (scenario,) = load_file(saved)
    strategy = PRESETS["silence"].strategy
    episode = run_episode(Arena(scenario, strategy.offers), strategy, 0)
    assert episode.outcome == "done/reachable"
    assert episode.turns == 1


def test_all_counterexamples_of_a_strategy_fit_in_one_file(tmp_path: Path) -> None:
    saved = tmp_path / "found.yaml"
    assert run_prove("silence", "--items", "2", "--save", str(saved)).exit_code == 1
    assert len({scenario.name for scenario in load_file(saved)}) == 4


def test_long_transcripts_are_cut() -> None:
    result = run_prove("infinite_nudge", "--property", "always ends")
    assert result.exit_code == 1
    assert "lines more of the same kind" in result.stdout
    assert "outcome: never/reachable (evalkit's cap) after 60 turns" in result.stdout


def test_json() -> None:
    result = run_prove("keyword", "--items", "1", "--json")
    assert result.exit_code == 1
    (proof,) = json.loads(result.stdout)["proofs"]
    answers = {found["property"]: found for found in proof["results"]}
    assert answers["no_false_done"]["answer"] == "refuted"
    assert answers["no_false_done"]["counterexample"]["outcome"] == "done/reachable"
    assert answers["capped_nudges"]["how"] == "it has no cap on nudges"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected a STRATEGY or --all"),
        (("gate", "--all"), "expected a STRATEGY or --all"),
        (("nobody",), "unknown strategy 'nobody'"),
        (("gate", "--property", "safe"), "unknown property 'safe'"),
        (("gate", "--items", "2", "--skippable", "3"), "skippable must be from 0"),
        (("gate", "--items", "9"), "9 is not in the range"),
        (("tests.search.test_commands:broken", "--items", "1"), "ZeroDivisionError: division by zero"),
    ],
)
def test_usage(words: tuple[str, ...], said: str) -> None:
    result = run_prove(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


def broken() -> object:
    from evalkit.strategies import Strategy
    from evalkit.strategies import conditions as c

    return Strategy(done_when=c.when(lambda view: bool(1 / 0), finite=True))


def test_nothing_to_save(tmp_path: Path) -> None:
    saved = tmp_path / "none.yaml"
    result = run_prove("gate", "--items", "1", "--property", "no_false_done", "--save", str(saved))
    assert result.exit_code == 0
    assert "nothing is refuted" in result.stderr
    assert not saved.exists()


@pytest.mark.long
def test_table_of_all_presets(tmp_path: Path) -> None:
    saved = tmp_path / "proofs.md"
    result = run_prove("--all", "--items", "1", "--property", "no_false_done", "--save", str(saved))
    assert result.exit_code == 0, result.output
    text = saved.read_text()
    assert all(f"| `{name}` |" in text for name in PRESETS)
    assert "| `gate` | ✓ 13/13 |" in text


def test_mutants(tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    assert run_prove("silence", "--property", "no_false_done", "--save", str(made)).exit_code == 1
    words = [str(made), "--mutant", "words_as_done", "--workers", "1"]
    result = CliRunner().invoke(mutants, words)
    assert result.exit_code == 0, result.output
    assert "mutation score: 1 of 1 mutants caught by 1 scenarios; 1 made incorrect" in result.stdout
    result = CliRunner().invoke(mutants, [*words, "--mutant", "refusal_for_ever", "--json"])
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert (answer["score"], answer["survivors"]) == (1, ["refusal_for_ever"])
    assert answer["mutants"][0]["by"] == ["silence-no-false-done"]


def test_mutants_usage() -> None:
    result = CliRunner().invoke(mutants, ["--mutant", "nobody"])
    assert result.exit_code == 2
    assert "unknown mutant 'nobody'; known: cap_removed" in result.stderr
    assert CliRunner().invoke(mutants, ["no-such-suite"]).exit_code == 2
