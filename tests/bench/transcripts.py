"""Reading speed of recordings in MB per CPU-second, against ``json.loads`` alone on the same bytes."""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.run import judge_recording
from evalkit.transcripts.read import read_file
from evalkit.transcripts.recording import Recording
from tests.transcripts import files

#: Megabytes of each file, and rounds of which the best counts.
MEGABYTES = 20
ROUNDS = 3


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


def measure() -> dict[str, dict[str, float]]:
    """MB/s of ``json.loads``, of reading, of reading and judging; the memory that reading needs, in MB."""
    strategies = [preset.strategy for preset in PRESETS.values()]
    table: dict[str, dict[str, float]] = {}
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
    return table


def markdown(table: dict[str, dict[str, float]]) -> list[str]:
    """The table."""
    lines = [
        f"MB of a recording file for each CPU-second, {MEGABYTES} MB files, best of {ROUNDS}.",
        "",
        "| file | `json.loads` | read | of `json.loads` | read and judge | peak MB of reading |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in table.items():
        share = row["read"] / row["json.loads"]
        lines.append(
            f"| {name} | {row['json.loads']:.1f} | {row['read']:.1f} | {share:.2f} "
            f"| {row['read and judge']:.1f} | {row['peak MB']:.1f} |"
        )
    return lines
