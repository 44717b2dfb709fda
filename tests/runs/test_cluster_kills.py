"""A run on Dask whose parts are killed: its parent, its scheduler, a worker that waits."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import yaml

from evalkit.containment.folders import sweep
from tests.cli.test_interrupts import SLEEPS, run, sleeping
from tests.processes import gone, living
from tests.runs.test_cluster import Machines
from tests.runs.test_interrupted import begin, finish, until

pytestmark = pytest.mark.dask


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "sleeps.yaml").write_text(yaml.safe_dump(SLEEPS))
    return tmp_path


@pytest.mark.long
def test_nothing_outlives_a_parent_that_is_killed(place: Path) -> None:
    chosen = [
        "sleeps.yaml",
        "-s",
        "silence",
        "-s",
        "gate",
        "--workers",
        "2",
        "--engine",
        "dask",
        "--out",
        "r",
    ]
    process = begin(run("run", *chosen), place)
    until(lambda: process.poll() is not None or sleeping(place))
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert gone(f"{place}/", 4.0), living(f"{place}/")
    sweep(place / "temporary")
    assert [path.name for path in (place / "temporary").iterdir()] == []


@pytest.mark.long
def test_a_scheduler_that_is_killed_is_a_line_and_the_run_is_there(place: Path) -> None:
    machines = Machines(place)
    try:
        chosen = ["sleeps.yaml", "-s", "silence", "--engine", f"dask://{machines.address}", "--out", "r"]
        process = begin(run("run", *chosen), place)
        until(lambda: process.poll() is not None or sleeping(place))
        assert process.poll() is None, process.communicate()
        machines.scheduler.kill()
        _, said = process.communicate(timeout=60)
    finally:
        machines.stop()
    assert process.returncode == 2
    assert "evalkit: --engine dask: the scheduler is gone" in said
    assert "evalkit run --resume r" in said
    assert "Traceback" not in said
    assert gone(f"{place}/", 4.0), living(f"{place}/")
    finish([*run("report", "r"), "--no-charts"], place)
