"""``evalkit doctor``."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

import click

from evalkit import __version__
from evalkit.extras import install
from evalkit.reports.layout import print_entries

#: distribution: (what it is for, the module that it brings)
PACKAGES: dict[str, tuple[str, str]] = {
    "matplotlib": ("charts", "matplotlib"),
    "pandas": ("reports on large runs", "pandas"),
    "anthropic": ("live models, SDK driver", "anthropic"),
    "openai": ("live models, SDK driver", "openai"),
    "vcrpy": ("recording and replay", "vcr"),
    "h11": ("the scripted model server", "h11"),
    "mcp": ("the world's tools by MCP", "mcp"),
    "hypothesis": ("falsify", "hypothesis"),
    "distributed": ("runs beyond one machine", "distributed"),
    "psycopg": ("the worker's queue on PostgreSQL", "psycopg"),
    "opentelemetry-sdk": ("spans of a run", "opentelemetry"),
}
#: program: (what it is for, what to do without it)
PROGRAMS: dict[str, tuple[str, str]] = {
    "git": ("the repo world", "install git"),
    "uv": ("harness environments", "pip install uv"),
    "node": ("harnesses in Node", "install Node.js 20 or newer"),
}
#: The column of names is as wide as the longest.
_WIDTH = max(map(len, [*PACKAGES, *PROGRAMS]))


@click.command()
def command() -> None:
    """What is installed, what is missing, what to do."""
    python = ".".join(map(str, sys.version_info[:3]))
    click.echo(f"evalkit {__version__}, Python {python}")
    missing = _packages() + _programs()
    _containment()
    _library()
    _harnesses()
    _completion()
    click.echo("nothing is missing" if not missing else f"{missing} optional parts are missing")


def _line(name: str, found: str | None, use: str, remedy: str) -> int:
    state = found or "missing"
    _row(name, f"{state:<14} {use}" + ("" if found else f": {remedy}"))
    return found is None


def _row(name: str, said: str) -> None:
    print_entries((f"  {name:<{_WIDTH}} {said}",), _WIDTH + 3)


def _packages() -> int:
    click.echo("packages")
    missing = 0
    for name, (use, module) in PACKAGES.items():
        try:
            found: str | None = version(name)
        except PackageNotFoundError:
            found = None
        missing += _line(name, found, use, install(module))
    return missing


def _programs() -> int:
    from evalkit.harnesses.pinned_environment import find_program

    click.echo("programs")
    return sum(
        _line(name, "found" if find_program(name) else None, use, remedy)
        for name, (use, remedy) in PROGRAMS.items()
    )


def _containment() -> None:
    """How what a harness or a world's command starts is held here; what that prevents is in the docs."""
    from evalkit.containment.machine import seals, this_machine
    from evalkit.containment.system_view import numbers

    machine = this_machine()
    ways = {
        "namespace": "a PID namespace for each program",
        "subreaper": "two subreapers for each program",
        "group": "a process group for each program",
    }
    click.echo("containment")
    _row("processes", ways[machine.way] + (f" ({machine.why})" if machine.why else ""))
    if machine.way == "subreaper":
        _row("guards", "out of a program's reach" if seals() else "a program can stop and kill both at once")
    watched = machine.way == "namespace" or bool(numbers())
    ways_to_count = ["a control group"] * machine.tasks + ["a watch"] * watched
    note = "" if watched else "; memory is not watched: /proc is not there"
    _row("number", f"{' and '.join(ways_to_count) or 'not bounded'}{note}")
    files = "the system's programs and their own" if machine.files else "all of the user's"
    _row("files", f"{files} for commands of worlds")
    _row("network", f"{'none' if machine.network else 'not taken'} for commands of worlds")


def _library() -> None:
    from evalkit.scenarios.suites import library_folder, scenario_files
    from evalkit.strategies.registry import strategy_names
    from evalkit.worlds import world_kinds

    files = len(scenario_files(library_folder()))
    click.echo("library")
    _row("scenarios", f"{files} files in {library_folder()}")
    _row("worlds", ", ".join(world_kinds()))
    _row("strategies", ", ".join(strategy_names()))


def _harnesses() -> None:
    from evalkit.harnesses.find import shipped
    from evalkit.harnesses.pinned_environment import cache_folder, is_ready

    by_folder = {harness.folder: harness for harness in shipped().values()}
    waiting = sorted(harness.manifest.name for harness in by_folder.values() if not is_ready(harness))
    click.echo("harnesses")
    _row("set up", f"{len(by_folder) - len(waiting)} of {len(by_folder)}, in {cache_folder()}")
    if waiting:
        _row("not set up", f"{', '.join(waiting)}: evalkit harnesses setup [NAME]...")


def _completion() -> None:
    click.echo("completion of words, for your shell's start-up file")
    for shell, line in (
        ("bash", 'eval "$(_EVALKIT_COMPLETE=bash_source evalkit)"'),
        ("zsh", 'eval "$(_EVALKIT_COMPLETE=zsh_source evalkit)"'),
        ("fish", "_EVALKIT_COMPLETE=fish_source evalkit | source"),
    ):
        _row(shell, line)
