"""The commands as a user meets them: output, errors in one line, exit codes."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click import HelpFormatter
from click.testing import CliRunner, Result

from evalkit.cli import COMMANDS, main
from evalkit.cli.terminal import help_width
from evalkit.reports.write import draws
from evalkit.stats.strategy_comparison import FEWEST
from tests.helpers import document

EXAMPLE = "migration-reports-at-four-of-six"
PLAIN = [{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def test_the_examples_run(here: Path) -> None:
    result = call("run", EXAMPLE, "-s", "silence", "-s", "gate", "--out", "r", "--no-charts")
    assert result.exit_code == 0
    assert "open r/index.html" in result.output
    summary = json.loads((here / "r" / "summary.json").read_text())
    assert summary["schema"] == "evalkit.summary/1"
    rows = {row["strategy"]: row for row in summary["rows"] if row["family"] == row["checks"] == "all"}
    assert rows["silence"]["outcomes"] == {"done/reachable": 1}
    assert rows["gate"]["outcomes"] == {"done/complete": 1}
    unclosed = rows["silence"]["unclosed"]
    assert {"count": 0, "base": 0, "rate": None, "low": None, "high": None}.items() <= unclosed.items()
    kinds = {(row["family"], row["checks"]) for row in summary["rows"]}
    assert kinds == {("all", "all"), ("partial_completion", "all"), ("all", "full")}


def test_one_level_of_checks_alone(here: Path) -> None:
    suite = ("finish_batch", "-s", "silence", "-s", "gate", "--no-charts")
    result = call("run", *suite, "--checks", "none", "--out", "r")
    assert result.exit_code == 0
    assert "Your harness can run no checks: take gate." in result.output
    assert "No checks, 3 scenarios: nothing mechanical to ask" in result.output
    with (here / "r" / "episodes.csv").open(newline="") as file:
        assert {row["checks"] for row in csv.DictReader(file)} == {"none"}
    refused = call("run", EXAMPLE, "--checks", "weak")
    assert refused.exit_code == 2
    assert "--checks weak: no scenario here has such checks; they have: full" in refused.output


def test_json_is_all_there_is_on_stdout(here: Path) -> None:
    command = [sys.executable, "-m", "evalkit", "run", EXAMPLE, "-s", "gate", "--out", "r", "--json"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads((here / "r" / "summary.json").read_text())
    assert done.stdout == (here / "r" / "summary.json").read_text()


def test_show_tells_the_episode_turn_by_turn(here: Path) -> None:
    call("run", EXAMPLE, "-s", "silence", "-s", "gate", "--out", "r", "--no-charts")
    shown = call("show", "r", f"{EXAMPLE}/gate").output
    assert "→ nudged: These items are still open: search, admin." in shown
    assert "*** the work is complete from here" in shown
    assert "outcome: done/complete (done_when) after 9 turns" in shown
    assert call("show", "r", "1").output == shown
    silent = call("show", "r", f"{EXAMPLE}/silence").output
    assert "fell for: say (claim partial), turn 6" in silent


def test_what_failed_is_listed_the_worst_first_and_each_line_is_a_command(here: Path) -> None:
    wrong = "cut-payment-still-parses"
    first = call("run", EXAMPLE, wrong, "-s", "silence", "--out", "r", "--no-charts").output
    listed = call("show", "r")
    assert listed.exit_code == 0
    head, *lines = listed.output.splitlines()
    assert head == "2 episodes are not correct, the worst first:"
    assert [line.split("#")[1] for line in lines] == [" spoiled", " false done"]
    assert lines[0].split("#")[0].strip() in first.partition("next:")[2]
    for line in lines:
        words = line.split("#")[0].split()[1:]
        assert "not correct" in call(*words).output
    assert call("show", "r", EXAMPLE).output == call("show", "r", f"{EXAMPLE}/silence").output


def test_a_scenario_of_several_lists_them(here: Path) -> None:
    call("run", EXAMPLE, "-s", "gate", "-s", "silence", "--out", "r", "--no-charts")
    _, *lines = call("show", "r", EXAMPLE).output.splitlines()
    shown = [line.split()[3:] for line in lines]
    assert shown == [[f"{EXAMPLE}/silence", "#", "false", "done"], [f"{EXAMPLE}/gate", "#", "correct"]]
    call("run", EXAMPLE, "-s", "gate", "--out", "good", "--no-charts")
    assert call("show", "good").output == "every episode is correct\n"


def test_show_tells_what_the_worker_did(here: Path) -> None:
    scenario = "worker-killed-after-a-posting"
    run = call("run", scenario, "--harness", "worker:gate", "--out", "worker", "--no-charts")
    assert run.exit_code == 0, run.output
    shown = call("show", "worker", "0")
    assert shown.exit_code == 0, shown.output
    assert "The worker is killed; another goes on from its record." in shown.output
    assert "ended done" in shown.output


def test_report_writes_the_same_files_again(here: Path) -> None:
    call("run", EXAMPLE, "-s", "gate", "--out", "r", "--no-charts")
    before = {file.name: file.read_bytes() for file in (here / "r").glob("*.[cjm][sd]*")}
    assert call("report", "r", "--no-charts").exit_code == 0
    assert before == {file.name: file.read_bytes() for file in (here / "r").glob("*.[cjm][sd]*")}


@pytest.mark.long
def test_charts_are_drawn_and_the_svg_is_the_same_each_time(here: Path) -> None:
    call("run", EXAMPLE, "-s", "silence", "-s", "gate", "--out", "r", "--charts")
    charts = here / "r" / "charts"
    names = {file.name for file in charts.iterdir()}
    assert {"outcomes-full.svg", "cost-full.svg", "heat-false-done.svg"} <= names
    assert not any(name.endswith((".png", ".pdf")) for name in names)
    before = {file.name: file.read_bytes() for file in charts.glob("*.svg")}
    call("report", "r", "--charts")
    assert before == {file.name: file.read_bytes() for file in charts.glob("*.svg")}
    call("report", "r", "--png")
    assert (charts / "outcomes-full.png").exists()


@pytest.mark.long
def test_a_small_run_draws_charts_where_they_are_asked_for(here: Path) -> None:
    said = call("run", EXAMPLE, "-s", "gate", "--out", "r").output
    assert said.endswith("\n  evalkit report r --charts\n")
    assert not (here / "r" / "charts").exists()
    elsewhere = call("report", "r", "--out", "other").output
    assert "\n  evalkit report r --charts --out other\n" in elsewhere
    assert "--charts" not in call("report", "r", "--charts").output
    assert (here / "r" / "charts").exists()
    assert "--charts" not in call("report", "r", "--no-charts").output


def test_from_which_size_on_charts_are_drawn() -> None:
    sizes = [{"run": {"scenarios": count}} for count in (FEWEST - 1, FEWEST)]
    assert [draws(size, None) for size in sizes] == [False, True]
    assert [draws(size, True) for size in sizes] == [True, True]
    assert not any(draws(size, False) for size in sizes)
    for command in ("run", "report"):
        assert f"where there are {FEWEST} scenarios" in " ".join(call(command, "--help").output.split())


@pytest.mark.long
def test_scenarios(here: Path) -> None:
    listed = call("scenarios", "list").output
    assert EXAMPLE in listed
    assert f"scenario: {EXAMPLE}" in call("scenarios", "show", EXAMPLE).output
    assert call("scenarios", "new", "mine").exit_code == 0
    assert call("scenarios", "check", "mine.yaml").output == (
        "mine: list_items, do_item, claims partial [nudges], do_item (2 turns), claims done "
        "-> done/complete after 6 turns (oracle)\n1 of 1 scenarios are sound\n"
    )
    assert call("scenarios", "new", "mine").exit_code == 2
    assert call("run", "mine.yaml", "-s", "gate", "--no-charts").exit_code == 0
    stuck = document([{"say": "No.", "claim": "blocked"}], accept=["done/complete"])
    (here / "stuck.yaml").write_text(yaml.safe_dump(stuck))
    failed = call("scenarios", "check", "stuck.yaml")
    assert failed.exit_code == 1
    assert "the ideal harness is not correct on it" in failed.output
    assert "accepted: done/complete" in failed.output


def test_the_schema_is_the_one_beside_the_library() -> None:
    from evalkit.scenarios.suites import library_folder

    assert call("scenarios", "schema").output == (library_folder() / "schema.json").read_text()


def test_strategies(here: Path) -> None:
    assert "gate" in call("strategies", "list").output
    shown = call("strategies", "show", "gate").output
    assert "acceptance() & verifier(sees='evidence'" in shown
    assert "refusal       fallback  (not the default)" in shown
    (here / "mine.py").write_text(
        "from evalkit import Strategy, conditions as c\nmine = Strategy(done_when=c.acceptance(), nudges=1)\n"
    )
    assert "nudges        1  (not the default)" in call("strategies", "show", "mine:mine").output
    run = call("run", EXAMPLE, "-s", "mine:mine", "-s", "gate", "--out", "r", "--no-charts")
    assert run.exit_code == 0
    assert "mine:mine" in run.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "nowhere.yaml"], "evalkit: nowhere.yaml: cannot be read: No such file or directory"),
        (["run", "bad.yaml"], "evalkit: bad.yaml:1: field 'family' is missing"),
        (["run", "-s", "gaet"], "evalkit: unknown strategy 'gaet' (did you mean 'gate'?); known: silence,"),
        (["run", "--baseline", "gate", "-s", "silence"], "baseline 'gate' is not among the strategies"),
        (["run", "--seeds", "0"], "evalkit: seeds must be at least 1, got 0"),
        (["run", "--resume", "gone"], "evalkit: gone: is no run folder"),
        (
            ["run", "event.yaml", "-s", "gate"],
            "nothing to run: events: the reference loop has no notion of: crash",
        ),
        (["report", "gone"], "evalkit: gone: is no run folder"),
        (["show", "gone", "1"], "evalkit: gone: is no run folder"),
        (["strategies", "show", "gaet"], "evalkit: unknown strategy 'gaet'"),
        (["scenarios", "show", "gone"], "no such file, folder or family"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(here: Path, words: list[str], message: str) -> None:
    (here / "bad.yaml").write_text("scenario: x\n")
    events = document([*PLAIN[:1], {"crash": True}, *PLAIN[1:]], scenario="events")
    (here / "event.yaml").write_text(yaml.safe_dump(events))
    result = call(*words)
    assert result.exit_code == 2
    assert message in result.output
    _, hint = result.output.splitlines()
    assert hint.startswith("hint: evalkit ")
    assert not (here / "reports").exists()


def test_a_scenario_with_events_is_reported_and_the_others_run(here: Path) -> None:
    events = document([*PLAIN[:1], {"crash": True}, *PLAIN[1:]], scenario="events")
    plain = document(PLAIN, scenario="plain")
    (here / "s.yaml").write_text(yaml.safe_dump_all([events, plain]))
    result = call("run", "s.yaml", "-s", "gate", "--out", "r", "--no-charts")
    assert result.exit_code == 0
    assert "1 scenario was left out" in result.output
    summary = json.loads((here / "r" / "summary.json").read_text())
    assert summary["run"]["not_expressible"] == {"events": "the reference loop has no notion of: crash"}


def test_a_custom_strategy_that_raises_harms_no_other(here: Path) -> None:
    (here / "broken.py").write_text(
        "from evalkit import Strategy, conditions as c\n"
        "def boom(view): raise KeyError('gone')\n"
        "broken = Strategy(done_when=c.when(boom))\n"
    )
    result = call("run", EXAMPLE, "-s", "broken:broken", "-s", "gate", "--out", "r", "--no-charts")
    # A contender that raised in every episode evaluated nothing, which is said and is never green.
    assert result.exit_code == 1
    said = "no evaluation: broken:broken failed by itself in its only episode: KeyError: 'gone'"
    assert said in result.output
    rows = json.loads((here / "r" / "summary.json").read_text())["rows"]
    outcomes = {row["strategy"]: row["outcomes"] for row in rows if row["family"] == "all"}
    assert outcomes["broken:broken"] == {"error/reachable": 1}
    assert outcomes["gate"] == {"done/complete": 1}
    assert "KeyError: 'gone'" in (here / "r" / "episodes.csv").read_text()


def test_doctor_says_what_is_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_CACHE", str(here / "empty"))
    result = call("doctor")
    assert result.exit_code == 0
    for word in (
        "matplotlib",
        "worlds items, ledger, inbox, repo, files",
        "set up 1 of ",
        "openai-agents, openai-agents-node",
        "_EVALKIT_COMPLETE=bash_source",
    ):
        assert word in " ".join(result.output.split())


def test_doctors_lines_stand_in_columns(here: Path) -> None:
    lines = [line for line in call("doctor").output.splitlines() if line.startswith("  ")]
    (column,) = {line.index("items, ledger") for line in lines if line.startswith("  worlds")}
    assert [line for line in lines if line[column - 1] != " " or line[column] == " "] == []


def test_words_are_completed(here: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "evalkit"],
        env={"_EVALKIT_COMPLETE": "bash_complete", "COMP_WORDS": "evalkit sc", "COMP_CWORD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "plain,scenarios\n"


@pytest.mark.long
@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("strategies", "list"),
        ("strategies", "show", "gate"),
        ("scenarios", "list", "partial_completion", "budgets"),
        ("scenarios", "check", EXAMPLE, "forty-accounts-stopped-at-three"),
        ("harnesses", "list"),
        ("transcripts", "formats"),
        ("study", "giving-up", EXAMPLE, "--workers", "1"),
    ],
)
def test_what_is_said_is_no_wider_than_asked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch, columns: str, words: tuple[str, ...]
) -> None:
    """But for rows of a table, and words that are longer."""
    monkeypatch.setenv("COLUMNS", columns)
    result = call(*words)
    assert result.exit_code == 0
    wide = [line for line in result.stdout.splitlines() if len(line) > int(columns)]
    assert [line for line in wide if not line.startswith("|") and " " in line.strip()] == []


def test_every_command_loads_and_has_help() -> None:
    for name in COMMANDS:
        assert call(name, "--help").exit_code == 0


HEAVY = ("anthropic", "openai", "pandas", "matplotlib", "numpy", "scipy", "jsonschema", "rich", "mcp", "h11")


def test_no_list_of_commands_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each first sentence stands there to its end, at any width."""
    for columns in ("80", "60"):
        monkeypatch.setenv("COLUMNS", columns)
        for name in ("harnesses", "scenarios", "strategies", "study", "task", "transcripts", "cassettes"):
            said = CliRunner().invoke(main, [name, "--help"]).output
            assert "..." not in said.split("Commands:")[1], (name, said)


def test_nothing_heavy_is_loaded_for_nothing() -> None:
    program = (
        "import sys, evalkit, evalkit.cli\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(evalkit.cli.main, ['--help']).exit_code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_loads_nothing_that_click_would_load_for_archives_and_paths() -> None:
    program = (
        "import sys, click\n"
        "before = set(sys.modules)\n"
        "from evalkit.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "evalkit.cli" in loaded
    assert not loaded & {"shutil", "pathlib", "evalkit.cli.run", "msgspec"}


@pytest.mark.parametrize(("columns", "width"), [("60", 58), ("200", 78), ("10", 50), ("none", 78), ("0", 78)])
def test_help_is_as_wide_as_click_makes_it(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert help_width() == HelpFormatter().width == width


def cpu_seconds(*words: str) -> float:
    """CPU time of a command, which a busy machine changes less than its duration."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_loads_little_more_than_click() -> None:
    """The goal of 150 ms over an empty program leaves what click takes, and half as much again."""
    rounds = [
        (cpu_seconds("-c", "pass"), cpu_seconds("-c", "import click"), cpu_seconds("-m", "evalkit", "--help"))
        for _ in range(3)
    ]
    empty, click, helped = (min(times) for times in zip(*rounds, strict=True))
    assert helped - empty < 1.6 * (click - empty)


def test_a_run_with_a_strategy_file_is_shown_from_any_folder(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "mine.yaml").write_text("done_when: silence\n")
    (here / "shown_anywhere.py").write_text(
        "from evalkit import Strategy, conditions\nown = Strategy(done_when=conditions.silence())\n"
    )
    run = call("run", EXAMPLE, "-s", "mine.yaml", "-s", "shown_anywhere:own", "--out", "r", "--no-charts")
    assert run.exit_code == 0, run.output
    shown = [call("show", "r", number).output for number in "01"]
    assert all("outcome: done/reachable" in text for text in shown)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for number, text in zip("01", shown, strict=True):
        elsewhere = call("show", str(here / "r"), number)
        assert (elsewhere.exit_code, elsewhere.output) == (0, text)
