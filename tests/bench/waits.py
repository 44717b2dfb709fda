"""Where users wait: start-up beside ``import click``, and worlds whose commands are programs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from evalkit.scenarios.suites import library_folder, scenario_files
from tests.bench.task import scenario_text

STARTED = [sys.executable, "-m", "evalkit", "run"]
ROUNDS = 5
STRATEGY = "gate"
#: What is started, by its name in the table; a scenario stands in ``one.yaml``.
STARTS = {
    "import click": [sys.executable, "-c", "import click"],
    "evalkit --help": [sys.executable, "-m", "evalkit", "--help"],
    "evalkit run ONE.yaml -s gate --no-charts": [
        *(sys.executable, "-m", "evalkit", "run", "one.yaml", "-s", STRATEGY, "--out", "one", "--no-charts")
    ],
    "evalkit run ONE.yaml -s gate": [
        *(sys.executable, "-m", "evalkit", "run", "one.yaml", "-s", STRATEGY, "--out", "one")
    ],
}
#: Runs of the library's ``repo`` and ``files`` scenarios: whether results of commands are kept.
WORLDS = {"nothing kept": "off", "kept, the first time": "on", "kept, again": "on"}
#: The same before results were kept: there was the first way alone.
BEFORE = "nothing kept"


def measure() -> dict[str, Any]:
    """CPU seconds, children included, of each start (the least of some rounds) and of each run."""
    with tempfile.TemporaryDirectory() as temp:
        place = Path(temp)
        (place / "one.yaml").write_text(scenario_text(8))
        starts: dict[str, float] = {}
        for _ in range(ROUNDS):
            for name, command in STARTS.items():
                starts[name] = min(starts.get(name, 1e9), _cpu(command, place))
                subprocess.run(["rm", "-rf", str(place / "one")], check=True)
        names = [
            file.stem
            for file in scenario_files(library_folder())
            if any(f"kind: {kind}" in file.read_text() for kind in ("repo", "files"))
        ]
        worlds = {
            name: _cpu(
                [
                    *(
                        sys.executable,
                        "-m",
                        "evalkit",
                        "run",
                        *names,
                        "-s",
                        STRATEGY,
                        "--no-charts",
                        "--out",
                        name,
                    )
                ],
                place,
                {"EVALKIT_CACHE": str(place / "cache"), "EVALKIT_KEPT_COMMANDS": switch},
            )
            for name, switch in WORLDS.items()
        }
    return {"starts": starts, "worlds": worlds, "scenarios": len(names)}


def _cpu(command: list[str], place: Path, extra: dict[str, str] | None = None) -> float:
    print(" ".join(command[2:6]), file=sys.stderr, flush=True)
    environment = {**os.environ, **(extra or {})}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=place, env=environment, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def markdown(figures: dict[str, Any]) -> list[str]:
    """The tables."""
    starts, worlds = figures["starts"], figures["worlds"]
    lines = [
        f"CPU time of a start, the least of {ROUNDS}; the goal is 1.1 for `--help` and 10 for a run.",
        "",
        "| | CPU ms | of `import click` |",
        "| --- | ---: | ---: |",
    ]
    for name, seconds in starts.items():
        share = seconds / starts["import click"]
        lines.append(f"| `{name}` | {1000 * seconds:.0f} | {share:.1f} |")
    lines += [
        "",
        f"CPU time, that of all commands included, of the library's {figures['scenarios']} files with `repo` "
        f"and `files` worlds by `{STRATEGY}`. Before results were kept, each run was as the first.",
        "",
        "| results of commands | CPU s | of before |",
        "| --- | ---: | ---: |",
    ]
    for name, seconds in worlds.items():
        lines.append(f"| {name} | {seconds:.1f} | {seconds / worlds[BEFORE]:.2f} |")
    return lines
