"""The experiments on the claims: they can come out either way, and the page is what the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.experiments.claims import about_continuing, about_stopping
from evalkit.experiments.claims.bench import UNLIMITED, Bench, completable, premature, with_checks
from evalkit.experiments.claims.catalogue import CLAIMS
from evalkit.experiments.claims.claim import VERDICTS, Claim, Finding, Result
from evalkit.experiments.claims.document import COMMAND, claims_text, run_claims
from evalkit.experiments.claims.number import Number
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.strategies.presets import PRESETS
from tests.helpers import library, scenario

PAGE = Path(__file__).parents[3] / "docs" / "claims.md"
LIBRARY = [loaded for loaded in library() if loaded.world.kind not in ("repo", "files")]
POPULATIONS = load_suites(("populations",))
LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(LIBRARY, POPULATIONS, seeds=60)


@pytest.fixture(scope="module")
def honest() -> Bench:
    """Library and populations with models that do all of the work, say so, list nothing, and nothing else."""
    plain = scenario([{"work": "rest"}, DONE])

    def made(loaded: Scenario) -> Scenario:
        task = msgspec.structs.replace(plain.task, checks=loaded.task.checks)
        return msgspec.structs.replace(
            loaded, moves=plain.moves, world=plain.world, limits=plain.limits, task=task
        )

    return Bench(map(made, LIBRARY), map(made, POPULATIONS), seeds=40)


class TestNumbers:
    def test_shares_of_written_scenarios_have_no_interval_in_words(self) -> None:
        assert Number("x", 3, 12).text == "x: 3 of 12"
        assert Number("x", 3, 12, sampled=True).text.startswith("x: 25.0 % (")
        assert Number("x", 2.54).text == "x: 2.5"
        assert Number("x", 0, 0).text == "x: n/a (nothing in the base)"

    def test_an_empty_base_has_no_share(self) -> None:
        with pytest.raises(ValueError, match="no base"):
            _ = Number("x", 0, 0).rate
        with pytest.raises(ValueError, match="empty base"):
            _ = Number("x", 0, 0, sampled=True).interval

    def test_above_needs_intervals_apart_where_seeds_were_drawn(self) -> None:
        assert Number("x", 6, 10).above(Number("y", 5, 10))
        assert not Number("x", 6, 10, sampled=True).above(Number("y", 5, 10, sampled=True))
        assert Number("x", 600, 1000, sampled=True).above(Number("y", 500, 1000, sampled=True))
        assert not Number("x", 5, 10).above(Number("y", 5, 10))


class TestTheBench:
    def test_the_base_is_respected(self, bench: Bench) -> None:
        found = bench.family("fabricated_success")
        every = bench.count("all", found, "silence", lambda e: e.false_done)
        some = bench.count("some", found, "silence", premature, completable)
        assert every.base == len(found)
        assert some.base is not None
        assert some.base <= len(found)

    def test_an_episode_is_played_once(self, bench: Bench) -> None:
        loaded = bench.library[0]
        assert bench.episode(loaded, "gate") is bench.episode(loaded, "gate", seed=7)

    def test_a_population_without_its_limits(self, bench: Bench) -> None:
        held = bench.share("held", "stuck", "infinite_nudge", lambda e: e.ending == "never")
        free = bench.share("free", f"stuck{UNLIMITED}", "infinite_nudge", lambda e: e.ending == "never")
        assert held.count == 0
        assert free.count > 0

    def test_other_checks_are_another_scenario(self, bench: Bench) -> None:
        loaded = next(s for s in bench.library if s.name == "receipt-lost")
        assert bench.episode(loaded, "acceptance").outcome == "done/complete"
        assert bench.episode(with_checks(loaded, "none"), "acceptance").false_done

    def test_crashes_are_for_those_who_have_the_notion(self, bench: Bench) -> None:
        assert bench.crashes
        assert not {s.name for s in bench.crashes} & {s.name for s in bench.library}

    def test_pairs_are_whole_and_counted_once(self, bench: Bench) -> None:
        pairs = bench.pairs()
        assert len(pairs) >= 20
        assert all(one.twin == other.name and other.twin == one.name for one, other in pairs)


class TestExperiments:
    @pytest.mark.long
    @pytest.mark.parametrize("claim", [pytest.param(c, id=c.id) for c in CLAIMS if c.run is not None])
    def test_each_runs_and_finds_numbers(self, claim: Claim, bench: Bench) -> None:
        assert claim.run is not None
        finding = claim.run(bench)
        assert finding.numbers
        assert Result(claim, finding).verdict in VERDICTS

    def test_a_library_without_the_effect_shows_nothing(self) -> None:
        """Honest work without reports or pauses: nothing tells the treatments apart, so nothing is shown."""
        plain = scenario([LIST, {"work": "rest"}, DONE], family="partial_completion")
        quiet = [
            msgspec.structs.replace(plain, family=name)
            for name in ("partial_completion", "pause_turn", "truncation")
        ]
        named = [msgspec.structs.replace(s, name=s.family) for s in quiet]
        empty = Bench(named, [], seeds=4)
        for run in (about_stopping.absence, about_stopping.pauses, about_stopping.cut_offs):
            assert not run(empty).shown

    @pytest.mark.long
    @pytest.mark.parametrize(
        "claim", [pytest.param(c, id=c.id) for c in CLAIMS if c.run is not None and not c.construction]
    )
    def test_none_stands_where_nothing_goes_wrong(self, claim: Claim, honest: Bench) -> None:
        """Each experiment could come out false: here no model reports, stops or lies, and nothing shows."""
        assert claim.run is not None
        if claim.id in (
            "refusal-to-another-model",
            "children-report-for-parents",
            "record-outlives-the-process",
        ):
            with pytest.raises(ValueError, match="no base"):  # no scenario of the kind is left
                claim.run(honest)
            return
        shown = claim.run(honest).shown
        # That claims that something never happens; the library has the case that speaks against it.
        assert shown is (claim.id == "three-are-enough")

    def test_three_nudges_are_held_against_a_counterexample(self, bench: Bench) -> None:
        finding = about_continuing.three_are_enough(bench)
        assert not finding.shown
        assert "five-reports-in-a-row" in finding.note

    def test_without_the_counterexample_the_claim_would_stand(self) -> None:
        plain = Bench([scenario([LIST, {"work": 1}, {"say": "One."}, {"work": "rest"}, DONE])], [], seeds=2)
        assert about_continuing.three_are_enough(plain).shown

    def test_a_reader_of_words_tells_no_twins_apart(self, bench: Bench) -> None:
        strategy = PRESETS["verifier_claim"].strategy
        pairs = bench.pairs()
        assert not any(bench.episode(a, strategy).twin and bench.episode(b, strategy).twin for a, b in pairs)

    @pytest.mark.parametrize(
        ("one", "other", "rank"),
        [
            ([1, 2, 3], [4, 5, 9], 1.0),
            ([1, 2, 3], [3, 2, 1], -1.0),
            ([1, 1], [2, 3], 0.0),
            ([1, 2, 2, 3], [1, 2, 2, 3], 1.0),
        ],
    )
    def test_ranks(self, one: list[float], other: list[float], rank: float) -> None:
        assert about_continuing.spearman(one, other) == pytest.approx(rank)


class TestVerdicts:
    ONE = scenario([LIST, {"work": 1}, {"say": "One."}, {"work": "rest"}, DONE])

    def test_what_rests_on_one_scenario_says_so(self) -> None:
        (result,) = run_claims([self.ONE], POPULATIONS, 4, ("three-are-enough",))
        assert result.verdict == "shown"
        lone = [loaded for loaded in LIBRARY if loaded.name == "the-list-was-summarised-away"]
        (result,) = run_claims(lone, POPULATIONS, 20, ("lists-are-summarised-away",))
        assert (result.verdict, result.alone) == ("example", (lone[0].name,))
        text = claims_text([result], 20)
        assert "## lists-are-summarised-away: shown by single scenarios" in text
        assert f"Rests on: {result.alone[0]}." in text

    def test_what_follows_from_the_definitions_says_so(self) -> None:
        (result,) = run_claims([], POPULATIONS, 20, ("name-the-open-items",))
        assert result.verdict == "construction"
        assert "*By construction.* The population waits for names" in claims_text([result], 20)

    def test_a_correlation_that_chance_reaches_is_not_shown(self) -> None:
        low = about_continuing.by_chance([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6])
        assert low == pytest.approx(1 / 720, rel=0.5)
        assert about_continuing.by_chance([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5, abs=0.02)

    def test_a_transcript_knows_what_was_answered(self, bench: Bench) -> None:
        """Killed while the model is asked nothing is lost; killed between a call and its answer it is."""
        outcomes = {
            scenario.name: about_continuing._resumes(bench.arena(scenario, PRESETS["gate"].strategy))
            for scenario in bench.crashes
            if scenario.name in ("worker-killed-while-the-model-is-asked", "worker-killed-over-and-over")
        }
        assert outcomes["worker-killed-while-the-model-is-asked"].correct
        assert outcomes["worker-killed-over-and-over"].duplicate_effects == 3


class TestThePage:
    def test_every_claim_is_on_it_with_a_verdict(self) -> None:
        text = PAGE.read_text()
        assert f"`{COMMAND}`" in text
        for claim in CLAIMS:
            line = next(line for line in text.splitlines() if line.startswith(f"## {claim.id}: "))
            verdict = line.partition(": ")[2]
            assert verdict in VERDICTS.values()
            assert (verdict == VERDICTS["outside"]) == (claim.run is None)
        assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)

    def test_what_does_not_hold_is_said(self) -> None:
        claim = Claim("c", "s", "says", "does", "rule", lambda bench: Finding((Number("n", 1, 2),), False))
        text = claims_text([Result(claim, Finding((Number("n", 1, 2),), False))], 5)
        assert "1 claims: 0 shown, 0 shown by single scenarios, 0 true by construction, 1 not shown" in text
        assert "## c: not shown" in text

    @pytest.mark.slow
    def test_it_is_what_the_command_writes(self) -> None:
        results = run_claims(load_suites(), POPULATIONS, 400)
        assert PAGE.read_text() == claims_text(results, 400)


class TestTheCommand:
    def test_one_claim_as_json(self) -> None:
        result = CliRunner().invoke(main, ["claims", "keywords-are-brittle", "models-cannot-tell", "--json"])
        assert result.exit_code == 0
        found = json.loads(result.output)["claims"]
        assert [line["verdict"] for line in found] == ["shown", "outside"]
        assert found[0]["numbers"][0]["base"] > 0

    def test_an_unknown_claim_is_one_line(self) -> None:
        result = CliRunner().invoke(main, ["claims", "all-is-well"])
        assert result.exit_code == 2
        assert "unknown claim 'all-is-well'; known: reports-end-runs" in result.output
