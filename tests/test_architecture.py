"""The map is held to the code: every room, file, name and test in it is there, and its invariants hold."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.drivers.in_process import LoopMind, drive
from evalkit.loop.state import State
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.stage.stage import Stage
from evalkit.strategies.conditions import when
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import View

ROOT = Path(__file__).parents[1]
PAGES = ("docs/architecture.md", "docs/definitions.md", "CONTRIBUTING.md")
TEXT = (ROOT / PAGES[0]).read_text(encoding="utf-8")
SCENARIO = """
scenario: two-jars
family: partial_completion
task: {prompt: Fill every jar., done_when: Every jar is filled.}
world: {kind: items, items: [jar-red, jar-blue]}
model:
  - call: list_items
  - work: 1
  - {say: "One is filled.", claim: partial}
  - work: rest
  - {say: "Both are filled.", claim: done}
"""


def _ticked(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


@pytest.mark.parametrize("page", PAGES)
def test_paths_are_there(page: str) -> None:
    paths = [
        name for name in _ticked(page) if re.fullmatch(r"(evalkit|tests|docs)/[\w/.-]+(::[\w:]+)?", name)
    ]
    for name in paths:
        path, _, inner = name.partition("::")
        assert (ROOT / path).exists(), name
        if inner:
            last = inner.rpartition("::")[2]
            assert f"def {last}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_names_beside_a_file_are_in_it() -> None:
    """A name followed by its file in brackets, as the walks have it."""
    found = re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)`\s*\((?:[^)`]*?)`(evalkit/[\w/]+\.py)`", TEXT)
    assert len(found) >= 15
    for name, file in found:
        here: object = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        for part in name.split("."):
            assert hasattr(here, part), f"{file} has no {name}"
            here = getattr(here, part)


def _layers() -> list[set[str]]:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = told["tool"]["importlinter"]["contracts"][0]["layers"]
    return [set(re.findall(r"evalkit\.(\w+)", layer)) for layer in layers]


def test_the_rooms_are_the_ones_that_the_contract_orders() -> None:
    """The table has each room once, in the contract's order; every folder of the package is a room."""
    table = [
        re.findall(r"`evalkit/(\w+)`", line) for line in TEXT.splitlines() if line.startswith("| `evalkit/")
    ]
    told = [set(names) for names in table if names and len(names) <= 2]
    rooms = [name for names in told for name in names]
    ordered = [name for layer in _layers() for name in layer if name in rooms]
    folders = {path.parent.name for path in (ROOT / "evalkit").glob("*/__init__.py")}
    assert folders - {"_harnesses"} == set(rooms) == set(ordered)
    place = {name: number for number, layer in enumerate(_layers()) for name in layer}
    heights = [max(place[name] for name in names) for names in told]
    assert heights == sorted(heights)


def test_no_module_leads_back_to_itself() -> None:
    """No circles between modules, imports for types and within functions included.

    The package itself is left out: it names what it re-exports.
    """
    files = {
        str(file.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__"): file
        for file in (ROOT / "evalkit").rglob("*.py")
    }
    leads: dict[str, set[str]] = {}
    for name, file in files.items():
        targets = leads[name] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    targets.add(full if full in files else node.module)
        targets &= files.keys() - {"evalkit", name}
    # What leads nowhere is taken away until nothing does; what stays goes round in a circle.
    while ends := [name for name, targets in leads.items() if not targets & leads.keys()]:
        for name in ends:
            del leads[name]
    assert {name: sorted(targets & leads.keys()) for name, targets in leads.items()} == {}


def _imports(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_core_does_no_io() -> None:
    allowed = {
        "__future__",
        "collections",
        "copy",
        "dataclasses",
        "difflib",
        "enum",
        "evalkit",
        "functools",
        "hashlib",
        "json",
    }
    allowed |= {"itertools", "math", "msgspec", "operator", "re", "tomllib", "typing"}
    for file in (ROOT / "evalkit" / "core").rglob("*.py"):
        assert _imports(file) <= allowed, file.name
        calls = [
            node.func.id
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert not {"open", "print", "input", "exec", "eval"} & set(calls), file.name


def test_the_wall_clock_is_asked_where_a_date_is_wanted() -> None:
    """It may jump: what ends or waits goes by ``time.monotonic``."""
    asked = re.compile(r"\btime\.time\b|\btime_ns\b|datetime\.(?:now|utcnow|today)\b|\bdate\.today\b")
    files = {
        str(file.relative_to(ROOT / "evalkit"))
        for file in (ROOT / "evalkit").rglob("*.py")
        if asked.search(file.read_text(encoding="utf-8"))
    }
    # When a task was queued and changed, until when a lease says it holds, dates in headers, recordings.
    stamps = {"cli/hook.py", "cli/task.py", "media/recordings.py"}
    assert files == stamps | {"worker/crew.py", "worker/worker.py", "models/pacing.py"}


def _reachable(value: object, depth: int, seen: set[int]) -> list[object]:
    """What attributes lead to, public or not, methods and modules left out."""
    if depth == 0 or id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return []
    seen.add(id(value))
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", {})]
    inner = [getattr(value, name) for name in names if hasattr(value, name)]
    if isinstance(value, dict):
        inner.extend(value.values())
    if isinstance(value, tuple | list | set | frozenset):
        inner.extend(value)
    return [value, *(found for part in inner for found in _reachable(part, depth - 1, seen))]


def test_a_view_leads_to_no_oracle_and_no_script() -> None:
    """Nothing public of a view is, or has, an oracle or a script; its instruments show no world."""
    met: list[View] = []

    def look(view: View) -> bool:
        met.append(view)
        return False

    run_episode(Arena(load_text(SCENARIO)[0], Offered()), Strategy(done_when=when(look)), 0)
    assert met
    for view in met:
        public = [getattr(view, name) for name in type(view).__slots__ if name != "instruments"]
        things = [thing for value in public for thing in _reachable(value, 6, set())]
        assert not [thing for thing in things if hasattr(thing, "holds") and callable(thing.holds)]
        assert not [thing for thing in things if isinstance(thing, Stage) or hasattr(thing, "player")]
        shown = {name for name in dir(view.instruments) if not name.startswith("_")}
        assert not shown & {"world", "oracle", "holds", "settled", "player", "script", "stage", "place"}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_strategy_carries_nothing_from_run_to_run(name: str) -> None:
    strategy = PRESETS[name].strategy
    arena = Arena(load_text(SCENARIO)[0], strategy.offers)
    # What a strategy derives of itself when it is first used is no state of that run.
    first = run_episode(arena, strategy, 0)
    before = pickle.dumps(strategy)
    assert run_episode(arena, strategy, 0) == first
    assert pickle.dumps(strategy) == before


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_loops_state_holds_no_messages(name: str) -> None:
    """All states on the way are hashable, and hold neither a turn, a result, a request, nor a call's id."""
    strategy = PRESETS[name].strategy
    stage = Arena(load_text(SCENARIO)[0], strategy.offers).stage(0, cap=60)
    mind = LoopMind(strategy, stage.task, stage)
    states: list[State] = []
    ids: set[str] = set()

    def watch(turn: Turn, *_: object) -> None:
        states.append(mind.state)
        ids.update(call.id for call in turn.calls)

    drive(mind, stage, watch=watch)
    assert states
    assert ids
    for state in states:
        hash(state)
        parts = _reachable(state, 8, set())
        assert not [part for part in parts if isinstance(part, Turn | Request | Result)]
        assert not [word for word in ids if word in str(msgspec.to_builtins(state, str_keys=True))]


def test_workers_write_no_store() -> None:
    """What runs in a worker process, and the rooms it uses, have no way to a store that is open to write."""
    files = [ROOT / "evalkit/runs/chunk_worker.py", ROOT / "evalkit/runs/cluster_tasks.py"]
    files += (ROOT / "evalkit/scoring").glob("*.py")
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "evalkit.runs.store":
                assert not {"Store", "_connect"} & {alias.name for alias in node.names}, file.name


def test_nothing_lies_about_at_the_top() -> None:
    """What a profiler or a trial left is not committed; a folder without a history has nothing committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    tops = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    rooms = {"evalkit", "tests", "docs", "scenarios", "harnesses", "cassettes", "reports", ".ci"}
    files = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "action.yml"}
    assert tops <= rooms | files | {".gitignore", "pyproject.toml", "requirements.lock"}
