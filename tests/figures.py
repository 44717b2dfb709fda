"""``make figures``: the found inputs as they are now, one truth over the wire, cells that changed, speed.

``python -m tests.figures found truth`` prints some of it. ``EVALKIT_SHARED`` names the folder with the found
inputs, without which they are left out; ``EVALKIT_BEFORE`` a commit to compare cells and speed with, in a
work tree of its own, without which nothing is compared.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalkit.scenarios.loader import load_file
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS
from evalkit.wire.dialects import DIALECTS
from evalkit.wire.server import Server
from tests.harnesses.episodes import LOOP, program
from tests.harnesses.episodes import played as program_played
from tests.helpers import play
from tests.scoring.talk import Talk, played

ROOT = Path(__file__).resolve().parents[1]
#: What a cell says beside its outcome.
FLAGS = (
    "false_done",
    "premature_stop",
    "over_continuation",
    "unclosed",
    "ran_cut_off_call",
    "over_limit",
    "altered_results",
    "reworded_results",
    "futile_retries",
    "duplicate_effects",
    "protocol_faults",
)


def cell(episode: Episode) -> str:
    """``done/stuck, 4 turns, not correct: false_done``."""
    flags = [f"{flag} {value}" if value > 1 else flag for flag in FLAGS if (value := getattr(episode, flag))]
    right = "correct" if episode.correct else "not correct"
    return f"{episode.outcome}, {episode.turns} turns, {right}" + (f": {', '.join(flags)}" if flags else "")


# Harnesses that go wrong in one way each


def ignores_limits(talk: Talk) -> None:
    talk.work()


def stops_at_two(talk: Talk) -> dict[str, str]:
    for _ in range(2):
        calls = talk.keep(talk.ask())
        talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
    return {"ending": "limit"}


def swaps(talk: Talk) -> None:
    talk.work(lambda told: dict(zip(told, reversed(list(told.values())), strict=True)))


def empties(talk: Talk) -> None:
    talk.work(lambda told: dict.fromkeys(told, "") if len(told) > 1 else told)


def shortens(talk: Talk) -> None:
    talk.work(
        lambda told: {id: text[: len(text) // 2] for id, text in told.items()} if len(told) > 1 else told
    )


def retries_five_times(talk: Talk) -> dict[str, str]:
    talk.work()
    for _ in range(5):
        talk.ask()
    return {"ending": "error"}


def says_continue(talk: Talk) -> dict[str, str]:
    """At each end at a limit it says *Continue*, three times, and gives up."""
    for _ in range(4):
        if talk.work().get("stop_reason") == "end_turn":
            return {"ending": "done"}
        talk.messages.append({"role": "user", "content": "Continue."})
    return {"ending": "escalated"}


def leaves_out_what_was_cut(talk: Talk) -> None:
    """At a full window it asks again without the cut turn and with less of what the tools answered."""
    while talk.work().get("stop_reason") != "end_turn":
        talk.messages.pop()
        for block in talk.messages[2]["content"]:
            block["content"] = block["content"][:1]


def takes_queued_for_an_answer(talk: Talk) -> None:
    talk.ask()


class Program(str):
    """The text of a program that takes the user's later words, behind an ending."""


#: Whatever the user says after its first ending, it ends at once.
ENDS_FOR_GOOD = Program('import os\nif os.environ.get("EVALKIT_RESUME"):\n    raise SystemExit\n' + LOOP)


#: File: (who plays, what its cell must begin with, flags that must stand, flags that must not).
Want = tuple[str | Callable[[Talk], Any], str, str, str]
FOUND: dict[str, list[Want]] = {
    "forbidden-item": [
        ("silence", "done/stuck", "false_done", ""),
        ("acceptance", "escalated/stuck", "", "false_done"),
        ("gate", "escalated/stuck", "", "false_done"),
    ],
    "given-forbidden": [(name, "done/complete", "", "false_done") for name in ("gate", "checklist")],
    "batch-posts-twice": [
        *((name, "done/spoiled", "false_done", "") for name in ("silence", "checklist", "certificate")),
        ("gate", "done/complete", "", "duplicate_effects"),
    ],
    "skip-in-cut-off-turn": [(name, "escalated/stuck", "", "") for name in ("checklist", "gate")],
    "skip-beside-a-call": [(name, "done/complete", "", "") for name in ("checklist", "gate")],
    "finish-not-offered": [("silence", "done/stuck", "false_done", "")],
    "turn-played-again": [("acceptance", "limit/stuck", "over_continuation", "")],
    "two-finish-calls": [("finish_tool", "done/stuck", "false_done", "")],
    "words-before-the-first-turn": [("silence", "done/complete", "", "")],
    "compaction-after-a-fault": [("gate", "done/complete", "", "")],
    "words-during-a-pause": [("gate", "done/complete", "", "protocol_faults")],
    "finish-in-words": [("checklist", "escalated/stuck", "", ""), ("unattended", "escalated/stuck", "", "")],
    "thirty-readings": [
        ("silence", "done/complete", "", ""),
        ("turn_cap", "limit/reachable", "premature_stop", ""),
        ("keyword", "limit/reachable", "premature_stop", ""),
        (stops_at_two, "limit/reachable", "premature_stop", ""),
    ],
    "second-question": [
        ("silence", "done/complete", "", "false_done"),
        ("gate", "done/complete", "", "false_done"),
        (ENDS_FOR_GOOD, "done/reachable", "false_done", ""),
    ],
    "user": [("silence", "done/reachable", "premature_stop", "")],
    "limit": [
        (ignores_limits, "done/complete", "over_limit", ""),
        (stops_at_two, "limit/reachable", "", "over_limit"),
    ],
    "limtok": [
        (stops_at_two, "limit/reachable", "", ""),
        ("acceptance", "done/complete", "", ""),
        ("silence", "limit/complete", "unclosed", "over_limit"),
    ],
    "refusedcall": [("silence", "done/complete", "ran_cut_off_call, duplicate_effects", "")],
    "cutcall": [("silence", "done/complete", "ran_cut_off_call, duplicate_effects", "")],
    "samecall": [("gate", "limit/stuck", "over_continuation", "")],
    "bg": [(takes_queued_for_an_answer, "done/reachable", "false_done", "")],
    "results": [
        (swaps, "done/complete", "altered_results", ""),
        (empties, "done/complete", "altered_results", ""),
        (shortens, "done/complete", "reworded_results", "altered_results"),
    ],
    "400": [
        ("gate", "error/stuck, 1 turns, correct", "", "futile_retries"),
        (retries_five_times, "error/stuck", "futile_retries", ""),
    ],
    "fullwindow": [
        ("silence", "done/reachable, 2 turns", "premature_stop", ""),
        ("gate", "done/complete, 4 turns", "", ""),
        (says_continue, "escalated/reachable", "", ""),
        (leaves_out_what_was_cut, "done/complete", "", ""),
    ],
    "again": [
        ("gate", "done/complete", "", "duplicate_effects"),
        ("silence", "done/spoiled", "false_done", ""),
    ],
    "late": [("gate", "done/complete", "", "")],
    "tokens": [
        ("gate", "limit/reachable", "", "over_limit"),
        ("silence", "limit/reachable", "", "over_limit"),
    ],
}


def by(path: Path, who: str | Callable[[Talk], Any]) -> Episode:
    if isinstance(who, Program):
        with tempfile.TemporaryDirectory() as folder:
            harness = program(Path(folder), who, events={"user": ["ended"]})
            return program_played(harness, text=path.read_text())[0]
    of = load_file(path)[0]
    return play(of, who) if isinstance(who, str) else played(of, who)[0]


def found() -> None:
    """Each found input with what must be seen there, and what is."""
    folder = Path(os.environ.get("EVALKIT_SHARED", "")) / "cases" / "found"
    if "EVALKIT_SHARED" not in os.environ or not folder.is_dir():
        print("found inputs: not looked at, EVALKIT_SHARED names no folder with them")
        return
    right = wrong = 0
    for stem, wants in FOUND.items():
        for who, begins, flags, without in wants:
            episode = by(folder / f"{stem}.yaml", who)
            said = cell(episode)
            seen = dict.fromkeys(FLAGS, 0) | {flag: getattr(episode, flag) for flag in FLAGS}
            fits = (
                said.startswith(begins)
                and all(seen[flag] for flag in flags.split(", ") if flag)
                and not any(seen[flag] for flag in without.split(", ") if flag)
            )
            right, wrong = right + fits, wrong + (not fits)
            name = (
                "ends for good" if isinstance(who, Program) else who if isinstance(who, str) else who.__name__
            )
            print(f"  {'ok   ' if fits else 'WRONG'} {stem:30} {name:20} {said}")
    rare = load_file(folder / "rare-choice.yaml")[0]
    readings = [play(rare, "silence", seed).turns - 2 for seed in range(400)]
    print(f"  rare-choice, 400 seeds: {sum(readings) / 400:.2f} readings a run, none in {readings.count(0)}")
    print(f"found inputs: {right} as they must be, {wrong} not")


def truth() -> None:
    """The scenarios with events in them: the same in process and over each line?"""
    from tests.wire.test_one_truth import LIBRARY, LINES, compare

    counts: Counter[str] = Counter()
    with Server(stall_scale=0) as server:
        for of in (of for of in LIBRARY if of.events):
            for name in ("silence", "acceptance", "gate"):
                strategy = PRESETS[name].strategy
                arena = Arena(of, strategy.offers)
                for line in LINES:
                    try:
                        counts[
                            "equal" if compare(server, of, strategy, line, arena) else "not expressible"
                        ] += 1
                    except AssertionError as error:
                        counts["different"] += 1
                        print(f"  different: {error}")
    print(f"one truth over {', '.join(DIALECTS)}, streamed and not:", dict(counts))


@contextmanager
def before() -> Iterator[Path | None]:
    """A work tree of the commit to compare with."""
    commit = os.environ.get("EVALKIT_BEFORE")
    if not commit:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def python(tree: Path, *words: str) -> str:
    """What a program of a tree prints, evalkit being that tree's."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    run = subprocess.run(
        [sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode not in (0, 1):
        raise SystemExit(run.stderr)
    return run.stdout


def cells() -> None:
    """The cells of the scenarios that both commits have: what changed, by column."""
    with before() as tree, tempfile.TemporaryDirectory() as folder:
        if tree is None:
            print("cells: not compared, EVALKIT_BEFORE names no commit")
            return
        rows = []
        for place, of in (("before", tree), ("now", ROOT)):
            out = Path(folder) / place
            python(
                of,
                "-m",
                "evalkit",
                "run",
                *(f"-s{name}" for name in PRESETS),
                "--no-charts",
                "--out",
                str(out),
            )
            with (out / "episodes.csv").open(newline="") as file:
                rows.append({(row["scenario"], row["strategy"]): row for row in csv.DictReader(file)})
    old, new = rows
    both = sorted(old.keys() & new.keys())
    # An episode's number says only which others there are.
    columns = [column for column in old[both[0]] if column in new[both[0]] and column != "episode"]
    changed = Counter(
        ", ".join(differ)
        for key in both
        if (differ := [column for column in columns if old[key][column] != new[key][column]])
    )
    print(f"cells: {sum(changed.values())} of {len(both)} changed")
    for which, count in changed.most_common():
        print(f"  {count:5} {which}")


#: Eight turns: six items after a listing, and the claim.
EIGHT = """
import sys, time
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS
loaded = load_text('''
scenario: eight-turns
family: partial_completion
task: {prompt: Do every item., done_when: All are done.}
world: {kind: items, items: [i1, i2, i3, i4, i5, i6]}
model: [{call: list_items}, {work: rest}, {say: All are done., claim: done}]
''', "eight.yaml")[0]
for name in ("silence", "gate"):
    strategy = PRESETS[name].strategy
    arena = Arena(loaded, strategy.offers)
    best = 1.0
    for _ in range(12):
        begun = time.process_time()
        for _ in range(200):
            run_episode(arena, strategy, 0)
        best = min(best, (time.process_time() - begun) / 200)
    print(best)
"""


def speed() -> None:
    """An episode of eight turns, before and now in turns: the best of each."""
    with before() as tree:
        if tree is None:
            print("speed: not compared, EVALKIT_BEFORE names no commit")
            return
        best = {place: [1.0, 1.0] for place in ("before", "now")}
        for _ in range(5):
            for place, of in (("before", tree), ("now", ROOT)):
                times = [float(line) for line in python(of, "-c", EIGHT).split()]
                best[place] = [min(pair) for pair in zip(best[place], times, strict=True)]
    for name, old, new in zip(("silence", "gate"), best["before"], best["now"], strict=True):
        print(
            f"speed: 8 turns by {name}: {old * 1e6:.0f} µs before, {new * 1e6:.0f} now, {new / old:.2f} times"
        )


PARTS = {"found": found, "truth": truth, "cells": cells, "speed": speed}


def main() -> None:
    """Print the parts named, or all."""
    for name in sys.argv[1:] or PARTS:
        if name not in PARTS:
            raise SystemExit(f"unknown part {name!r}; known: {', '.join(PARTS)}")
        begun = time.monotonic()
        PARTS[name]()
        print(f"  ({name}: {time.monotonic() - begun:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
