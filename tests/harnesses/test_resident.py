"""Programs of evalkit's client do one task after the other; what they carry to the next is noticed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.core.tasks import Offered
from evalkit.harnesses.episode_record import CARRIED
from evalkit.harnesses.processes import Capture
from evalkit.harnesses.resident import ResidentRunner
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import contract_of, hear, run_foreign, runner_of, server_for_harnesses
from tests.harnesses.episodes import program, running, scenario
from tests.harnesses.test_whole_life import HEAD

#: It counts its tasks in a file of the folder it was started from.
COUNTS = (
    HEAD
    + """
tasks = []
def run(job):
    tasks.append(os.getpid())
    messages = begin(job)
    while turn(job, messages):
        pass
    return {"ending": "done", "native": f"task {len(tasks)} of {os.getpid()}"}

serve(run)
"""
)
#: It keeps one conversation for all its tasks.
LEAKS = (
    HEAD
    + """
messages = []
def run(job):
    messages.append({"role": "user", "content": job.prompt})
    while turn(job, messages):
        pass

serve(run)
"""
)
#: It keeps the address of its first task.
OLD_ADDRESS = (
    HEAD
    + """
first = []
def run(job):
    first.append(job.anthropic_url)
    job.anthropic_url = first[0]
    messages = begin(job)
    while turn(job, messages):
        pass

serve(run)
"""
)
ALONE = """
import json, os, urllib.request
body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}).encode()
urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body).read()
"""


RAISES = (
    HEAD
    + """
def run(job):
    turn(job, begin(job))
    raise ValueError("no such parcel")

serve(run)
"""
)


def three(folder: Path, text: str, *, fresh: bool = False) -> list[tuple[str, str, bool]]:
    """Three episodes of a program in a row: outcome, native signal, whether it was noticed to carry over."""
    harness = hear(program(folder, text))
    runner = runner_of(harness, seconds=20.0, fresh=fresh)
    arena = Arena(scenario(), Offered())
    found = []
    try:
        with server_for_harnesses() as server:
            for _ in range(3):
                episode, kept = run_foreign(arena, 0, contract_of(harness), runner, server)
                found.append((episode.outcome, episode.native, CARRIED in kept.seen))
    finally:
        runner.close()
    return found


def test_a_program_of_the_client_is_one_process(tmp_path: Path) -> None:
    assert isinstance(runner_of(hear(program(tmp_path, COUNTS))), ResidentRunner)
    found = three(tmp_path, COUNTS)
    assert [outcome for outcome, _, _ in found] == ["done/reachable"] * 3
    assert [native.split()[1] for _, native, _ in found] == ["1", "2", "3"]
    assert len({native.split()[-1] for _, native, _ in found}) == 1
    assert not any(carried for _, _, carried in found)


def test_fresh_is_a_process_each(tmp_path: Path) -> None:
    found = three(tmp_path, COUNTS, fresh=True)
    assert [native.split()[1] for _, native, _ in found] == ["1", "1", "1"]


def test_a_program_without_the_client_is_started_for_each(tmp_path: Path) -> None:
    assert not hear(program(tmp_path, ALONE)).resident


def test_what_a_task_printed_is_kept_from_its_first_character_to_its_last_line(tmp_path: Path) -> None:
    with running(hear(program(tmp_path, RAISES))) as run:
        for _ in range(5):
            printed = run()[1].output
            assert printed.startswith("Traceback (most recent call last):\n"), printed
            assert printed.endswith("ValueError: no such parcel\n"), printed


def test_what_lies_in_the_stream_of_a_process_that_goes_on_is_read() -> None:
    """Each time all of it, though another thread reads it too."""
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        capture = Capture(stream)
        for number in range(300):
            printed, lines = capture.total, [f"line {number}.{place}\n" for place in range(4)]
            for line in lines:
                os.write(writing, line.encode())
            assert capture.text(printed, running=True) == "".join(lines)
        os.close(writing)
        assert capture.text().endswith("line 299.3\n")


def test_what_a_process_printed_before_it_ended_is_there_though_its_reader_comes_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine the other thread may not have run by then."""
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(threading.Thread, "join", lambda *_: None)
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        capture = Capture(stream)
        os.write(writing, b"no configuration found\n")
        os.close(writing)
        assert capture.text() == "no configuration found\n"


@pytest.mark.parametrize("text", [LEAKS, OLD_ADDRESS], ids=["conversation", "address"])
def test_what_is_carried_over_is_noticed_and_the_task_done_anew(tmp_path: Path, text: str) -> None:
    """The second task meets what the first left: it, and all further ones, are done in new processes."""
    found = three(tmp_path, text)
    assert [outcome for outcome, _, _ in found] == ["done/reachable"] * 3
    assert [carried for _, _, carried in found] == [False, True, False]


@pytest.mark.long
def test_the_command_has_a_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, COUNTS)
    suite = ["empty_turns", "--harness", "agent.py", "--no-charts", "--json"]
    said = CliRunner().invoke(main, ["run", *suite, "--out", "one"])
    assert said.exit_code == 0, said.output
    said = CliRunner().invoke(main, ["run", *suite, "--fresh", "--out", "other"])
    assert said.exit_code == 0, said.output
    csv = [(tmp_path / out / "episodes.csv").read_text() for out in ("one", "other")]
    assert "task 2 of" in csv[0]
    assert "task 2 of" not in csv[1]
