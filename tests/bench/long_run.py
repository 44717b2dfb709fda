"""``evalkit run`` as a user starts it: 10² to 10⁶ episodes in one command on two workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench.task import scenario_text

COUNTS = (100, 1_000, 10_000, 100_000, 1_000_000)
TURNS = 8
STRATEGY = "gate"
WORKERS = 2
#: Seconds between two looks at the memory.
LOOK = 0.5
#: Points of the memory curve that are kept.
POINTS = 12

_TICK = os.sysconf("SC_CLK_TCK")
_TOLD = re.compile(r"(\d+) of \d+ episodes, about (.+) left")
_UNITS = {"s": 1, "min": 60, "h": 3600}


def measure() -> dict[str, Any]:
    """Each count in a run of its own."""
    return {str(count): run(count) for count in COUNTS}


def run(episodes: int) -> dict[str, Any]:
    """One run: time, memory by process over time, what it said of the remaining time, size on disk."""
    print(f"evalkit run: {episodes:,} episodes", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as temp:
        place = Path(temp)
        (place / "bench.yaml").write_text(scenario_text(TURNS))
        command = [sys.executable, "-m", "evalkit", "run", "bench.yaml", "-s", STRATEGY, "--no-charts"]
        command += ["--seeds", str(episodes), "--workers", str(WORKERS), "--out", "run"]
        begun = time.monotonic()
        process = subprocess.Popen(
            command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        told: list[tuple[float, float, int]] = []
        reader = threading.Thread(target=_listen, args=(process, begun, told))
        reader.start()
        curve, parent_cpu = _watch(process, begun)
        reader.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begun
        if process.returncode:
            raise RuntimeError(f"evalkit run ended with {process.returncode}")
        sizes = {
            file.name: file.stat().st_size for file in sorted((place / "run").iterdir()) if file.is_file()
        }
    return {
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "parent_cpu_s": parent_cpu,
        "curve": _thinned(curve),
        "peak_parent_mb": max((point["parent_mb"] for point in curve), default=0.0),
        "peak_worker_mb": max((point["worker_mb"] for point in curve), default=0.0),
        "bytes": sizes,
        "remaining": [
            {"at_s": at, "told_s": said, "was_s": wall - at, "episodes": done} for at, said, done in told
        ],
    }


def _listen(process: subprocess.Popen[str], begun: float, told: list[tuple[float, float, int]]) -> None:
    """Note what the run says of the time that remains: when, how many seconds, after how many episodes."""
    assert process.stderr is not None
    for line in process.stderr:
        found = _TOLD.search(line)
        if found:
            told.append((time.monotonic() - begun, seconds_of(found[2]), int(found[1])))


def seconds_of(text: str) -> float:
    """Seconds of a text such as ``2 min 5 s``."""
    return float(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+) (s|min|h)", text)))


def _watch(process: subprocess.Popen[str], begun: float) -> tuple[list[dict[str, float]], float]:
    """Memory of the run's own process and of its largest worker, until it ends; and its own CPU seconds."""
    curve: list[dict[str, float]] = []
    cpu = 0.0
    while True:
        state, seconds = _stat(process.pid)
        if state in ("Z", ""):
            return curve, cpu
        cpu = seconds
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        curve.append(
            {
                "at_s": time.monotonic() - begun,
                "parent_mb": _resident(process.pid),
                "worker_mb": max((_resident(int(child)) for child in children), default=0.0),
            }
        )
        time.sleep(LOOK if curve[-1]["at_s"] > 5 else 0.02)


def _stat(process: int) -> tuple[str, float]:
    """A process's state, and its CPU seconds without its children's."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / _TICK


def _resident(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _thinned(curve: list[dict[str, float]]) -> list[dict[str, float]]:
    step = max(1, len(curve) // POINTS)
    return curve[::step]


# The tables


def markdown(figures: dict[str, Any]) -> list[str]:
    """The tables."""
    lines = [
        f"`evalkit run` of {TURNS}-turn episodes with `{STRATEGY}` on {WORKERS} workers, report included. "
        "Memory is resident, of the command's own process and of its largest worker.",
        "",
        "| episodes | wall s | CPU s | parent's | parent MB | worker MB | on disk MB | bytes an episode |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = sorted((int(count), row) for count, row in figures.items())
    for count, row in rows:
        size = sum(row["bytes"].values())
        lines.append(
            f"| {count:,} | {row['wall_s']:.1f} | {row['cpu_s']:.1f} | {row['parent_cpu_s']:.1f} "
            f"| {row['peak_parent_mb']:.0f} | {row['peak_worker_mb']:.0f} | {size / 1e6:.1f} "
            f"| {size / count:,.0f} |"
        )
    count, row = rows[-1]
    return [*lines, "", *_curve(count, row), "", *_remaining(row)]


def _curve(count: int, row: dict[str, Any]) -> list[str]:
    lines = [f"Memory over the run of {count:,} episodes:", "", "| s | parent MB | worker MB |"]
    lines.append("| ---: | ---: | ---: |")
    for point in row["curve"]:
        lines.append(f"| {point['at_s']:.0f} | {point['parent_mb']:.0f} | {point['worker_mb']:.0f} |")
    return lines


def _remaining(row: dict[str, Any]) -> list[str]:
    told = [point for point in row["remaining"] if point["was_s"] > 0 and point["told_s"] > 0]
    if not told:
        return ["It said nothing of the remaining time."]
    ratios = [point["told_s"] / point["was_s"] for point in told]
    right = sum(1 / 2 <= ratio <= 2 for ratio in ratios)
    return [
        f"The remaining time that it told, over what it then took: {min(ratios):.2f} to {max(ratios):.2f}; "
        f"within a factor of two {right} of {len(ratios)} times."
    ]
