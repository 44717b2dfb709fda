"""What a plain install leaves out is one line with the command that brings it, exit 2, everywhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evalkit.extras import DISTRIBUTION, EXTRAS, install

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: A program that asks nothing of its model: what runs it is missing before that matters.
AGENT = "print('never reached')\n"
#: evalkit with some modules not installed: looking for them finds nothing.
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
gone = sys.argv.pop(1).split(",")
class Gone(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in gone:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in gone else known(name, *rest)
from evalkit.cli import main
main(sys.argv[1:])
"""
RUN = ("run", "partial_completion", "-s", "gate")


def test_every_module_is_brought_by_an_extra_that_is_there() -> None:
    for extra in EXTRAS.values():
        assert extra in PROJECT["optional-dependencies"], extra
    assert PROJECT["name"] == DISTRIBUTION
    assert install("h11") == f"pip install '{DISTRIBUTION}[harness]'"


@pytest.mark.parametrize(
    ("gone", "words", "module"),
    [
        ("h11", ("run", "partial_completion", "--harness", "agent.py"), "h11"),
        ("h11", (*RUN, "--dialect", "anthropic"), "h11"),
        ("anthropic,openai", (*RUN, "--dialect", "anthropic"), "anthropic"),
        ("openai", (*RUN, "--model", "anthropic:claude-sonnet-4-6", "--max-tokens", "9"), "openai"),
        ("vcr", ("run", "--replay", str(ROOT / "cassettes" / "anthropic")), "vcr"),
        ("distributed", (*RUN, "--engine", "dask"), "distributed"),
        ("h11", ("serve", "migration-reports-at-four-of-six"), "h11"),
        ("hypothesis", ("falsify", "agent.py"), "hypothesis"),
        ("h11", ("falsify", "agent.py"), "h11"),
        ("matplotlib", (*RUN, "--charts"), "matplotlib"),
        ("matplotlib", ("report", "any", "--pdf"), "matplotlib"),
        ("h11", ("study", "stuck", "partial_completion", "-H", "agent.py"), "h11"),
        ("h11", ("harnesses", "check", "agent.py"), "h11"),
        ("h11", ("harnesses", "run", "agent.py", "migration-reports-at-four-of-six"), "h11"),
    ],
)
def test_it_is_one_line_and_exit_2(tmp_path: Path, gone: str, words: tuple[str, ...], module: str) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, gone, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "none"},
    )
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[1].startswith("hint: evalkit ")
    assert lines[0].startswith("evalkit: ")
    assert f"needs {module}, which is not installed: {install(module)}" in lines[0]
    assert not (tmp_path / "reports").exists()


def test_a_plain_install_plays_a_run_to_its_end(tmp_path: Path) -> None:
    """Nothing that an extra brings is asked for: not when it has been played either."""
    gone = ",".join(EXTRAS)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, gone, *RUN, "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "evalkit show out" in done.stdout
    # What comes next is what works here.
    assert "--charts" not in done.stdout
    assert (tmp_path / "out" / "report.md").is_file()


def test_a_study_of_strategies_needs_no_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, ",".join(EXTRAS), "study", "stuck", "orphan-must-be-done"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "| silence | 1 |" in done.stdout


def test_a_module_of_the_users_own_that_is_missing_is_not_taken_for_an_extra(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nowhere_to_be_found\n")
    words = [sys.executable, "-m", "evalkit", "run", "partial_completion", "-s", "mine:gate"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "nowhere_to_be_found" in done.stderr
    assert "pip install" not in done.stderr
