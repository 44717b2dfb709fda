"""What 10⁹ episodes would take on a cluster, worked out from the figures measured here."""

from __future__ import annotations

from typing import Any

from evalkit.runs.chunks import LONGEST, MOST

EPISODES = 10**9
CORES = (64, 256, 1024)


def markdown(sections: dict[str, Any]) -> list[str]:
    """The estimate; empty where the figures it rests on are not there."""
    if "long_run" not in sections or "engines" not in sections:
        return []
    long, engines = sections["long_run"]["figures"], sections["engines"]["figures"]
    count, million = max((int(name), row) for name, row in long.items())
    dask = engines["dask"]
    worker = (million["cpu_s"] - million["parent_cpu_s"]) / count
    parent = engines["store_us_a_row"] / 1e6
    rows = engines["episodes"] / dask["chunks"]
    per_chunk = max(0.0, dask["parent_cpu_s"] / dask["chunks"] - parent * rows)
    in_chunk = min(MOST, LONGEST / worker)
    size = sum(million["bytes"].values()) / count
    lines = [
        f"Measured: {1e6 * worker:.0f} µs of a worker's CPU for an episode, {1e6 * parent:.1f} µs to keep "
        f"its row, {1000 * per_chunk:.1f} ms in the parent for a chunk that Dask hands over, {size:.0f} "
        "bytes on disk.",
        "",
        "| cores | workers' hours | rows kept, hours | chunks handed over, hours | what binds |",
        "| ---: | ---: | ---: | ---: | --- |",
    ]
    keeping = EPISODES * parent / 3600
    for cores in CORES:
        hours = EPISODES * worker / cores / 3600
        handing = EPISODES / in_chunk * per_chunk / 3600
        binds = "the workers" if hours > keeping + handing else "the parent"
        lines.append(f"| {cores:,} | {hours:.1f} | {keeping:.1f} | {handing:.1f} | {binds} |")
    lines += [
        "",
        f"The run folder grows to {EPISODES * size / 1e9:,.0f} GB. One parent keeps all rows, so more than "
        f"{worker / (parent + per_chunk / in_chunk):,.0f} cores bring nothing for one run. An extrapolation: "
        "no cluster of that size was there to try.",
    ]
    return lines
