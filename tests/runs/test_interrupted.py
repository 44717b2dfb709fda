"""Runs that end early: killed, interrupted, out of disk, out of power. What was finished stays."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from evalkit.runs.chunk_worker import measured
from evalkit.runs.chunks import Chunk, Rows, singles
from evalkit.runs.local_pool import Local
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, RunError, Store
from tests.helpers import document
from tests.runs.test_run import STRATEGIES, TEXT, files, plan, whole

SEEDS = 800
EPISODES = 3 * SEEDS + 3


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evalkit", "run", *arguments, "--no-charts", "--workers", "2"]


def fresh(folder: str, seeds: int = SEEDS) -> list[str]:
    chosen = [part for name in STRATEGIES for part in ("-s", name)]
    return command("s.yaml", "--seeds", str(seeds), *chosen, "--out", folder)


def begin(arguments: list[str], cwd: Path, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    """Start a run in a process group of its own, as a terminal does."""

    def before() -> None:
        # A test run in the background of a script, or under nohup, has been told to ignore them.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if limit is not None:
            limit()

    return subprocess.Popen(
        arguments,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=before,
    )


def finish(arguments: list[str], cwd: Path) -> str:
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kept(folder: Path) -> int:
    """How many episodes a run folder holds; 0 where there is no run yet."""
    try:
        store = Store.open(folder, write=False)
    except RunError:
        return 0
    count = store.count()
    store.close()
    return count


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.005)


def children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return [int(number) for number in text.split()]


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(TEXT)
    return tmp_path


def kill_and_resume(place: Path, kills: int, seed: int) -> None:
    """Kill a run again and again at random points, resume it, and compare with one that was left alone."""
    start = time.monotonic()
    finish(fresh("whole"), place)
    longest = time.monotonic() - start
    moments = random.Random(seed)
    folder = place / "killed"
    before = 0
    for _ in range(kills):
        arguments = command("--resume", "killed") if kept(folder) else fresh("killed")
        process = begin(arguments, place)
        try:
            process.communicate(timeout=moments.uniform(0, longest))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        now = kept(folder)
        assert now >= before
        before = now
    finish(command("--resume", "killed") if kept(folder) else fresh("killed"), place)
    assert files(folder) == files(place / "whole")


@pytest.mark.long
def test_a_run_killed_at_random_points_is_resumed_to_the_same_result(place: Path) -> None:
    kill_and_resume(place, 6, 1)


@pytest.mark.soak
@pytest.mark.slow
def test_a_run_killed_a_hundred_times(place: Path) -> None:
    kill_and_resume(place, 100, 2)


@pytest.mark.long
def test_resume_says_what_is_there_and_what_has_changed(place: Path) -> None:
    process = begin(fresh("killed"), place)
    until(lambda: kept(place / "killed"))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    count = kept(place / "killed")
    assert 0 < count < EPISODES
    (place / "s.yaml").write_text(TEXT.replace("On it.", "On my way."))
    resumed = subprocess.run(
        command("--resume", "killed"), cwd=place, capture_output=True, text=True, check=True
    )
    assert f"resuming killed: {count} of {EPISODES} episodes are there" in resumed.stdout
    assert (
        "note: changed since: s.yaml; the run keeps to the scenarios that it was made from" in resumed.stderr
    )
    assert files(place / "killed") == whole(place / "whole", 2, SEEDS)


def test_workers_do_not_outlive_a_run_that_is_killed_alone(place: Path) -> None:
    process = begin(fresh("killed"), place)
    until(lambda: kept(place / "killed"))
    workers = children(process.pid)
    assert workers
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not any(map(alive, workers)))


class TestCtrlC:
    def interrupt(self, process: subprocess.Popen[str]) -> tuple[float, str]:
        """Send what Ctrl-C sends; the seconds until all is over, and what was said."""
        start = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
        return time.monotonic() - start, said

    def test_a_run_ends_in_two_seconds_and_can_be_resumed(self, place: Path) -> None:
        process = begin(fresh("stopped", 20_000), place)
        until(lambda: kept(place / "stopped"))
        seconds, said = self.interrupt(process)
        assert process.returncode == 130
        assert said.endswith("\ninterrupted; go on with: evalkit run --resume stopped\n")
        # Two seconds on a machine that is free; one that runs the other tests as well gets more.
        assert seconds < 8
        assert 0 < kept(place / "stopped") < 60_003

    @pytest.mark.long
    @pytest.mark.dask
    def test_a_cluster_of_its_own_ends_as_fast_and_says_no_more(self, place: Path) -> None:
        process = begin([*fresh("stopped", 20_000), "--engine", "dask"], place)
        until(lambda: kept(place / "stopped"))
        workers = children(process.pid)
        seconds, said = self.interrupt(process)
        assert process.returncode == 130
        assert said.endswith("\ninterrupted; go on with: evalkit run --resume stopped\n")
        assert "Traceback" not in said
        assert seconds < 8
        until(lambda: not any(map(alive, workers)))
        assert 0 < kept(place / "stopped") < 60_003

    def test_a_command_of_a_world_does_not_hold_it_up(self, tmp_path: Path) -> None:
        slow = document(
            [{"call": "run", "with": {"command": "touch begun && sleep 60"}}, {"say": "Done."}],
            world={"kind": "files", "items": ["a"], "checks": {"a": {"exists": "a.txt"}}},
        )
        (tmp_path / "s.yaml").write_text(yaml.safe_dump(slow))
        chosen = ["-s", "silence", "-s", "gate"]
        process = begin(command("s.yaml", *chosen, "--out", "stopped"), tmp_path)
        until(lambda: sleepers(process.pid))
        asleep = sleepers(process.pid)
        seconds, _ = self.interrupt(process)
        assert process.returncode == 130
        # Two seconds on a machine that is free; one that runs the other tests as well gets more.
        assert seconds < 8
        until(lambda: not any(map(alive, asleep)))


def sleepers(process: int) -> list[int]:
    """The processes of a run's tree that sleep in a command of a world."""
    found = []
    for child in children(process):
        found += sleepers(child)
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"sleep\0"):
            found.append(child)
    return found


@pytest.mark.long
def test_a_full_disk_ends_the_run_in_one_line_and_what_was_finished_stays(place: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    process = begin(fresh("full"), place, limit)
    _, said = process.communicate()
    assert process.returncode == 2
    assert said.startswith("evalkit: full: cannot be written: ")
    told, hint = said.splitlines()
    assert told.endswith("; go on with: evalkit run --resume full")
    assert hint == "hint: evalkit run --resume full"
    count = kept(place / "full")
    assert 0 < count < EPISODES
    assert f"{count} of {EPISODES} episodes are there" in finish(command("--resume", "full"), place)
    assert files(place / "full") == whole(place / "whole", 2, SEEDS)


class TestPowerCut:
    """What is on the disk when the power goes: a log whose end is missing or was never written."""

    @pytest.fixture
    def cut(self, tmp_path: Path) -> Path:
        """A folder as a power cut leaves it: the log written and not yet taken over."""
        made = plan(60)
        store = Store.create(tmp_path / "running", made.recipe)
        run_plan(made, store, 1)
        shutil.copytree(tmp_path / "running", tmp_path / "cut")
        store.close()
        assert (tmp_path / "cut" / f"{FILE}-wal").stat().st_size > 10_000
        return tmp_path / "cut"

    @pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.77, 0.99])
    def test_a_log_that_ends_early(self, cut: Path, part: float) -> None:
        log = cut / f"{FILE}-wal"
        os.truncate(log, int(log.stat().st_size * part))
        self.goes_on(cut)

    @pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
    def test_a_log_with_garbage_at_its_end(self, cut: Path, part: float) -> None:
        log = cut / f"{FILE}-wal"
        size = log.stat().st_size
        with log.open("r+b") as file:
            file.seek(int(size * part))
            file.write(random.Random(3).randbytes(size - int(size * part)))
        self.goes_on(cut)

    def goes_on(self, folder: Path) -> None:
        made = plan(60)
        try:
            store = Store.open(folder, write=True)
        except RunError:
            # Not even the tables had reached the disk: nothing was finished, and the folder can be used.
            store = Store.create(folder, made.recipe)
        assert store.count() <= made.episodes()
        run_plan(made, store, 1)
        from evalkit.reports.write import write_report

        write_report(store, charts=False)
        store.close()
        assert files(folder) == whole(folder.parent / "whole", 1, 60)


def test_a_folder_whose_run_never_began_can_be_used(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    with pytest.raises(RunError, match="ended before it began"):
        Store.open(tmp_path, write=False)
    Store.create(tmp_path, plan(1).recipe).close()


def test_a_damaged_file_is_not_gone_on_with(tmp_path: Path) -> None:
    made = plan(200)
    store = Store.create(tmp_path, made.recipe)
    run_plan(made, store, 1)
    store.close()
    file = tmp_path / FILE
    data = bytearray(file.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = random.Random(4).randbytes(4096)
    file.write_bytes(bytes(data))
    with pytest.raises(RunError, match=r"the run is damaged|the run cannot be read"):
        Store.open(tmp_path, write=True)


def test_damage_that_no_reading_meets_is_found_before_a_run_goes_on(tmp_path: Path) -> None:
    """Two rows of a page are in the wrong order: each of them can still be read."""
    made = plan(200)
    store = Store.create(tmp_path, made.recipe)
    run_plan(made, store, 1)
    (size,) = store.base.execute("pragma page_size").fetchone()
    store.close()
    data = bytearray((tmp_path / FILE).read_bytes())
    # The last page of rows; its cells' places begin after eight bytes.
    page = max(place for place in range(size, len(data), size) if data[place] == 13)
    places = slice(page + 8, page + 12)
    data[places] = data[page + 10 : page + 12] + data[page + 8 : page + 10]
    (tmp_path / FILE).write_bytes(bytes(data))
    read = Store.open(tmp_path, write=False)
    assert read.count() == made.episodes()
    read.close()
    with pytest.raises(RunError, match="the run is damaged"):
        Store.open(tmp_path, write=True)


def test_a_resume_runs_no_finished_cell_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(30)
    store = Store.create(tmp_path, made.recipe)
    run_plan(made, store, 1)
    with store.base:
        store.base.execute("delete from episode where cell % 7 = 3")
    missing = [cell for cell in range(made.episodes()) if cell % 7 == 3]
    ran: list[int] = []

    def noted(chunk: Chunk) -> tuple[Rows, float]:
        ran.extend(cell.cell for cell in singles(chunk))
        return measured(chunk)

    run_plan(made, store, 1, engine=Local(1, noted))
    store.close()
    assert ran == missing


def test_what_is_kept_is_on_the_disk(tmp_path: Path) -> None:
    """A power cut must not tear the file: the log is synchronised before it is taken over."""
    store = Store.create(tmp_path, plan(1).recipe)
    for each in (store, Store.open(tmp_path, write=True)):
        assert each.base.execute("pragma synchronous").fetchone() == (1,)
        assert each.base.execute("pragma journal_mode").fetchone() == ("wal",)
        each.close()
