"""``make recordings``: what is read right, claims, incidents reproduced, what catches them, speed.

The files written for the tests are always there; real recordings are read where they are at hand
(``EVALKIT_SHARED``), and ends of turn of public repositories where their texts are (``EVALKIT_CLAIMS``).
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalkit.strategies.claim_reader import read_claim
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.incidents.incident import incident_of
from evalkit.transcripts.incidents.to_scenario import skeleton
from evalkit.transcripts.judging.answer import HEADS, caption, sentences, table
from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.reader_accuracy import measure, read_sample
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay
from evalkit.transcripts.turn_claims import claim_of
from tests.bench.transcripts import record
from tests.transcripts import files, foreign
from tests.transcripts import found as found_claims
from tests.transcripts.test_exactness import SEEDS, over_pairs
from tests.transcripts.test_foreign import CASES as FOREIGN
from tests.transcripts.test_formats import CASES as OLDER
from tests.transcripts.test_formats import shape

HERE = Path(__file__).parent


def main() -> None:
    """Print all tables."""
    with tempfile.TemporaryDirectory() as folder:
        _written(Path(folder))
        _pairs()
        base = os.environ.get("EVALKIT_SHARED")
        real = Path(base) / "real" if base else None
        if real is not None and real.is_dir():
            _real(real)
            _claims(real)
            _incidents(real)
            _caught(real, Path(folder))
        texts = found_claims.folder()
        if texts is not None:
            _found(texts)
        _speed(Path(folder))


def _line(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |")


def _head(title: str, *heads: str) -> None:
    print(f"\n{title}\n")
    _line(*heads)
    _line(*("---" for _ in heads))


def _written(folder: Path) -> None:
    """Each format's own small files: right where turns, answers and end are as written."""
    counts: dict[str, Counter[str]] = {}
    older = [(name, how, value, format, turns, None) for name, how, value, format, turns in OLDER]
    for number, (name, how, value, format, turns, native) in enumerate((*older, *FOREIGN)):
        path = (files.write_lines if how == "lines" else files.write)(folder / f"{number}-{name}", value)
        count = counts.setdefault(format, Counter())
        count["files"] += 1
        for found in read_paths([path]):
            if isinstance(found, Problem):
                count["refused"] += 1
                continue
            count["runs"] += 1
            right = found.format == format and shape(found) == turns and native in (None, found.native)
            count["right" if right else "wrong"] += 1
    path = folder / ".aider.chat.history.md"
    path.write_text(foreign.AIDER, encoding="utf-8")
    found = list(read_paths([path]))
    right = len(found) == 1 and isinstance(found[0], Recording) and len(found[0].steps) == 2
    counts["aider"] = Counter(files=1, runs=len(found), right=int(right), wrong=int(not right))
    session = list(read_paths([files.write_lines(folder / "session.jsonl", files.claude_code())]))
    right = [isinstance(item, Recording) and len(item.steps) in (7, 1) for item in session]
    counts.setdefault("claude-code", Counter()).update(files=1, runs=len(right), right=sum(right))
    heads = ("files", "runs", "right", "refused", "wrong")
    _head("Files written for the tests, by format", "format", *heads)
    for format, count in sorted(counts.items()):
        _line(format, *(count[name] for name in heads))
    _line("all", *(sum(count[name] for count in counts.values()) for name in heads))


def _pairs() -> None:
    """What recordings of one strategy say of another, on scripted populations."""
    heads = ("goes on", "90 % interval covers", "end is known", "how often done")
    _head("Predicted from recordings, by ordered pair", "from", "to", "runs", *heads)
    for (one, other), pair in over_pairs(SEEDS).items():
        covered = "certain" if pair.covered is None else f"{100 * pair.covered:.0f} %"
        _line(one, other, pair.runs, pair.goes_on, covered, pair.exact, pair.end)


def _real(real: Path) -> None:
    """Real recordings: read or refused; cassettes against what their list says of their stop reasons."""
    heads = ("files", "runs", "refused")
    _head("Real recordings, by folder", "folder", *heads, "reasons")
    for folder in sorted(path for path in (real / "trajectories").iterdir() if path.is_dir()):
        found = list(read_paths([folder]))
        refused = [item for item in found if isinstance(item, Problem)]
        names = sum(path.is_file() for path in folder.rglob("*"))
        _line(
            folder.name,
            names,
            len(found) - len(refused),
            len(refused),
            "; ".join({item.why for item in refused}),
        )
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    manifest = [json.loads(line) for line in (real / "cassettes" / "MANIFEST.jsonl").read_text().splitlines()]
    for entry in manifest:
        found = list(read_paths([real / "cassettes" / entry["file"]]))
        runs = [item for item in found if isinstance(item, Recording)]
        told = {key.partition("=")[2] for key in entry["stop_reasons"]}
        read = {step.turn.native for run in runs for step in run.steps if step.turn.native}
        read |= {str(native).rpartition("/")[2] for native in read}
        if not runs:
            verdicts["refused"] += 1
            reasons.update({item.why.partition(";")[0] for item in found if isinstance(item, Problem)})
        elif not told or told & read or any(run.ending == "error" for run in runs):
            verdicts["read right"] += 1
        else:
            verdicts["to be looked at"] += 1
            reasons[f"{entry['file']}: told {sorted(told)}, read {sorted(map(str, read))}"] += 1
    print(f"\nCassettes: {len(manifest)} files: {dict(verdicts)}")
    for reason, count in reasons.items():
        print(f"- {count}: {reason}")


def _claims(real: Path) -> None:
    known = [
        item
        for item in read_paths([real / "trajectories", real / "cassettes"])
        if isinstance(item, Recording)
    ]
    print("\nClaims, labelled by hand (90 % of rates' intervals in docs/judge.md):\n")
    for part, measured in measure(read_sample(HERE / "claim_sample.csv"), known, claim_of).items():
        print(f"- {part}: {measured}")
    counts: dict[str, Counter[str]] = {}
    with (HERE / "written_claims.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            right = (read_claim(row["text"]).claim == "done") == (row["claim"] == "done")
            counts.setdefault(row["kind"], Counter())[f"{row['claim']} {'right' if right else 'wrong'}"] += 1
    for kind, count in counts.items():
        print(f"- written, {kind}: {dict(sorted(count.items()))}")


def _found(texts: Path) -> None:
    print(f"\nEnds of turn found in public repositories (kappa of two passes {found_claims.kappa():.2f}):\n")
    for part, measured in sorted(found_claims.held_against(texts).items()):
        print(f"- {part}: {measured}")
    print("\nA second reader, who saw none of the first one's labels:\n")
    for kind, agreement in found_claims.readers().items():
        print(f"- {kind}: {agreement.alike} of {agreement.ends} alike, kappa {agreement.kappa:.2f}")


def _false_dones(real: Path) -> Iterator[Recording]:
    for item in read_paths([real / "trajectories"]):
        if isinstance(item, Recording) and item.label.complete is False and item.ending == "done":
            yield item


def _incidents(real: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for recording in _false_dones(real):
        text = skeleton(recording)
        cause = incident_of(recording, Replay(recording)).cause
        counts[cause, "all"] += 1
        counts[cause, "fails"] += "  fails:" in text
        counts[cause, "passes"] += "  passes: acceptance" in text
    _head("False dones as scenarios", "cause", "runs", "fail by their own rule", "acceptance completes")
    for cause in sorted({cause for cause, _ in counts}):
        _line(cause, counts[cause, "all"], counts[cause, "fails"], counts[cause, "passes"])


def _caught(real: Path, folder: Path) -> None:
    strategies = [preset.strategy for preset in PRESETS.values()]
    summary = judge_paths([real / "trajectories" / "tau-bench"], Judgement(folder / "judged", strategies))
    why = {row["strategy"]: "; ".join(row["why_unknown"]) for row in summary["rows"]}
    print("\ntau-bench:\n")
    for sentence in sentences(summary["answer"], why, summary["claimed"]):
        print(f"- {sentence}")
    _head("Caught by strategy, tau-bench", *HEADS)
    for row in table(summary["answer"]):
        _line(*row)
    print(f"\n{caption(summary['answer'])}")


def _speed(folder: Path) -> None:
    """CPU seconds of judging two strategies against those of ``json.loads`` on the same bytes."""
    lines = [record(number) for number in range(600)]
    path = files.write_lines(folder / "many.jsonl", lines)
    strategies = [PRESETS[name].strategy for name in ("silence", "verifier_claim")]

    def loads() -> None:
        for line in path.read_bytes().splitlines():
            json.loads(line)

    def judged() -> None:
        judge_paths([path], Judgement(folder / "speed", strategies))

    alone, both = _seconds(loads), _seconds(judged)
    size = path.stat().st_size / 1e6
    print(f"\nSpeed: {len(lines)} runs, {size:.1f} MB of lines: json.loads {alone:.3f} s,")
    print(
        f"two strategies {both:.2f} s of CPU: {both / alone:.1f} times; {len(lines) / both:.0f} runs a second"
    )


def _seconds(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    main()
