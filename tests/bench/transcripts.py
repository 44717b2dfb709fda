"""Reading speed of recordings in MB per CPU-second, against ``json.loads`` alone on the same bytes.

And ``evalkit judge`` as it is started; ``EVALKIT_BEFORE`` names a commit that is measured beside.
"""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.run import judge_recording
from evalkit.transcripts.read import read_file
from evalkit.transcripts.recording import Recording
from tests.bench.waits import EVALKIT, run
from tests.figures import ROOT, before
from tests.transcripts import files

#: Megabytes of each file, and rounds of which the best counts.
MEGABYTES = 20
ROUNDS = 3
#: Processes that judge, beside the one that reads.
JOBS = (2,)


def _words(number: int) -> str:
    return " ".join(
        f"Record {number}.{place} holds the state of an account, as found." for place in range(20)
    )


def record(number: int) -> dict[str, object]:
    """A dialogue of realistic size: about 17 kB in 32 messages, as in published results."""
    messages = files.chat()[:2]
    for turn in range(10):
        asked = files.chat_call(turn, "get_record", record=f"r{turn}")
        messages += [asked, files.chat_answer(turn, _words(1_000 * number + turn))]
    messages += [*files.chat()[4:], {"role": "user", "content": "Thanks! ###STOP###"}]
    return {
        "task_id": number,
        "reward": number % 2,
        "info": {"task": {"outputs": []}},
        "traj": messages,
        "trial": 0,
    }


def _files(folder: Path) -> dict[str, Path]:
    one = json.dumps(record(1))
    count = MEGABYTES * 1_000_000 // len(one)
    array = folder / "results.json"
    array.write_text("[" + ", ".join(json.dumps(record(number)) for number in range(count)) + "]")
    lines = folder / "results.jsonl"
    lines.write_text("".join(json.dumps(record(number)) + "\n" for number in range(count)))
    return {"array": array, "lines": lines}


def _speed(work: Callable[[], None], size: int) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = max(best, size / 1e6 / (time.process_time() - start))
    return best


def _judged(path: Path, temp: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """CPU and wall seconds of the command on a file and on nothing of size, by commit; then by processes."""
    least = temp / "least.json"
    least.write_text(json.dumps(record(1)))
    judging = (*EVALKIT, "judge", "-s", "silence", "-s", "verifier_claim", "--no-page", "--out", "out")
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with before() as tree:
        trees = {"now": ROOT} | ({"before": tree} if tree is not None else {})
        for which, of in trees.items():
            runs = {"file": (*judging, str(path)), "start": (*judging, str(least))}
            if which == "now":
                runs |= {f"{jobs} jobs": (*judging, "--jobs", str(jobs), str(path)) for jobs in JOBS}
            found[which] = {
                name: min(run(command, temp, of) for _ in range(ROUNDS)) for name, command in runs.items()
            }
    return found


def measure() -> dict[str, Any]:
    """MB/s of ``json.loads``, of reading, of reading and judging; the memory that reading needs, in MB."""
    strategies = [preset.strategy for preset in PRESETS.values()]
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temp:
        for name, path in _files(Path(temp)).items():
            data = path.read_bytes()
            text = data.splitlines() if name == "lines" else [data]

            def read(path: Path = path) -> None:
                for found in read_file(path):
                    assert isinstance(found, Recording)

            def judge(path: Path = path) -> None:
                for found in read_file(path):
                    assert isinstance(found, Recording)
                    judge_recording(found, strategies)

            row = {
                "json.loads": _speed(lambda text=text: [json.loads(line) for line in text], len(data)),  # type: ignore[misc]
                "read": _speed(read, len(data)),
                "read and judge": _speed(judge, len(data)),
            }
            tracemalloc.start()
            read()
            row["peak MB"] = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            table[name] = row
        table["judge"] = {"MB": len(data) / 1e6, **_judged(path, Path(temp))}
    return table


def markdown(table: dict[str, Any]) -> list[str]:
    """The table."""
    lines = [
        f"MB of a recording file for each CPU-second, {MEGABYTES} MB files, best of {ROUNDS}.",
        "",
        "| file | `json.loads` | read | of `json.loads` | read and judge | peak MB of reading |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in table.items():
        if name == "judge":
            continue
        share = row["read"] / row["json.loads"]
        lines.append(
            f"| {name} | {row['json.loads']:.1f} | {row['read']:.1f} | {share:.2f} "
            f"| {row['read and judge']:.1f} | {row['peak MB']:.1f} |"
        )
    if "judge" in table:
        lines += ["", *_judging(table["judge"], table["lines"]["json.loads"])]
    return lines


def _judging(judge: dict[str, Any], speed: float) -> list[str]:
    loads = judge["MB"] / speed
    lines = [
        "`evalkit judge --no-page -s silence -s verifier_claim` on the file of lines: CPU time above that "
        f"of its start, in times of `json.loads` ({loads:.2f} s); the goal is 10.",
        "",
        "| | of `json.loads` | wall s |",
        "| --- | ---: | ---: |",
    ]
    for which, runs in sorted(judge.items()):
        if which == "MB":
            continue
        start = runs["start"][0]
        for name, (cpu, wall) in runs.items():
            if name != "start":
                lines.append(f"| {which}, {name} | {(cpu - start) / loads:.1f} | {wall:.1f} |")
    return lines
