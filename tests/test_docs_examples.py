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

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
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
        "evalkit run -s careful.yaml -s patient:patient -s acceptance partial_completion --no-charts --out r",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    # The checks, the evidence, and no channel that would tell the model to say STOP.
    assert "careful" in done.stdout.splitlines()[0]
    shown = shell("evalkit strategies show careful.yaml", tmp_path).stdout
    assert "offers        text only" in shown


@pytest.mark.parametrize("agent", ["my_agent.py"])
def test_ci(tmp_path: Path, agent: str) -> None:
    """From nothing to a gate, by ``init`` and by hand; then the action's own steps on the same project."""
    named("README.md", tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    commands = [
        line.partition("#")[0].strip()
        for language, text in blocks("docs/ci.md")
        if language == "sh"
        for line in text.splitlines()
    ]
    assert commands[0] == f"evalkit init {agent}"
    for command in commands:
        done = shell(command, tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    workflow = yaml.safe_load((tmp_path / ".github/workflows/termination.yml").read_text())
    assert f"--harness {agent}" in str(workflow)
    assert "[tool.evalkit.gate]" in (tmp_path / "pyproject.toml").read_text()
    again = shell(f"evalkit init {agent}", tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("left as it is") == 3
    assert action(tmp_path, HARNESS=agent, OUT="reports/action") == [0, 0]
    assert (tmp_path / "reports/action/report.html").is_file()
    # An agent that ends after its first turn stops worse: the gate says so.
    text = (tmp_path / agent).read_text()
    (tmp_path / agent).write_text(text.replace("if not calls:", "if calls or not calls:"))
    assert action(tmp_path, HARNESS=agent, OUT="reports/worse") == [0, 1]


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


def test_init_for_a_project_of_another_language(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    done = shell("evalkit init -s gate --suite partial_completion", tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'strategies = ["gate"]' in (tmp_path / "evalkit.toml").read_text()
    assert "setup-node" in (tmp_path / ".github/workflows/termination.yml").read_text()
    assert " scenarios correct: reports/baseline/index.html" in done.stdout
    by_hand = [line.strip() for line in done.stdout.splitlines() if line.startswith("  evalkit ")]
    assert len(by_hand) == 2
    for command in by_hand:
        tried = shell(command, tmp_path)
        assert tried.returncode == 0, f"{command}: {tried.stdout}{tried.stderr}"


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
