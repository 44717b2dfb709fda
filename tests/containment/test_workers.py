"""Worker processes: no death of one, at whatever instruction, hangs the others or loses a job."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from evalkit.containment import workers as module
from evalkit.containment.workers import LOST, WorkerDied, Workers, in_order

#: Seconds after which something hangs.
LONG = 20.0


@pytest.fixture(autouse=True)
def _limit():  # type: ignore[no-untyped-def]
    """A hang ends the test, and not the whole run."""

    def too_long(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, LONG * 6)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def doubled(number: int) -> int:
    return number * 2


def results(task, jobs, workers: int = 2):  # type: ignore[no-untyped-def]
    return sorted(Workers(workers, task).run(jobs), key=lambda done: done[0])


def test_each_job_is_done_once_and_no_worker_is_started_for_nothing() -> None:
    def who(number: int) -> int:
        time.sleep(0.01)
        return os.getpid()

    done = results(who, range(3), workers=50)
    assert [job for job, _ in done] == [0, 1, 2]
    assert len({pid for _, pid in done}) <= 3
    assert not any(Path(f"/proc/{pid}").exists() for _, pid in done)
    assert results(doubled, []) == []


def test_what_a_job_raises_is_raised() -> None:
    def fails(number: int) -> int:
        raise OSError(28, "no room")

    with pytest.raises(OSError, match="no room"):
        results(fails, [1])


def test_what_cannot_be_handed_over_is_told() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError), match="pickle"):
        results(lambda number: lambda: None, [1])


def test_a_worker_that_cannot_begin_says_why() -> None:
    def begin() -> None:
        raise ValueError("no plan")

    with pytest.raises(ValueError, match="no plan"):
        list(Workers(2, doubled, begin).run([1, 2]))


def test_large_jobs_and_results_pass() -> None:
    jobs = [bytes([number]) * 3_000_000 for number in range(4)]
    assert [len(result) for result in in_order(bytes, jobs, 2)] == [3_000_000] * 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("sent", [0, 1, 7, 8, 9, 500, -1])
def test_a_death_within_the_message_costs_that_job_alone(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, sent: int
) -> None:
    """The result of job 3 is handed over up to a byte of it; then the worker is dead."""
    parent = os.getpid()
    whole = socket.socket.sendall

    class Dying(socket.socket):
        def sendall(self, data: bytes, *flags: int) -> None:  # type: ignore[override]
            if os.getpid() != parent and pickle.loads(data[8:])[1] == b"3" * 1000:
                whole(self, data[:sent])
                os.kill(os.getpid(), number)
            whole(self, data, *flags)

    monkeypatch.setattr(module.socket, "socketpair", lambda: _pair(Dying))
    done = results(lambda job: str(job).encode() * 1000, range(8))
    assert [job for job, _ in done] == list(range(8))
    assert [job for job, result in done if result is LOST] == [3]


def _pair(kind: type[socket.socket]) -> tuple[socket.socket, socket.socket]:
    return tuple(kind(fileno=end.detach()) for end in _real())  # type: ignore[return-value]


_real = socket.socketpair


def test_a_dead_worker_whose_child_holds_its_socket_is_dead() -> None:
    def forks_and_dies(number: int) -> int:
        if number == 1:
            if os.fork() == 0:
                time.sleep(LONG)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    start = time.monotonic()
    assert [result is LOST for _, result in results(forks_and_dies, range(3))] == [False, True, False]
    assert time.monotonic() - start < LONG / 2


def test_one_that_closes_its_socket_and_lives_on_is_ended() -> None:
    def closes(number: int) -> int:
        if number == 1:
            os.closerange(3, 100)
            time.sleep(LONG)
        return number

    start = time.monotonic()
    assert [result is LOST for _, result in results(closes, range(3))] == [False, True, False]
    assert time.monotonic() - start < LONG / 2


def test_what_is_lost_is_done_again_in_order_and_given_up_the_second_time(tmp_path: Path) -> None:
    def dies_once(number: int) -> int:
        mark = tmp_path / str(number)
        if number % 3 == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(in_order(dies_once, range(7), 2)) == list(range(7))
    with pytest.raises(WorkerDied, match="was killed"):
        list(in_order(lambda number: os.kill(os.getpid(), signal.SIGKILL), [1], 2))


def test_workers_that_are_left_in_the_middle_end_soon() -> None:
    def stubborn(number: int) -> int:
        if number:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(LONG)
        return os.getpid()

    running = Workers(2, stubborn).run([0, 1])
    _, pid = next(running)
    start = time.monotonic()
    running.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 5
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_killed_at_every_system_call_of_handing_over(number: str) -> None:
    """strace ends the worker at its first, second, … system call after the work of job 1."""
    strace = shutil.which("strace")
    assert strace, "needs strace"

    def traced(job: tuple[int, int]) -> int:
        call, which = job
        if which == 1:
            inject = f"inject=all:signal={number}:when={call}"
            subprocess.Popen(
                [strace, "-q", "-o", os.devnull, "-p", str(os.getpid()), "-e", "trace=all", "-e", inject],
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            # No system call of its own until it is held: what comes then is handing over.
            with open("/proc/self/status") as status:
                while "TracerPid:\t0\n" in status.read():
                    status.seek(0)
        return which

    tried = killed = 0
    for call in range(1, 60):
        start = time.monotonic()
        done = sorted(Workers(2, traced).run([(call, which) for which in range(4)]), key=lambda each: each[0])
        tried += 1
        assert [which for (_, which), _ in done] == [0, 1, 2, 3], call
        assert {result for (_, which), result in done if which != 1} == {0, 2, 3}, call
        assert time.monotonic() - start < LONG, call
        killed += done[1][1] is LOST
    print(f"killed at {killed} of {tried} system calls: no hang, nothing lost but the job itself")
    assert killed >= 3
