"""Measures, and writes ``reports/bench/``: all sections, or those named (``python -m tests.bench wire``)."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from evalkit import __version__
from tests.bench import estimate

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "bench"
#: Section (a module of this package with ``measure`` and ``markdown``): its heading.
SECTIONS = {
    "loops": "The same agent task in evalkit, a bare loop and three frameworks",
    "waits": "Where users wait",
    "library": "The whole library by every strategy",
    "growth_turns": "Growth with the turns of an episode",
    "growth_episodes": "Growth with the episodes of a run",
    "long_run": "One command: 10² to 10⁶ episodes",
    "engines": "Engines",
    "wire": "The wire",
    "resident": "Programs of others: resident and fresh",
    "replay": "Replay",
    "transcripts": "Reading recordings",
    "worker": "The durable worker",
}


def main() -> None:
    """Measure what is asked for and write the page from all that was measured."""
    chosen = sys.argv[1:] or list(SECTIONS)
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"unknown section {unknown[0]!r}; known: {', '.join(SECTIONS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / "bench.json"
    for name in chosen:
        print(f"measuring: {SECTIONS[name]}", file=sys.stderr, flush=True)
        measured = {
            **_about(),
            "figures": msgspec.to_builtins(import_module(f"tests.bench.{name}").measure()),
        }
        sections: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        sections = _rounded({**sections, name: measured})
        file.write_text(json.dumps(sections, indent=1) + "\n")
        (FOLDER / "README.md").write_text("\n".join(_page(sections)) + "\n")
    print(f"wrote {FOLDER / 'README.md'}")


def _about() -> dict[str, Any]:
    """Where and when; ``load`` is how many processes wanted a core in the minute before."""
    return {
        "evalkit": __version__,
        "python": platform.python_version(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _rounded(value: Any) -> Any:
    """Figures to four places that count."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


def _page(sections: dict[str, Any]) -> list[str]:
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`; one section alone by `python -m tests.bench SECTION`. The figures are in "
        "`bench.json`. Read the ratios: each is of figures from one run on one machine.",
    ]
    for name, heading in SECTIONS.items():
        if name not in sections:
            continue
        section = sections[name]
        load = f"{section['load']:.1f} processes wanting a core when it began"
        machine = f"{section['cores']} cores of {section['machine']}, Python {section['python']}"
        lines += ["", f"## {heading}", "", f"Section `{name}`, {section['measured']}: {machine}, {load}.", ""]
        lines += import_module(f"tests.bench.{name}").markdown(section["figures"])
    told = estimate.markdown(sections)
    if told:
        lines += ["", "## 10⁹ episodes", "", *told]
    return lines


if __name__ == "__main__":
    main()
