"""Growth with the episodes of a run in one process, in evalkit, a bare loop and three frameworks."""

from __future__ import annotations

from typing import Any

from tests.bench.loops import PEERS, PROGRAMS, TASK, figure, micros
from tests.bench.peers import Figures

COUNTS = (100, 1_000, 10_000, 100_000)
#: More would take a peer hours.
PEER_COUNTS = (100, 1_000)


def measure() -> dict[str, dict[str, Figures]]:
    """Each program with so many episodes."""
    return {
        str(count): {
            name: figure(name, TASK, count)
            for name in PROGRAMS
            if count in (PEER_COUNTS if name in PEERS else COUNTS)
        }
        for count in COUNTS
    }


def markdown(counts: dict[str, Any]) -> list[str]:
    """The table."""
    heads = " | ".join(f"{count:,} episodes" for count in COUNTS)
    lines = [f"CPU µs for a turn and peak MB, episodes of {TASK} turns:", "", f"| | {heads} |"]
    lines.append("| --- |" + " ---: |" * len(COUNTS))
    for name, title in PROGRAMS.items():
        row = [counts[str(count)].get(name) for count in COUNTS]
        cells = [f"{micros(found):,.0f} µs, {found['peak_mb']:.0f} MB" if found else "–" for found in row]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines
