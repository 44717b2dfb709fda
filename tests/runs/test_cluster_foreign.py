"""Foreign harnesses on the workers of a cluster: each episode once, whatever happens to a worker."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from evalkit.harnesses.find import find_harness, shipped
from evalkit.runs import foreign_on_cluster
from evalkit.runs.engine import EngineError
from evalkit.runs.foreign_on_cluster import pack, unpack
from tests.cli.test_interrupts import run
from tests.harnesses.episodes import PLAIN
from tests.harnesses.test_whole_life import HEAD
from tests.runs.test_cluster import Machines
from tests.runs.test_interrupted import begin, until

pytestmark = pytest.mark.long

EPISODES = 24
#: It tells by its ending where it was played.
TELLS = (
    HEAD
    + """
import helper, time
def run(job):
    time.sleep(helper.SECONDS)
    messages = begin(job)
    while turn(job, messages):
        pass
    return {"ending": "done", "native": os.environ["HOME"]}

serve(run)
"""
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a harness of two files, many small scenarios, and a cache of its own."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "cache"))
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "agent.py").write_text(TELLS)
    (agent / "helper.py").write_text("SECONDS = 0.2\n")
    manifest = 'name = "tells"\nsummary = ""\nrun = ["{python}", "agent.py"]\ndialect = "anthropic"\n'
    (agent / "harness.toml").write_text(manifest + "resident = true\n")
    suite = tmp_path / "suite"
    suite.mkdir()
    for number in range(EPISODES):
        (suite / f"{number}.yaml").write_text(PLAIN.replace("two-parcels", f"parcels-{number}"))
    return tmp_path


@pytest.mark.dask
def test_two_workers_one_killed_nothing_lost_and_nothing_twice(place: Path) -> None:
    machines = Machines(place)
    try:
        words = ["suite", "--harness", "agent", "--engine", f"dask://{machines.address}", "--out", "r"]
        process = begin(run("run", *words, "--no-charts", "--json"), place)
        traces = place / "r" / "traces"
        until(lambda: process.poll() is not None or (traces.is_dir() and len(list(traces.iterdir())) >= 4))
        assert process.poll() is None, process.communicate()
        machines.workers[0].kill()
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
    finally:
        machines.stop()
    base = sqlite3.connect(place / "r" / "episodes.sqlite")
    rows = base.execute("select cell, ending, native from episode order by cell").fetchall()
    base.close()
    assert [cell for cell, _, _ in rows] == list(range(EPISODES))
    assert {ending for _, ending, _ in rows} == {"done"}
    assert len({native for _, _, native in rows}) >= 2
    assert len(list(traces.iterdir())) == EPISODES


class TestOnItsWay:
    def test_its_files_lie_where_it_is_unpacked(self, place: Path) -> None:
        (place / "agent" / "node_modules").mkdir()
        (place / "agent" / "node_modules" / "large.js").write_text("x")
        harness = find_harness(str(place / "agent"))
        packed = pack(harness)
        assert sorted(packed.files) == ["agent.py", "harness.toml", "helper.py"]
        there = unpack(packed)
        assert there.folder == place / "cache" / "harnesses" / "brought" / packed.digest
        assert (there.folder / "helper.py").read_text() == "SECONDS = 0.2\n"
        assert there.fingerprint == harness.fingerprint

    def test_one_that_evalkit_ships_is_there(self) -> None:
        assert pack(shipped()["gated-loop"]).files == {}

    def test_a_folder_that_is_too_large_is_said_in_a_line(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(foreign_on_cluster, "LARGEST", 100)
        with pytest.raises(EngineError, match="give the harness a folder of its own"):
            pack(find_harness(str(place / "agent")))
