"""The guide's example, taken from the page and run as a user would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evalkit.core.tasks import Tool
from evalkit.worlds import _SHIPPED, world_class

PAGE = (Path(__file__).parents[2] / "docs" / "worlds.md").read_text(encoding="utf-8")

_RUN = """
import sys
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.soundness import check_scenario
from evalkit.scoring.episode import run_episode
from evalkit.strategies.registry import find_strategy
(scenario,) = load_suites(["tickets.yaml"])
print("findings", check_scenario(scenario, {}))
for name in sys.argv[1:]:
    strategy = find_strategy(name)
    episode = run_episode(Arena(scenario, strategy.offers), strategy, 0)
    print(name, episode.outcome, episode.turns)
"""


def block(language: str) -> str:
    """The page's code of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """What installing the example's package would leave: the module and its entry points."""
    (tmp_path / "tickets.py").write_text(block("python"))
    (tmp_path / "tickets.yaml").write_text(block("yaml"))
    project = tomllib.loads(block("toml"))["project"]
    about = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def run(package: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, *command], cwd=package, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_gives_what_the_page_says(package: Path) -> None:
    told = re.findall(r"`(\w+)` ends `([\w/]+)` in (\d+)", PAGE)
    assert len(told) == 2
    printed = run(package, "-c", _RUN, *(name for name, _, _ in told)).splitlines()
    assert printed == ["findings []", *(f"{name} {outcome} {turns}" for name, outcome, turns in told)]


@pytest.mark.long
def test_the_commands_of_the_page_run(package: Path) -> None:
    commands = [line[2:].split() for line in block("console").splitlines()]
    assert [command[:2] for command in commands] == [["evalkit", "scenarios"], ["evalkit", "run"]]
    for command in commands:
        run(package, "-c", "from evalkit.cli import main; main()", *command[1:])


def test_the_page_names_every_shipped_world_and_option() -> None:
    from evalkit.worlds import world_class, world_kinds

    for kind in world_kinds():
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |")]
        named = set(re.findall(r"`(\w+)`", row.split("|")[3]))
        assert named == world_class(kind).option_names


def test_the_table_of_tools_is_what_the_worlds_have() -> None:
    """docs/scenarios.md names each tool of each shipped world, its arguments, and what it is."""
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    section = page.split("## Tools\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{kind}` | `{tool.name}` | {', '.join(f'`{name}`' for name in tool.arguments)} | {_kind(tool)} "
        f"| {tool.description} |"
        for kind in _SHIPPED
        for tool in world_class(kind).tools
    ]
    kinds = re.findall(r"^\| `(\w+)` \|", PAGE.split("## The shipped ones")[1], re.MULTILINE)
    assert sorted(kinds) == sorted(_SHIPPED)


def _kind(tool: Tool) -> str:
    if tool.enumerates:
        return "lists the items"
    if tool.read_only:
        return "reads"
    return "does an item" if tool.does else "changes"
