"""The examples of the pages run as they stand, and what the pages say of them is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from evalkit.cli.init import ALWAYS, PATIENCE, chosen_families
from evalkit.scenarios.suites import library_families
from tests.harnesses.episodes import LOOP

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
#: A scenario that is played in no time.
ONE = "partial_completion::migration-reports-at-four-of-six"
#: One that a plain agent does right.
PLAIN = "backup-succeeds"
#: One of each family that docs/ci.md plays.
PAIR = "refusal::declined-once-by-chance pause_turn::pauses-then-reports"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def blocks(page: str) -> Iterator[tuple[str, str]]:
    for block in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield block["language"], block["text"]


def shell(command: str, here: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, executable="/bin/bash", cwd=here, env={**os.environ, "PATH": PATH, **more},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def named(page: str, here: Path) -> None:
    """Write the examples that begin with a file's name."""
    for language, text in blocks(page):
        name = text.splitlines()[0].lstrip("#/ ")
        if language in ("yaml", "python", "js") and re.fullmatch(r"[\w./-]+\.\w+", name):
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text)


def test_strategies(tmp_path: Path) -> None:
    named("docs/strategies.md", tmp_path)
    done = shell(
        f"evalkit run -s careful.yaml -s patient:patient -s acceptance {ONE} --no-charts --out r",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    # The checks, the evidence, and no channel that would tell the model to say STOP.
    assert "careful" in done.stdout.splitlines()[0]
    shown = shell("evalkit strategies show careful.yaml", tmp_path).stdout
    assert "offers        text only" in shown


@pytest.mark.parametrize("agent", ["my_agent.py"])
def test_ci(tmp_path: Path, agent: str) -> None:
    """From nothing to a gate, by ``init`` and by hand; then the action's own steps on the same project.

    The agent imports nothing, and of a family one scenario is played: the commands are what is looked at.
    """
    (tmp_path / agent).write_text(LOOP)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    commands = [
        line.partition("#")[0].strip()
        for language, text in blocks("docs/ci.md")
        if language == "sh"
        for line in text.splitlines()
    ]
    assert commands[0] == f"evalkit init {agent}"
    for command in commands:
        quick = command.replace(" init ", f" init --suite {PLAIN} ").replace("refusal pause_turn", PAIR)
        done = shell(quick, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    workflow = yaml.safe_load((tmp_path / ".github/workflows/termination.yml").read_text())
    assert f"--harness {agent}" in str(workflow)
    assert "[tool.evalkit.gate]" in (tmp_path / "pyproject.toml").read_text()
    again = shell(f"evalkit init {agent}", tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("left as it is") == 3
    asked = {"HARNESS": agent, "OUT": "reports/action", "SUITES": PLAIN}
    assert action(tmp_path, **asked) == [0, 0]
    assert (tmp_path / "reports/action/report.html").is_file()
    # An agent that ends after its first turn stops worse: the gate says so.
    text = (tmp_path / agent).read_text()
    (tmp_path / agent).write_text(text.replace("if not calls:", "if calls or not calls:"))
    assert action(tmp_path, **asked) == [0, 1]


def action(here: Path, **inputs: str) -> list[int]:
    """Run the action's own steps, but for what sets a machine up; their exit codes."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text())
    defaults = {name.upper().replace("-", "_"): str(one["default"]) for name, one in steps["inputs"].items()}
    values = {**defaults, **inputs}
    codes = []
    for step in steps["runs"]["steps"]:
        if step.get("name") in ("run", "gate"):
            assert set(step["env"]) <= set(values)
            codes.append(shell(f"set -e; {step['run']}", here, **values).returncode)
    return codes


def pasted(told: str) -> str:
    """The command that ``init`` prints for a shell: all of its last lines."""
    lines = told.splitlines()
    return "\n".join(lines[next(at for at, line in enumerate(lines) if line.startswith("  evalkit ")) :])


def test_init_for_a_project_of_another_language(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"mine": "1"}}')
    done = shell(f"evalkit init -s gate --suite {ONE}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'strategies = ["gate"]' in (tmp_path / "evalkit.toml").read_text()
    workflow = (tmp_path / ".github/workflows/termination.yml").read_text()
    assert "setup-node" in workflow
    assert "pip install 'evalkit-endings'" in workflow
    assert " scenarios correct: reports/baseline/index.html" in done.stdout
    assert "the baseline accepts no false dones\n" in done.stdout


def test_what_init_prints_catches_a_worse_version_the_second_time(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("done_when: acceptance\n")
    told = shell(f"evalkit init -s mine.yaml --suite {ONE}", tmp_path).stdout
    first = shell(pasted(told), tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    (tmp_path / "mine.yaml").write_text("done_when: silence\n")
    second = shell(pasted(told), tmp_path)
    assert second.returncode == 1, second.stdout + second.stderr
    assert "gate: regression" in second.stdout
    # One that cannot be planned is no occasion to hold the run before it against the baseline.
    (tmp_path / "mine.yaml").write_text("done_when: acceptence\n")
    assert shell(pasted(told), tmp_path).returncode == 2


def test_init_says_what_the_baseline_accepts(tmp_path: Path) -> None:
    told = shell(f"evalkit init -s silence --suite {ONE}", tmp_path).stdout
    assert "the baseline accepts 1 false done\n" in told


def test_init_plays_again_what_the_baseline_was_played_with(tmp_path: Path) -> None:
    shell("evalkit init -s gate --suite refusal --suite pause_turn", tmp_path)
    again = shell("evalkit init -s gate", tmp_path)
    assert "evalkit run pause_turn refusal -s gate --out" in again.stdout


def test_init_plays_what_is_quick_enough() -> None:
    sizes = {**dict.fromkeys(library_families(), 10), "stop_hook": 5, "contradictory_stop": 90}
    every, none = chosen_families(sizes, 0.01)
    assert (set(every), none) == (set(library_families()), ())
    most, left = chosen_families(sizes, 1.0)
    assert set(ALWAYS) <= set(most)
    assert sum(sizes[family] for family in most) <= PATIENCE
    assert "stop_hook" in most
    assert "contradictory_stop" in left
    assert chosen_families(sizes, 60.0)[0] == tuple(sorted(ALWAYS))
    assert chosen_families({"refusal": 3}, 1.0) == (("refusal",), ())


@pytest.mark.parametrize(
    ("package", "lock", "steps"),
    [
        ('{"dependencies": {"mine": "1"}}', True, "npm ci"),
        ('{"devDependencies": {"mine": "1"}}', False, "npm install"),
        ('{"dependencies": {}}', False, ""),
        ("", False, ""),
    ],
)
def test_ci_installs_of_node_what_there_is(tmp_path: Path, package: str, lock: bool, steps: str) -> None:
    (tmp_path / "agent.mjs").write_text("")
    if package:
        (tmp_path / "package.json").write_text(package)
    if lock:
        (tmp_path / "package-lock.json").write_text("{}")
    told = shell("evalkit init agent.mjs --no-run", tmp_path).stdout
    workflow = yaml.safe_load((tmp_path / ".github/workflows/termination.yml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["termination"]["steps"] if "run" in step]
    assert [run for run in runs if run.startswith("npm")] == ([steps] if steps else [])
    assert ("package.json names no dependencies" in told) == (not steps)
    assert "NPM" not in str(workflow)


@pytest.mark.parametrize(
    ("before", "after"), [("venv", "venv\nreports/\n"), ("/reports/\n", "/reports/\n"), (None, None)]
)
def test_init_keeps_runs_out_of_commits(tmp_path: Path, before: str | None, after: str | None) -> None:
    file = tmp_path / ".gitignore"
    if before is not None:
        file.write_text(before)
    told = shell("evalkit init -s gate --no-run", tmp_path).stdout
    assert (file.read_text() if file.exists() else None) == after
    assert ("there is no .gitignore here" in told) == (before is None)


@pytest.mark.parametrize(
    ("there", "said"), [("", True), ("requirements.txt", False), ("pyproject.toml", False)]
)
def test_init_says_what_ci_does_not_install(tmp_path: Path, there: str, said: bool) -> None:
    (tmp_path / "agent.py").write_text("")
    if there:
        (tmp_path / there).write_text("")
    told = shell("evalkit init agent.py --no-run", tmp_path).stdout
    assert ("CI does not install what the harness imports" in told) == said


def test_a_new_scenario_is_what_check_takes(tmp_path: Path) -> None:
    assert shell("evalkit scenarios new mine", tmp_path).returncode == 0
    checked = shell("evalkit scenarios check mine.yaml", tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert "1 of 1 scenarios are sound" in checked.stdout


@pytest.mark.slow
def test_a_contract(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(LOOP)
    commands = next(text for language, text in blocks("docs/harnesses.md") if " contract " in text)
    for command in commands.splitlines():
        done = shell(command, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert " passed" in done.stdout
