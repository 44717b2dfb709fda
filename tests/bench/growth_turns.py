"""Growth with the turns of an episode, in evalkit, a bare loop and three frameworks."""

from __future__ import annotations

from typing import Any

from tests.bench.loops import PROGRAMS, episodes, figure, micros
from tests.bench.peers import Figures

LENGTHS = (8, 32, 128, 512)


def measure() -> dict[str, dict[str, Figures]]:
    """Each program at each length."""
    return {
        str(turns): {name: figure(name, turns, episodes(name, turns)) for name in PROGRAMS}
        for turns in LENGTHS
    }


def markdown(lengths: dict[str, Any]) -> list[str]:
    """The table."""
    heads = " | ".join(f"{turns} turns" for turns in LENGTHS)
    lines = ["CPU µs for a turn:", "", f"| | {heads} | longest / shortest |"]
    lines.append("| --- |" + " ---: |" * (len(LENGTHS) + 1))
    for name, title in PROGRAMS.items():
        row = [micros(lengths[str(turns)][name]) for turns in LENGTHS]
        cells = " | ".join(f"{value:,.0f}" for value in row)
        lines.append(f"| {title} | {cells} | {row[-1] / row[0]:.1f} |")
    return lines
