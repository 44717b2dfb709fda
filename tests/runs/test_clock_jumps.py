"""The wall clock jumps by minutes, days and years: what comes of a run is the same, and as soon."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clocks import can_jump, jumping
from tests.helpers import document
from tests.live.provider import Provider

pytestmark = pytest.mark.skipif(not can_jump(), reason="a clock that jumps needs Linux and a C compiler")
MODEL = [{"work": 1}, {"call": "run", "with": {"command": "sleep 0.3; touch b.txt"}}, {"say": "Done."}]
FILES = {"kind": "files", "items": ["a", "b"], "checks": {name: {"exists": f"{name}.txt"} for name in "ab"}}
RUN = ("run", "s.yaml", "-s", "silence", "-s", "gate", "--seeds", "4", "--no-charts")
#: Seconds that nothing here takes unless it waits for a clock.
LONG = 120


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(document(MODEL, world=FILES)))
    return tmp_path


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[dict[str, str]]:
    with jumping(tmp_path) as environment:
        yield environment


def evalkit(place: Path, *words: str, env: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-m", "evalkit", *words]
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def summary(folder: Path) -> Any:
    told = json.loads((folder / "summary.json").read_text())
    return {name: value for name, value in told.items() if name not in ("spending", "made", "run")}


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    "how",
    [
        ("--workers", "2"),
        pytest.param(("--workers", "2", "--engine", "dask"), marks=pytest.mark.dask),
        ("--harness", "anthropic-loop"),
    ],
    ids=["local", "dask", "harness"],
)
def test_a_run_is_the_same(place: Path, clock: dict[str, str], how: tuple[str, ...]) -> None:
    words = [*RUN, *how] if "--harness" not in how else [*RUN[:2], *RUN[6:], *how]
    evalkit(place, *words, "--out", "steady")
    evalkit(place, *words, "--out", "jumping", env=clock)
    assert summary(place / "steady") == summary(place / "jumping")


@pytest.mark.slow
@pytest.mark.soak
def test_one_that_is_killed_goes_on(place: Path, clock: dict[str, str]) -> None:
    evalkit(place, *RUN, "--out", "steady")
    command = [sys.executable, "-m", "evalkit", *RUN, "--out", "jumping"]
    process = subprocess.Popen(command, cwd=place, env=clock, stderr=subprocess.DEVNULL)
    time.sleep(2.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if not (place / "jumping").exists():
        evalkit(place, *RUN, "--out", "jumping", env=clock)
    evalkit(place, "run", "--resume", "jumping", "--no-charts", env=clock)
    assert summary(place / "steady") == summary(place / "jumping")


@pytest.mark.slow
@pytest.mark.soak
def test_a_live_run_keeps_its_limit_and_waits_no_longer(place: Path, clock: dict[str, str]) -> None:
    """A provider that says to come again in a second, and that nothing is left for one."""
    text = yaml.safe_dump(document([{"say": "no script"}]))
    (place / "live.yaml").write_text(text)
    busy = (429, {"retry-after": "1"}, b"{}")
    with Provider(delay=0.02, instead=lambda number, body: busy if number in (3, 9) else None) as provider:
        words = ("run", "live.yaml", "-s", "silence", "--seeds", "8", "--no-charts", "--out", "live")
        begun = time.monotonic()
        evalkit(
            place,
            *(*words, "--model", "anthropic:claude-sonnet-x", "--base-url", provider.url),
            *("--max-tokens", "1000000", "--concurrency", "2"),
            env={**clock, "ANTHROPIC_API_KEY": "dummy-key-for-tests"},
        )
        assert time.monotonic() - begun < 40
    spending = json.loads((place / "live" / "summary.json").read_text())["spending"]
    assert spending["answered"] == sum(provider.answered.values())
    assert sum(spending["tokens"].values()) == sum(provider.tokens.values())
