"""Worker processes of evalkit's own. The death of one, at any instruction, costs its job and no more.

Each worker has a socket of its own, and its death is heard of by the system, not by the socket: nothing is
shared that a dying process could hold, and half a message is no message.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import select
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from evalkit.containment.folders import sweep
from evalkit.containment.signal_errors import raise_again

#: Seconds that workers get to put their things away when they are told to end.
GRACE = 1.0
_HEAD = 8
_PIECE = 1 << 16
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Job = TypeVar("Job")
Result = TypeVar("Result")


class WorkerDied(RuntimeError):
    """A worker was killed, and the one that did its job again; one line."""


class Lost:
    """In place of the result of a job whose worker died."""


LOST: Final = Lost()


def can_fork() -> bool:
    """Whether workers start as copies of this process, which is quick and needs nothing to be pickled."""
    return "fork" in multiprocessing.get_all_start_methods()


class Workers(Generic[Job, Result]):
    """Processes that do jobs. ``begin(*arguments)`` makes each of them ready."""

    def __init__(
        self,
        count: int,
        task: Callable[[Job], Result],
        begin: Callable[..., None] | None = None,
        arguments: tuple[Any, ...] = (),
    ) -> None:
        self._count = count
        self._context: Any = multiprocessing.get_context("fork" if can_fork() else "spawn")
        self._told = (task, begin, arguments)
        self._all: list[_Worker[Job]] = []

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result | Lost]]:
        """Each job and its result, as they come; :data:`LOST` for a job whose worker died.

        A job is taken when a worker is free for it, and a worker started when there is a job for it: the
        first ones at once. What a job raises is raised here.
        """
        waiting = iter(jobs)
        self._hand_out(waiting)
        return self._results(waiting)

    def _results(self, waiting: Iterator[Job]) -> Iterator[tuple[Job, Result | Lost]]:
        try:
            while True:
                self._hand_out(waiting)
                busy = [worker for worker in self._all if worker.job is not None]
                if not busy:
                    break
                for worker in _heard(busy):
                    job = worker.job
                    assert job is not None
                    answer = worker.take()
                    if answer is not None:
                        fine, value = pickle.loads(answer)
                        if not fine:
                            raise value
                        yield job.value, value
                    elif worker.dead:
                        self._all.remove(worker)
                        worker.end(0.0)
                        sweep(Path(tempfile.gettempdir()))
                        yield job.value, LOST
            self._end(politely=True)
        finally:
            self.stop()

    def stop(self) -> None:
        """End all workers within :data:`GRACE` seconds, whatever they are doing."""
        self._end(politely=False)

    def _hand_out(self, waiting: Iterator[Job]) -> None:
        """Give every free worker a job, and start workers as long as there are jobs for them."""
        while True:
            free = [worker for worker in self._all if worker.job is None]
            if not free and len(self._all) >= self._count:
                return
            job = next(waiting, _NONE)
            if isinstance(job, _None):
                return
            for worker in free:
                if not worker.gone():
                    worker.give(job)
                    break
                self._all.remove(worker)
                worker.end(0.0)
            else:
                self._all.append(_Worker(self._context, self._told))
                self._all[-1].give(job)

    def _end(self, *, politely: bool) -> None:
        for worker in self._all:
            worker.dismiss() if politely else worker.process.terminate()
        deadline = time.monotonic() + (5 * GRACE if politely else GRACE)
        killed = [worker for worker in self._all if worker.end(deadline - time.monotonic())]
        self._all.clear()
        if killed:
            sweep(Path(tempfile.gettempdir()))


def in_order(
    task: Callable[[Job], Result],
    jobs: Iterable[Job],
    workers: int,
    begin: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """The results of jobs in their order, worked off by up to ``workers`` processes, or here where that is 1.

    Jobs are taken as workers are free for them. A job whose worker was killed is done again; WorkerDied where
    that happens twice.
    """
    if workers <= 1 or not can_fork():
        if begin is not None:
            begin(*arguments)
        yield from map(task, jobs)
        return
    todo: Iterable[tuple[int, Job]] = enumerate(jobs)
    done: dict[int, Result] = {}
    place = 0

    def numbered(job: tuple[int, Job]) -> Result:
        return task(job[1])

    for last in (False, True):
        lost = []
        for job, result in Workers(workers, numbered, begin, arguments).run(todo):
            if isinstance(result, Lost):
                lost.append(job)
                continue
            done[job[0]] = result
            while place in done:
                yield done.pop(place)
                place += 1
        if not lost:
            return
        if last:
            raise WorkerDied("a worker process was killed, and the one that did its work again as well")
        todo = lost


class _None:
    """No job is left."""


_NONE: Final = _None()


class _Given(Generic[Job]):
    """A job that a worker has; it may be anything, None too."""

    def __init__(self, value: Job) -> None:
        self.value = value


class _Worker(Generic[Job]):
    """One process as its parent sees it."""

    def __init__(self, context: Any, told: tuple[Any, ...]) -> None:
        self.job: _Given[Job] | None = None
        self.dead = False
        self._buffer = bytearray()
        self._socket, theirs = socket.socketpair()
        with theirs, _deaf():
            self.process: BaseProcess = context.Process(target=_work, args=(theirs, os.getpid(), *told))
            self.process.daemon = True
            self.process.start()
        self._socket.setblocking(False)
        assert self.process.pid is not None
        # A process that forked on and died keeps a pipe open, but not its own number.
        self._handle = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else None

    def watched(self) -> tuple[int, int]:
        """What to listen to: its socket, and its death."""
        return self._socket.fileno(), self.process.sentinel if self._handle is None else self._handle

    def gone(self) -> bool:
        """Whether it is dead."""
        return bool(select.select([self.watched()[1]], [], [], 0)[0])

    def give(self, job: Job) -> None:
        """Hand it a job. Where it dies of that, :func:`_heard` tells."""
        self.job = _Given(job)
        self._send(pickle.dumps(_Given(job)))

    def dismiss(self) -> None:
        """Tell it that there is no more."""
        self._send(pickle.dumps(None))

    def _send(self, message: bytes) -> None:
        rest = memoryview(len(message).to_bytes(_HEAD, "big") + message)
        handle = self.watched()[1]
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                if select.select([handle], [self._socket], [])[0]:
                    return
            except OSError:
                return

    def take(self) -> bytes | None:
        """What it has answered; None while that is not whole."""
        self.dead = self.gone()
        with suppress(BlockingIOError, ConnectionResetError):
            while piece := self._socket.recv(_PIECE):
                self._buffer += piece
            if not self.dead:
                # One that lives on without its socket would be heard for ever.
                self.process.kill()
        size = int.from_bytes(self._buffer[:_HEAD], "big")
        if len(self._buffer) < _HEAD or len(self._buffer) < _HEAD + size:
            return None
        answer = bytes(self._buffer[_HEAD : _HEAD + size])
        self._buffer.clear()
        self.job = None
        return answer

    def end(self, seconds: float) -> bool:
        """Wait so long for its end, then end it; whether that was needed."""
        self.process.join(max(0.0, seconds))
        killed = self.process.is_alive()
        if killed:
            self.process.kill()
            self.process.join()
        self.process.close()
        self._socket.close()
        if self._handle is not None:
            os.close(self._handle)
        return killed


def _heard(workers: list[_Worker[Job]]) -> list[_Worker[Job]]:
    """The workers of which something is heard, waited for."""
    listening = select.poll()
    by_number = {}
    for worker in workers:
        for number in worker.watched():
            listening.register(number, select.POLLIN)
            by_number[number] = worker
    return list(dict.fromkeys(by_number[number] for number, _ in listening.poll()))


@contextmanager
def _deaf() -> Iterator[None]:
    """A process begun in here hears Ctrl-C and SIGTERM only once it knows what to do then."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker


class Stopped(SystemExit):
    """A worker was told to end; what it holds is put away on the way out."""


def _work(
    pipe: socket.socket,
    parent: int,
    task: Callable[[Any], Any],
    begin: Callable[..., None] | None,
    arguments: tuple[Any, ...],
) -> None:
    """Do jobs until there are none. Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_stop)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    # What the parent made stays with it: no collection looks through it again, or copies its pages.
    gc.freeze()
    failed = None
    if begin is not None:
        try:
            begin(*arguments)
        except Exception as error:
            failed = _failed(error)
    with pipe, pipe.makefile("rb") as received:
        while True:
            head = received.read(_HEAD)
            job = pickle.loads(received.read(int.from_bytes(head, "big"))) if len(head) == _HEAD else None
            if job is None:
                return
            answer = failed or _answer(task, job.value)
            pipe.sendall(len(answer).to_bytes(_HEAD, "big") + answer)


def _answer(task: Callable[[Any], Any], job: Any) -> bytes:
    try:
        return pickle.dumps((True, task(job)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> bytes:
    """An answer that raises an error in the parent, or where it cannot be told, one that tells of it."""
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


def _on_stop(*_: Any) -> None:
    # Once is enough: nothing may interrupt what is being put away.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise_again(Stopped)
    raise Stopped(143)


def end_with(parent: int) -> None:
    """End this process when its parent is gone, however that came about."""
    try:
        handle = os.pidfd_open(parent)
    except (AttributeError, OSError):
        while os.getppid() == parent:
            time.sleep(0.2)
    else:
        # The number could be another's already.
        if os.getppid() == parent:
            select.select([handle], [], [])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(143)
