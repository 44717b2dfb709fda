"""Ctrl-C and SIGTERM, whatever is going on: an end in two seconds, one line, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from evalkit.runs.store import FILE
from tests.helpers import document
from tests.processes import living
from tests.runs.test_interrupted import begin, children, until

FILES = {"kind": "files", "items": ["a"], "checks": {"a": {"exists": "a.txt"}}}
SLEEPS = document(
    [{"call": "run", "with": {"command": "touch begun; sleep 61"}}, {"say": "Done."}], world=FILES
)
PLAIN = document([{"work": "rest"}, {"say": "Done.", "claim": "done"}])
#: Starts what would outlive it, and sleeps.
HARNESS = """
import subprocess, sys, time
subprocess.Popen(["sleep", "61"], env={}, start_new_session=True)
for line in sys.stdin: time.sleep(61)
time.sleep(61)
"""
#: Asks a tool of its world that sleeps, and waits for the answer.
ASKS = """
import json, os, urllib.request
body = json.dumps({"command": "sleep 61"}).encode()
url = os.environ["EVALKIT_TOOLS_URL"] + "/run"
urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"}))
"""


def run(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evalkit", *arguments]


def sleeping(place: Path) -> bool:
    """Whether something of a run sleeps: it belongs to the folders that this test has."""
    return bool(living(f"{place}/temporary/evalkit-")) and bool(living("sleep\0" + "61"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "sleeps.yaml").write_text(yaml.safe_dump(SLEEPS))
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(PLAIN))
    for name, text in (
        ("command", HARNESS),
        ("resident", HARNESS),
        ("asks", ASKS),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(text)
        (tmp_path / name / "harness.toml").write_text(
            f'name = "{name}"\nsummary = "sleeps"\nrun = ["{{python}}", "agent.py"]\n'
            f'dialect = "anthropic"\nresident = {str(name == "resident").lower()}\n'
        )
    return tmp_path


SITUATIONS = {
    "a command of a world": ["run", "sleeps.yaml", "-s", "silence", "--workers", "1"],
    "one in a worker": ["run", "sleeps.yaml", "-s", "silence", "-s", "gate", "--workers", "2"],
    "a harness": ["run", "plain.yaml", "--harness", "./command"],
    "a resident harness": ["run", "plain.yaml", "--harness", "./resident"],
    "a tool that a harness waits for": ["run", "sleeps.yaml", "--harness", "./asks"],
    "a harness that is tried": ["harnesses", "check", "./command"],
    "a harness that is searched": ["falsify", "./command"],
}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_sleeps_does_not_hold_it_up(place: Path, situation: str, number: signal.Signals) -> None:
    ended(begin(run(*SITUATIONS[situation]), place), place, number, lambda: sleeping(place))


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_report_is_left_as_soon(place: Path, number: signal.Signals) -> None:
    """While its charts are drawn by two processes."""
    chosen = ["plain.yaml", "-s", "silence", "-s", "gate", "--no-charts", "--out", "made"]
    subprocess.run(run("run", *chosen), cwd=place, check=True, capture_output=True)
    process = begin(run("report", "made", "--charts"), place)
    ended(process, place, number, lambda: len(children(process.pid)) >= 2)
    assert (place / "made" / FILE).exists()


@pytest.mark.long
@pytest.mark.dask
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_of_its_own(place: Path, number: signal.Signals) -> None:
    chosen = ["run", "sleeps.yaml", "-s", "silence", "-s", "gate", "--workers", "2", "--engine", "dask"]
    ended(begin(run(*chosen), place), place, number, lambda: sleeping(place))


def ended(
    process: subprocess.Popen[str], place: Path, number: signal.Signals, ready: Callable[[], object]
) -> None:
    """Signal what is going on as soon as it is; it ends as it should."""
    try:
        until(lambda: process.poll() is not None or ready(), 30)
        assert process.poll() is None, process.communicate()
        start = time.monotonic()
        os.kill(process.pid, number)
        _, said = process.communicate(timeout=30)
        seconds = time.monotonic() - start
    finally:
        process.kill()
    assert process.returncode == 128 + number, said
    assert [line for line in said.splitlines() if line and "episodes" not in line][1:] == [], said
    assert "interrupted" in said
    # Two seconds on a machine that is free; one that runs the other tests as well gets more.
    assert seconds < 4
    print(f"ended in {seconds:.2f} s")
    until(lambda: not living(f"{place}/"), 2)
    assert list((place / "temporary").iterdir()) == []


def test_it_is_said_once_however_long_the_end_takes() -> None:
    program = """
import os, signal, time
from evalkit.cli import interrupts
interrupts.LONGEST = 0.2
try:
    with interrupts.interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(9)
except KeyboardInterrupt:
    interrupts.say("evalkit: interrupted")
    time.sleep(9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.returncode == 130
    assert done.stderr == "\nevalkit: interrupted\n"
