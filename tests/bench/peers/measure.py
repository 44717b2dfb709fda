"""What each peer's program measures of itself. It runs in the peer's environment and imports nothing else."""

import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable

ITEMS = "item-{}"


def arguments() -> tuple[int, int]:
    """Turns of an episode, and how many episodes."""
    return int(sys.argv[1]), int(sys.argv[2])


def items(turns: int) -> list[str]:
    """The items of the task: all turns but the listing and the last words."""
    return [ITEMS.format(number) for number in range(turns - 2)]


def report(turns: int, episodes: int, run: Callable[[], int]) -> None:
    """Print what running the episodes takes, once one has been run to warm up."""
    begun = time.process_time()
    start, wall = time.process_time(), time.perf_counter()
    done = run()
    cpu, seconds = time.process_time() - start, time.perf_counter() - wall
    if done != episodes:
        raise SystemExit(f"{done} of {episodes} episodes did the whole task")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "turns": turns,
        "episodes": episodes,
        "turns_per_cpu_second": turns * episodes / cpu,
        "wall_s": seconds,
        "cpu_s": cpu,
        "peak_mb": peak,
        "start_cpu_s": begun,
    }
    print(json.dumps(figures))


def run_all(episodes: int, episode: Callable[[], Awaitable[bool]]) -> Callable[[], int]:
    """Run an episode so often, one after the other, in one event loop."""
    import asyncio

    async def go() -> int:
        return sum([await episode() for _ in range(episodes)])

    return lambda: asyncio.run(go())
