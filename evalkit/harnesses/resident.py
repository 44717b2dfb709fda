"""A resident harness process: a job for each line on its stdin, an ending for each line on its stdout."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Event, Lock
from typing import Any

import msgspec

from evalkit.harnesses.command import Deadline, Over, Stopped, died, parse_ending
from evalkit.harnesses.endings import Finished, Then, is_over
from evalkit.harnesses.manifest import Harness
from evalkit.harnesses.pinned_environment import Environment
from evalkit.harnesses.process_environment import Surroundings
from evalkit.harnesses.processes import FLOOD, Group

_TICK = 0.05
_LONGEST_LINE = 1 << 20


class ResidentRunner:
    """One process for many episodes; a new one after an episode that did not end by itself."""

    def __init__(self, harness: Harness, environment: Environment, seconds: float | None = None) -> None:
        self._seconds = seconds or harness.manifest.time_limit_s
        self._around = Surroundings(harness, environment, resident=True)
        self._distrusted = False
        self._stopped = Event()
        self._group: Group | None = None
        self._read = bytearray()

    def run(self, told: dict[str, str], over: Over, then: Then = is_over) -> Finished:
        own = self._around.episode()
        job: dict[str, Any] = {**told, **own}
        try:
            finished = self._line_by_line(job, over)
            while (further := then(finished)) is not None:
                if further.restart or self._group is None:
                    if self._stopped.wait(further.after_s):
                        raise Stopped
                    self._end()
                    line = {**job, "resume": True, **further.variables}
                    if further.resumers > 1:
                        return self._side_by_side(line, over, then, further.resumers)
                else:
                    line = further.line
                finished = self._line_by_line(line, over)
            return finished
        finally:
            self._around.done(own)
            if self._distrusted:
                self._end()

    def _side_by_side(self, line: Mapping[str, Any], over: Over, then: Then, count: int) -> Finished:
        """Several processes that resume one run in one folder; the first that ends without an error tells."""
        legs = [copy(self) for _ in range(count)]
        turns = Lock()

        def one(leg: ResidentRunner) -> Finished:
            leg._read = bytearray()
            try:
                finished = leg._line_by_line(line, over)
                while True:
                    with turns:
                        further = then(finished)
                    if further is None or further.restart:
                        return finished
                    finished = leg._line_by_line(further.line, over)
            finally:
                leg._end()

        with ThreadPoolExecutor(count) as pool:
            ended = list(pool.map(one, legs))
        well = (each for each in ended if isinstance(each.told, dict) and not each.told.get("error"))
        return next(well, ended[0])

    @property
    def trusted(self) -> bool:
        """Whether one process does many tasks."""
        return not self._distrusted

    def distrust(self) -> None:
        """It has carried something from one task to the next: from now on each task has a new process."""
        self._distrusted = True
        self._end()

    def restart(self) -> None:
        """End its process: the next task is the first of a new one."""
        self._end()

    def _line_by_line(self, job: Mapping[str, Any], over: Over) -> Finished:
        """What the program answers to one line: its process started if there is none."""
        if self._group is None or not self._group.running:
            self._end()
            try:
                around = self._around
                self._group = Group(around.command(), around.env(), around.folder, around.folder, piped=True)
            except OSError as error:
                return Finished(problem=f"cannot be started: {error.strerror}")
        group = self._group
        printed = group.output.total
        finished = self._job(group, job, Deadline(self._seconds, over, self._stopped), printed)
        if finished.problem or not isinstance(finished.told, dict):
            left = self._end()
            code = group.exit if finished.exit == "running" else finished.exit
            return died(finished, group, code, group.output.text(printed), left)
        return msgspec.structs.replace(finished, leg=group.process.pid, waits=group.running)

    def _job(self, group: Group, job: Mapping[str, Any], deadline: Deadline, printed: int) -> Finished:
        stdin = group.process.stdin
        assert stdin is not None
        os.set_blocking(stdin.fileno(), False)
        rest = json.dumps(job).encode() + b"\n"
        while rest:
            passed = deadline.passed(group.output.total - printed)
            if passed is not None:
                return msgspec.structs.replace(passed, exit="running")
            try:
                if select.select([], [stdin], [], _TICK)[1]:
                    rest = rest[os.write(stdin.fileno(), rest) :]
            except OSError:
                return Finished(None, _ended(group), exit="running")
        while True:
            line = self._line(group)
            output = group.output
            if line is not None:
                told = parse_ending(line)
                return Finished(told, exit="exit:0", output=output.text(printed, running=True))
            if not group.running and not self._readable(group):
                return Finished(None, _ended(group), exit=group.exit)
            passed = deadline.passed(output.total - printed)
            if passed is None and len(self._read) > _LONGEST_LINE:
                passed = Finished(problem=f"printed a line of more than {_LONGEST_LINE >> 20} MB")
            if passed is not None:
                return msgspec.structs.replace(passed, exit="running")

    def _readable(self, group: Group) -> bool:
        assert group.process.stdout is not None
        return bool(select.select([group.process.stdout], [], [], 0)[0]) and self._fill(group)

    def _fill(self, group: Group) -> bool:
        assert group.process.stdout is not None
        chunk = os.read(group.process.stdout.fileno(), 1 << 16)
        self._read += chunk
        return bool(chunk)

    def _line(self, group: Group) -> bytes | None:
        """The next line, or None when none came within a tick."""
        assert group.process.stdout is not None
        if b"\n" not in self._read:
            ready, _, _ = select.select([group.process.stdout], [], [], _TICK)
            if ready and not self._fill(group):
                time.sleep(_TICK)
        line, newline, rest = self._read.partition(b"\n")
        if not newline or len(line) > FLOOD:
            return None
        self._read = bytearray(rest)
        return bytes(line)

    def _end(self) -> int:
        self._read.clear()
        left = 0
        if self._group is not None:
            left = self._group.kill()
            self._group = None
        return left

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._end()
        self._around.close()


def _ended(group: Group) -> str:
    code = group.exit
    if group.over:
        return group.over
    return "exit:0 without an ending" if code in ("exit:0", "running") else code
