"""A population that is run: a scenario for each drawn task, at each level of what nobody saw."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.core.tasks import Offered
from evalkit.fit.document import document
from evalkit.fit.estimates import ASSUMED, FALSE
from evalkit.scenarios.drawn_scenarios import MIDDLE, drawn_documents, levels
from evalkit.scenarios.loader import ScenarioError, load_text
from evalkit.scenarios.population import Population
from evalkit.scenarios.population_draws import Draw
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import library_families, library_folder, load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS
from tests.fit.made import persona


def evalkit(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def population(tasks: int = 6, draws: int = 3, **more: object) -> Population:
    plain = {"assumed": dict(ASSUMED), "draws": draws, "longest": 30}
    return msgspec.structs.replace(persona(tasks, 2), **{**plain, **more})


def drawn(of: Population) -> list[Scenario]:
    return load_text(document(of), "p.yaml")


def _outcome(scenario: Scenario, strategy: str) -> str:
    return run_episode(Arena(scenario, Offered()), PRESETS[strategy].strategy, 0).outcome


def test_the_levels_are_the_middle_and_every_corner() -> None:
    found = levels(population())
    assert next(iter(found)) == MIDDLE
    assert len(found) == 1 + 2**3
    assert found["low-high-low"] == {"repairs": 0.0, "silent": 1.0, "channel": 0.0}
    narrowed = population(assumed={**ASSUMED, "silent": msgspec.structs.replace(FALSE, high=0.0)})
    assert len(levels(narrowed)) == 1 + 2**2


def test_there_is_a_scenario_for_each_drawn_task_and_level() -> None:
    found = drawn(population(tasks=6, draws=2))
    names = {scenario.name for scenario in found}
    assert len(names) == len(found) == 2 * 6 * 9
    assert "persona[draw=1,task=5,assumed=middle]" in names
    assert {scenario.persona for scenario in found} == {"persona"}


def test_a_name_fixes_what_is_drawn() -> None:
    """The same draws again, and others under another name."""
    one, again = (list(drawn_documents(population())) for _ in range(2))
    other = list(drawn_documents(msgspec.structs.replace(population(), population="other")))
    assert one == again
    assert [document for _, document in one] != [document for _, document in other]


@pytest.mark.long
def test_every_drawn_scenario_is_sound() -> None:
    """The ideal harness is correct on it: what was done wrong by the script is handed over."""
    for scenario in drawn(population(tasks=8, draws=1)):
        assert not [finding for finding in check_scenario(scenario, {}) if finding.fails], scenario.name


def test_silence_plays_a_life_as_it_was_recorded() -> None:
    """It ends where the life ended, and what was false there is false."""
    of = population(tasks=8, draws=2)
    played = {scenario.name: scenario for scenario in drawn(of)}
    seen = set()
    for number in range(2):
        draw = Draw(of, number)
        for task in range(8):
            life = next(
                life for life in (draw.life(task, trial) for trial in range(50)) if life.exit == "done"
            )
            if not all(part.asked for part in life.parts[:-1]) or life.turns > 30:
                # An end that nobody answered is where silence ends.
                continue
            scenario = played[f"persona[draw={number},task={task},assumed=low-low-low]"]
            outcome = _outcome(scenario, "silence")
            assert outcome.startswith("done/")
            assert (outcome == "done/complete") == (life.truth == "right"), scenario.name
            seen.add(life.truth)
    assert {"right", "undone"} <= seen


def test_what_is_assumed_decides_what_a_nudge_does() -> None:
    """Work that was left undone is completed by acceptance where repairs is 1, and never where it is 0."""
    found = drawn(population(tasks=10, draws=2))
    undone = [s for s in found if s.summary.endswith("(undone).")]
    by = {
        end: {_outcome(s, "acceptance") for s in undone if f"assumed={end}-low-low" in s.name}
        for end in ("low", "high")
    }
    assert by["high"] == {"done/complete"}
    assert not any(outcome.startswith("done/") for outcome in by["low"])


def test_what_was_done_wrong_is_repaired_by_nobody() -> None:
    wrong = [s for s in drawn(population(tasks=10, draws=2)) if s.summary.endswith("(wrong act).")]
    assert wrong
    assert {_outcome(s, "acceptance") for s in wrong} == {"escalated/stuck"}


def test_without_truth_what_is_true_is_assumed_too() -> None:
    of = population(tasks=4, draws=1, refused="no run has a label")
    of = msgspec.structs.replace(of, assumed={**ASSUMED, "false": FALSE})
    by = {
        end: {_outcome(s, "silence") for s in drawn(of) if s.name.endswith(f"{end}]")}
        for end in ("low", "high")
    }
    assert "done/complete" in by["low"]
    assert not any(outcome == "done/complete" for outcome in by["high"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('population: "persona"', 'population: "Not a name"', "population: 'Not a name' is not a name"),
        ("draws: 3", "draws: 0", "draws: expected 1 to 200, found 0"),
        ("drawn: 6", "drawn: 5000", "drawn: expected 1 to 500, found 5000"),
        ("recordings: 12", "recordings: twelve", "recordings"),
        ("low: 0.0, high: 1.0", "low: 0.9, high: 0.1", "assumed.repairs: expected 0 to 1 in order"),
        ("source:", "sauce:", "unknown field"),
        ("lengths:\n  opening: [4, 3, 2, 1]", "lengths: {}", "lengths: counts no tool turns"),
        ("count: 1000000,", "count: 99000000,", "its counts, correlation or effective size cannot be"),
    ],
)
def test_a_document_that_cannot_be_is_one_line(old: str, new: str, said: str) -> None:
    text = document(population(draws=3))
    assert old in text
    with pytest.raises(ScenarioError) as caught:
        load_text(text.replace(old, new, 1), "p.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("p.yaml")
    assert "\n" not in str(caught.value)


# What a run of it says


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("fitted")
    file = folder / "persona.yaml"
    file.write_text(document(population(tasks=4, draws=3)), encoding="utf-8")
    told = evalkit(
        *("run", str(file), "-s", "silence", "-s", "acceptance", "--out", str(folder / "run"), "--no-charts")
    )
    assert told.exit_code == 0, told.output
    return folder / "run", told.output


def test_a_run_says_what_is_assumed_and_not_validated(played: tuple[Path, str]) -> None:
    folder, told = played
    report = (folder / "report.md").read_text(encoding="utf-8")
    page = (folder / "index.html").read_text(encoding="utf-8")
    for text in (report, page, " ".join(told.split())):
        assert "persona: not validated" in text
    assert "Interventions: not validated." in report
    assert "| acceptance |" in report
    assert "0, by construction" in report
    assert "drawn from a fitted population: its own table has the intervals" in report


def test_figures_carry_doubt_and_assumptions(played: tuple[Path, str]) -> None:
    summary = msgspec.json.decode((played[0] / "summary.json").read_bytes())
    (fitted,) = summary["populations"]
    silence, acceptance = fitted["rows"]["silence"], fitted["rows"]["acceptance"]
    # What an agent does when it is told what is open makes no difference to who never tells it.
    assert silence["completed"]["assumed"] == 0
    assert acceptance["completed"]["assumed"] > 0
    assert (
        acceptance["completed"]["least"]
        <= acceptance["completed"]["value"]
        <= acceptance["completed"]["most"]
    )
    assert acceptance["false_done"]["constructed"]
    assert not silence["false_done"]["constructed"]


def test_a_population_is_never_pooled_with_a_written_library(tmp_path: Path) -> None:
    """A folder's populations are left out, the shipped library's too, unless they are named."""
    for suites in ((), (str(library_folder()),)):
        assert not [scenario for scenario in load_suites(suites) if scenario.family == "fitted"]
    assert "fitted" not in library_families()
    (tmp_path / "fitted").mkdir()
    file = tmp_path / "fitted" / "mine.yaml"
    file.write_text(document(population(tasks=1, draws=1)), encoding="utf-8")
    written = (library_folder() / "refusal").glob("*.yaml")
    one = next(iter(sorted(written)))
    (tmp_path / one.name).write_text(one.read_text(encoding="utf-8"), encoding="utf-8")
    assert {scenario.family for scenario in load_suites((str(tmp_path),))} == {"refusal"}
    for named in (file, file.parent):
        assert {scenario.family for scenario in load_suites((str(named),))} == {"fitted"}
