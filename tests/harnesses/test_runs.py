"""Harnesses in a run: beside strategies, in the same report, their transcripts kept."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.harnesses.find import BEHAVIOURS
from evalkit.reports.harnesses.league.figures import kept_league
from evalkit.runs.plan import make_plan
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.suites import load_suites
from tests.harnesses.episodes import LOOP, PLAIN, scenario
from tests.harnesses.test_whole_life import CRASH, SAVES

TAGGED = """
scenario: label-nobody-knows
family: contradictory_stop
summary: ''
task: {prompt: Do it., done_when: It is done.}
world: {kind: items, items: [one-thing]}
model:
  - call: list_items
  - {say: Soon., claim: partial, phase: commentary}
  - work: rest
  - {say: Done., claim: done}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(PLAIN + "---" + TAGGED)
    Path("agent.py").write_text(LOOP)
    return tmp_path


def evalkit(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_program_beside_a_strategy(folder: Path) -> None:
    result = evalkit(
        "run", "suite.yaml", "-s", "gate", "--harness", "agent.py", "--out", "out", "--no-charts", "--json"
    )
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    rows = {
        row["harness"]: row["outcomes"]
        for row in summary["rows"]
        if (row["family"], row["checks"]) == ("all", "all")
    }
    assert rows == {"loop": {"done/complete": 2}, "agent.py": {"done/reachable": 1}}
    assert list(summary["run"]["not_expressible"]) == ["label-nobody-knows × agent.py"]
    shown = evalkit("show", "out", "two-parcels/agent.py")
    assert shown.exit_code == 0, shown.output
    assert "text: One of two is sent." in shown.output
    assert "outcome: done/reachable (exit:0) after 3 turns" in shown.output
    assert "first wrong decision: turn 3: the harness ended as done" in shown.output


#: A program that is killed and goes on, as a folder.
GOES_ON = """
name = "keeper"
summary = ""
run = ["{python}", "agent.py"]
dialect = "anthropic"
resident = true
events = {crash = true}
"""


@pytest.fixture
def keeper(folder: Path) -> Path:
    (folder / "keeper").mkdir()
    (folder / "keeper" / "harness.toml").write_text(GOES_ON)
    (folder / "keeper" / "agent.py").write_text(SAVES)
    Path("crash.yaml").write_text(CRASH.replace("MOMENT", "tool, before: true"))
    return folder


@pytest.mark.parametrize("beside", [(), ("-s", "gate")], ids=["alone", "beside a strategy"])
def test_a_kill_is_played_with_a_program_that_the_reference_loop_cannot(
    keeper: Path, beside: tuple[str, ...]
) -> None:
    given = ("run", "crash.yaml", *beside, "--harness", "keeper", "--out", "out", "--no-charts", "--json")
    result = evalkit(*given)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    played = {row["harness"]: row["outcomes"] for row in summary["rows"] if row["family"] == "all"}
    assert played["keeper"] == {"done/complete": 1}
    left_out = ["power-cut × gate"] if beside else []
    assert list(summary["run"]["not_expressible"]) == left_out


@pytest.mark.long
def test_the_guarantees_of_a_program(keeper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the library's events two scenarios: all of them take a minute.
    few = [scenario for scenario in load_suites(("resume_effects",)) if scenario.events][:2]
    monkeypatch.setattr("evalkit.cli.harness_guarantees.load_suites", lambda: few)
    given = ("harnesses", "guarantees", "keeper", "--workers", "2", "--runs", "runs", "--out", "page.md")
    result = evalkit(*given)
    assert result.exit_code == 0, result.output
    page = Path("page.md").read_text(encoding="utf-8")
    # It saves before it asks: a call that was answered to nobody is made again.
    assert "| keeper | – | at least once | once | once | once | **twice** |" in page
    assert "- keeper, after the effect: twice. `evalkit harnesses run keeper killed-after-the-effect`" in page
    began = Path("runs/play-1/keeper").stat().st_ino
    assert evalkit(*given).exit_code == 0
    assert Path("runs/play-1/keeper").stat().st_ino == began
    shown = evalkit("harnesses", "run", "keeper", "killed-after-the-effect")
    assert "not correct: duplicate effects" in shown.output


@pytest.mark.long
def test_the_league_of_a_program_to_which_something_may_happen(
    keeper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the library one scenario with a kill and one without; of the behaviours two.
    few = load_suites(("worker-killed-before-the-first-effect", "migration-reports-at-four-of-six"))
    behaviours = load_file(BEHAVIOURS)[:2]
    monkeypatch.setattr("evalkit.cli.harness_league.load_suites", lambda given: behaviours if given else few)
    monkeypatch.setattr("evalkit.cli.harness_league.load_file", lambda file: behaviours)
    result = evalkit("harnesses", "league", "--harness", "keeper", "--workers", "1", "--out", "out")
    assert result.exit_code == 0, result.output
    league = kept_league(Path("out"))
    assert league is not None
    # It has no variant for events, so it stands in all three tables.
    assert list(league.rows) == list(league.lives) == ["keeper"]
    assert "migration-reports-at-four-of-six" in league.rows["keeper"].library
    (one,) = league.lives["keeper"].lived
    assert (one.scenario, one.player, one.why) == ("worker-killed-before-the-first-effect", "keeper", "")
    page = Path("out/README.md").read_text(encoding="utf-8")
    assert "## The whole life: what happens" in page
    # It ends at the first answer without a call, and the work is not done.
    assert "| framework | crash |\n| --- | --- |\n| keeper | 0 of 1, premature stop 1 |" in page


def test_a_request_that_breaks_a_rule_of_one_api_is_counted_and_costs_no_episode(folder: Path) -> None:
    broken = LOOP.replace(
        "while True:",
        """import urllib.error
try:
    post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", {"model": "m", "max_tokens": 9, "messages": []})
except urllib.error.HTTPError as refused:
    assert refused.code == 400
while True:""",
        1,
    )
    Path("agent.py").write_text(broken)
    result = evalkit("run", "suite.yaml", "--harness", "agent.py", "--out", "out", "--no-charts")
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader(Path("out/episodes.csv").read_text().splitlines())
    assert (row["dialect_faults"], row["protocol_faults"], row["outcome"]) == ("1", "0", "done/reachable")
    shown = evalkit("show", "out", "two-parcels/agent.py").output
    assert "dialect faults" in shown
    assert "messages_empty" in shown


def test_a_run_goes_on_where_it_was_interrupted(folder: Path) -> None:
    assert evalkit("run", "suite.yaml", "--harness", "agent.py", "--out", "out", "--no-charts").exit_code == 0
    result = evalkit("run", "--resume", "out", "--no-charts")
    assert result.exit_code == 0, result.output
    assert "1 of 1 episodes are there" in result.output
    Path("agent.py").write_text(LOOP + "\n# changed\n")
    assert "'agent.py' has changed since" in evalkit("run", "--resume", "out", "--no-charts").stderr


def test_an_unknown_harness_is_one_line(folder: Path) -> None:
    result = evalkit("run", "suite.yaml", "--harness", "nobody")
    assert result.exit_code == 2
    assert result.stderr.startswith("evalkit: harness 'nobody': no such folder, program")


def test_one_episode_by_itself(folder: Path) -> None:
    result = evalkit("harnesses", "run", "agent.py", "progress-report")
    assert result.exit_code == 0, result.output
    assert "outcome: done/reachable (exit:0) after 4 turns" in result.output


@pytest.mark.long
def test_a_check_and_the_shipped_loop_that_needs_nothing(folder: Path) -> None:
    result = evalkit("harnesses", "check", "gated-loop", "agent.py")
    assert result.output.splitlines() == [
        "gated-loop: done/complete (closed) in 6 turns",
        "agent.py: done/complete (exit:0) in 6 turns",
    ]
    Path("broken.py").write_text("raise SystemExit(4)")
    broken = evalkit("harnesses", "check", "broken.py")
    assert broken.exit_code == 1
    assert "broken.py: error/reachable (exit:4) in 0 turns; expected done/complete" in broken.output


def test_the_list_names_pins_and_variants() -> None:
    result = evalkit("harnesses", "list")
    assert result.exit_code == 0
    for word in ("pydantic-ai:validator", "openai-agents==", "ai@", "gated-loop"):
        assert word in result.output


@pytest.mark.parametrize(
    ("strategies", "said"),
    [((), "the harness has no notion of: crash"), (("gate",), "the reference loop has no notion of: crash")],
)
def test_what_the_reference_loop_lacks_is_no_reason_where_it_does_not_play(
    strategies: tuple[str, ...], said: str
) -> None:
    plan = make_plan(
        [scenario(CRASH.replace("MOMENT", "request"))], {}, strategies, 1, harnesses=("gated-loop",)
    )
    assert list(plan.recipe.not_expressible.values()) == [said]
