"""``make live``: live runs killed at random and gone on with at random limits; how long 200 episodes take.

Prints what a loopback provider answered beside what the runs' ledgers count. Every figure is measured here; a
promise that does not hold ends it with exit code 1.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.helpers import document
from tests.live.provider import Provider

REPORT = Path("reports/live/live.json")
LIMIT = ("--max-tokens", "--max-usd")


class Kills(msgspec.Struct):
    """What was seen of the runs that were killed."""

    kills: int = 0
    runs: int = 0
    answered: int = 0
    counted: int = 0
    in_flight_at_kills: int = 0
    fewest_over: int = 0
    finished: int = 0
    lost: int = 0
    paid_again: int = 0
    limits_reached: int = 0
    over_limit: int = 0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "evalkit", "run", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "ANTHROPIC_API_KEY": "dummy-key-for-tests"}


def suite(folder: Path, items: int) -> str:
    file = folder / "suite.yaml"
    model = [{"say": "The script is not played."}]
    text = yaml.safe_dump(
        document(model, world={"items": [f"item-{n}" for n in range(items)]}), sort_keys=False
    )
    file.write_text(text, encoding="utf-8")
    return str(file)


def ledger(folder: Path, query: str) -> list[Any]:
    with sqlite3.connect(folder / "spending.sqlite") as base:
        return base.execute(query).fetchall()


def cells(folder: Path) -> set[int]:
    with sqlite3.connect(folder / "episodes.sqlite") as base:
        return {cell for (cell,) in base.execute("select cell from episode where ending <> 'void'")}


def killed(kills: int, seed: int) -> Kills:
    """Kill runs at random moments and go on with them at random limits, until so many were killed."""
    dice, seen = random.Random(seed), Kills()
    names = tuple(f"item-{n}" for n in range(5))
    with (
        tempfile.TemporaryDirectory(prefix="evalkit-live-") as made,
        Provider(items=names, delay=0.05) as provider,
    ):
        place = Path(made)
        file = suite(place, len(names))
        while seen.kills < kills:
            seen.runs += 1
            _one(place / f"run-{seen.runs}", file, provider, f"r{seen.runs}", dice, seen, kills)
    return seen


def _one(
    folder: Path, file: str, provider: Provider, name: str, dice: random.Random, seen: Kills, kills: int
) -> None:
    """One run, killed again and again, to its end."""
    url = f"{provider.url}/{name}"
    tokens, there, in_flight = 0, set[int](), 0
    begin = command(
        *(file, "-s", "silence", "-s", "acceptance", "--seeds", "40", "--no-charts", "--out", str(folder)),
        *("--model", "anthropic:claude-sonnet-x", "--base-url", url),
    )
    words, log = begin, folder.with_suffix(".log")
    while True:
        # From about a request's worst case on, so that many a limit is reached before a kill.
        limit = tokens + dice.randrange(4_000, 12_000)
        more = [*words, "--max-tokens", str(limit), "--concurrency", str(dice.choice((1, 4, 16)))]
        with log.open("ab") as out:
            process = subprocess.Popen(more, stdout=out, stderr=out, env=environment())
        until = dice.uniform(0.0, 2.0)
        spent_before = provider.answered[name]
        while process.poll() is None and provider.answered[name] == spent_before:
            time.sleep(0.01)
        try:
            process.wait(until)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            seen.kills += 1
            # What the provider has begun to answer is told when it has been given the time to.
            time.sleep(0.15)
        words = command("--resume", str(folder), "--no-charts")
        if not (folder / "spending.sqlite").is_file():
            words = begin
            continue
        ((opened,),) = ledger(folder, "select count(*) from request where state = 'open'")
        in_flight += opened
        now = cells(folder)
        seen.lost += len(there - now)
        there = now
        ((tokens,),) = ledger(
            folder, "select ifnull(sum(input + cache_read + cache_written + output), 0) from request"
        )
        seen.over_limit += max(0, tokens - limit) + max(0, provider.tokens[name] - limit)
        seen.limits_reached += process.returncode == 1
        if process.returncode not in (0, 1, -signal.SIGKILL):
            raise SystemExit(f"exit {process.returncode}: {log.read_text()[-800:]}")
        if process.returncode == 0 or seen.kills >= kills:
            break
    ((requests, paid),) = ledger(
        folder,
        "select count(*), (select count(*) - count(distinct cell) from attempt "
        "where outcome = 'kept') from request where state <> 'refused'",
    )
    seen.answered += provider.answered[name]
    seen.counted += requests
    seen.fewest_over = min(seen.fewest_over, requests - provider.answered[name])
    seen.in_flight_at_kills += in_flight
    seen.finished += len(there)
    seen.paid_again += paid
    if not provider.answered[name] <= requests <= provider.answered[name] + in_flight:
        raise SystemExit(
            f"{name}: {provider.answered[name]} answered, {requests} counted, {in_flight} in flight"
        )


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(concurrency: int, episodes: int = 200) -> dict[str, Any]:
    """Seconds for so many episodes against a provider that takes 300 ms an answer."""
    with tempfile.TemporaryDirectory(prefix="evalkit-live-") as made, Provider(delay=0.3) as provider:
        place = Path(made)
        file = place / "suite.yaml"
        file.write_text(yaml.safe_dump(document([{"say": "The script is not played."}])), encoding="utf-8")
        start, used = time.monotonic(), cpu_of_children()
        done = subprocess.run(
            command(
                *(str(file), "-s", "silence", "--seeds", str(episodes)),
                *("--no-charts", "--out", str(place / "run")),
                *("--model", "anthropic:claude-sonnet-x", "--base-url", provider.url),
                *("--max-tokens", "100000000", "--concurrency", str(concurrency)),
            ),
            env=environment(),
            capture_output=True,
            text=True,
        )
        seconds, cpu = time.monotonic() - start, cpu_of_children() - used
        if done.returncode:
            raise SystemExit(done.stderr)
        return {
            "concurrency": concurrency,
            "episodes": len(cells(place / "run")),
            "answers": sum(provider.answered.values()),
            "most_at_once": provider.most,
            "seconds": round(seconds, 1),
            "seconds_from_first_to_last_answer": round(provider.ended - provider.began, 1),
            "cpu_seconds": round(cpu, 2),
            "load": os.getloadavg()[0],
            "seconds_of_answers": round(0.3 * sum(provider.answered.values()) / concurrency, 1),
        }


def main() -> None:
    """Kill and time; ``python -m tests.live [KILLS] [CONCURRENCY…]``."""
    words = [int(word) for word in sys.argv[1:]]
    seen = killed(words[0] if words else 100, seed=17)
    print(json.dumps(msgspec.to_builtins(seen)))
    # What one episode takes is mostly the beginning and end of a run.
    least, times = timed(1, episodes=1), []
    for concurrency in words[1:] or (1, 16, 64):
        found = timed(concurrency)
        more = found["cpu_seconds"] - least["cpu_seconds"], found["answers"] - least["answers"]
        times.append({**found, "cpu_milliseconds_per_answer": round(1000 * more[0] / more[1], 1)})
        print(json.dumps(times[-1]))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({"killed": msgspec.to_builtins(seen), "timed": times}, indent=1) + "\n")
    if seen.lost or seen.over_limit or seen.paid_again or seen.fewest_over < 0:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
