"""Where users wait: start-up beside ``import click``, and worlds whose commands are programs.

``EVALKIT_BEFORE`` names a commit that is measured beside, in the same run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.scenarios.suites import library_folder, scenario_files
from tests.bench.task import scenario_text
from tests.figures import ROOT, before

ROUNDS = 3
STRATEGY = "gate"
#: As the installed command does it.
EVALKIT = (sys.executable, "-c", "from evalkit.cli import main; main(prog_name='evalkit')")
ONE = (*EVALKIT, "run", "one.yaml", "-s", STRATEGY, "--out", "out")
#: What is started, by its name in the table; ``one.yaml`` is a scenario, ``least.py`` the least command.
STARTS = {
    "import click": (sys.executable, "-c", "import click"),
    "the least command of click's --help": (sys.executable, "least.py", "--help"),
    "evalkit --help": (*EVALKIT, "--help"),
    "evalkit run ONE.yaml -s gate": ONE,
    "evalkit run ONE.yaml -s gate --charts": (*ONE, "--charts"),
}
LEAST = "import click\n@click.command()\ndef main():\n    'Does nothing.'\nmain()\n"
#: Runs of the library's ``repo`` and ``files`` scenarios: whether results of commands are kept.
WORLDS = {"nothing kept": "off", "kept, the first time": "on", "kept, again": "on"}
#: The same before results were kept: there was the first way alone.
PLAIN = "nothing kept"


def measure() -> dict[str, Any]:
    """Seconds of CPU, children included, of each start (the least of some rounds) and of each run."""
    with before() as tree, tempfile.TemporaryDirectory() as temp:
        place = Path(temp)
        (place / "one.yaml").write_text(scenario_text(8))
        (place / "least.py").write_text(LEAST)
        trees = {"now": ROOT} | ({"before": tree} if tree is not None else {})
        starts: dict[str, dict[str, float]] = {which: {} for which in trees}
        # The first round is the one in which bytecode is written.
        for number in range(ROUNDS + 1):
            for which, of in trees.items():
                least = starts[which]
                for name, command in STARTS.items():
                    cpu, _ = run(command, place, of)
                    least[name] = min(least.get(name, cpu), cpu) if number > 1 else cpu
        names = [
            file.stem
            for file in scenario_files(library_folder())
            if any(f"kind: {kind}" in file.read_text() for kind in ("repo", "files"))
        ]
        command = (*EVALKIT, "run", *names, "-s", STRATEGY, "--no-charts", "--out", "out")
        worlds = {
            name: run(command, place, ROOT, EVALKIT_KEPT_COMMANDS=switch)[0]
            for name, switch in WORLDS.items()
        }
    return {"starts": starts, "worlds": worlds, "scenarios": len(names)}


def run(command: tuple[str, ...], place: Path, tree: Path, **extra: str) -> tuple[float, float]:
    """CPU and wall seconds of a command of a tree; what it writes to ``out`` is removed first."""
    print(f"{tree.name}: {' '.join(command[3:6]) or command[-1]}", file=sys.stderr, flush=True)
    shutil.rmtree(place / "out", ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(tree), "EVALKIT_CACHE": str(place / "cache"), **extra}
    # As where it is installed: bytecode is there.
    environment["PYTHONPYCACHEPREFIX"] = str(place / "bytecode")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    quiet, begun = subprocess.DEVNULL, time.monotonic()
    process = subprocess.Popen(command, cwd=place, env=environment, stdout=quiet, stderr=quiet)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun


def markdown(figures: dict[str, Any]) -> list[str]:
    """The tables."""
    starts, worlds = figures["starts"], figures["worlds"]
    beside = "before" in starts
    head, rule = (" of before |", " ---: |") if beside else ("", "")
    lines = [
        f"CPU time of a start with bytecode in place, the least of {ROUNDS}; the goal is 1.1 and 10 "
        "times `import click`. A command that shows its help loads more of click than `import click` does.",
        "",
        f"| | CPU ms | of `import click` |{head}",
        f"| --- | ---: | ---: |{rule}",
    ]
    for name, seconds in starts["now"].items():
        share = seconds / starts["now"]["import click"]
        was = f" {seconds / starts['before'][name]:.2f} |" if beside else ""
        lines.append(f"| `{name}` | {1000 * seconds:.0f} | {share:.2f} |{was}")
    lines += [
        "",
        f"CPU time, that of all commands included, of the library's {figures['scenarios']} files with `repo` "
        f"and `files` worlds by `{STRATEGY}`. Before results were kept, each run was as the first.",
        "",
        "| results of commands | CPU s | of before |",
        "| --- | ---: | ---: |",
    ]
    for name, seconds in worlds.items():
        lines.append(f"| {name} | {seconds:.1f} | {seconds / worlds[PLAIN]:.2f} |")
    return lines
