"""The same agent task in evalkit, a bare loop and three frameworks: speed, memory, start-up, growth."""

from __future__ import annotations

import sys
from typing import Any

from tests.bench import peers
from tests.bench.peers import Figures

#: What is compared, by its name in the tables. ``silence`` decides as the others do: a turn without calls.
PROGRAMS = {
    "bare": "bare loop",
    "evalkit silence": "evalkit, `silence`",
    "evalkit gate": "evalkit, `gate`",
    "autogen": "AutoGen, replay client",
    "pydantic_ai": "pydantic-ai, function model",
    "inspect": "Inspect `react`, mock model",
}
PEERS = tuple(peers.PINS)
#: Of each program so many turns are run for a figure: enough for about a second of CPU time and more.
TURNS = {"bare": 80_000, "evalkit silence": 32_000, "evalkit gate": 32_000}
PEER_TURNS = 800
TASK = 8
ROUNDS = 3


def measure() -> list[dict[str, Figures]]:
    """Each program's figures, round by round, so that all meet the same machine."""
    return [{name: figure(name, TASK, episodes(name, TASK)) for name in PROGRAMS} for _ in range(ROUNDS)]


def episodes(name: str, turns: int) -> int:
    """How many episodes of so many turns make a figure of a program."""
    return max(1, TURNS.get(name, PEER_TURNS) // turns)


def figure(name: str, turns: int, count: int) -> Figures:
    """Run a program, and say so."""
    print(f"{name}: {count} episodes of {turns} turns", file=sys.stderr, flush=True)
    return peers.run(name, turns, count)


def micros(found: dict[str, Any]) -> float:
    """CPU microseconds for a model turn."""
    return 1e6 / float(found["turns_per_cpu_second"])


# The tables


def best(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Turns per CPU-second of each program, the best round."""
    return {name: max(found[name]["turns_per_cpu_second"] for found in rounds) for name in PROGRAMS}


def ratios(rounds: list[dict[str, Any]], over: str, under: str) -> list[float]:
    """How many times as fast one program is as another, round by round."""
    return [found[over]["turns_per_cpu_second"] / found[under]["turns_per_cpu_second"] for found in rounds]


def markdown(rounds: list[dict[str, Any]]) -> list[str]:
    """The tables."""
    rates = best(rounds)
    lines = [
        f"{TASK} model turns, {TASK - 1} tool calls, one process, best of {len(rounds)} rounds in which the "
        "programs take turns. Peak memory is the process's; start-up is CPU time until the first episode is "
        "done.",
        "",
        "| | turns per CPU-second | of the bare loop | peak MB | start-up CPU s |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, title in PROGRAMS.items():
        mine = [found[name] for found in rounds]
        peak = max(found["peak_mb"] for found in mine)
        start = min(found["start_cpu_s"] for found in mine)
        share = f"1/{rates['bare'] / rates[name]:,.1f}"
        lines.append(f"| {title} | {rates[name]:,.0f} | {share} | {peak:.0f} | {start:.2f} |")
    pins = ", ".join(pin for group in peers.PINS.values() for pin in group)
    return [*lines, "", f"Peers: {pins}.", "", *_goals(rounds)]


def _goals(rounds: list[dict[str, Any]]) -> list[str]:
    rates = best(rounds)
    fastest = max(PEERS, key=rates.__getitem__)
    title = PROGRAMS[fastest]
    lines = [f"| evalkit | {title}, the fastest peer | Inspect | bare loop |", "| --- | ---: | ---: | ---: |"]
    lines.append("| goal | at least 20 times | at least 200 times | within 8 times |")
    for name in ("evalkit silence", "evalkit gate"):
        cells = [
            _times(rates[over] / rates[under], ratios(rounds, over, under))
            for over, under in ((name, fastest), (name, "inspect"), ("bare", name))
        ]
        lines.append(f"| {PROGRAMS[name]} | {' | '.join(cells)} |")
    return [*lines, "", "In brackets the least and the most of a round."]


def _times(value: float, found: list[float]) -> str:
    return f"{value:,.1f} ({min(found):,.1f} to {max(found):,.1f})"
