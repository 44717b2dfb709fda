"""An episode as a command: started for it, ended with it; its ending is a file, or its exit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from evalkit.containment.files import NoPlainFile, read_plain
from evalkit.containment.folders import remove
from evalkit.harnesses.endings import Finished, Then, is_over
from evalkit.harnesses.manifest import Harness
from evalkit.harnesses.pinned_environment import Environment
from evalkit.harnesses.process_environment import Surroundings
from evalkit.harnesses.processes import FLOOD, Group

#: How long a harness may take to end when evalkit's cap has ended the episode.
GRACE_S = 2.0
_TICK = 0.01
_LARGEST_ENDING = 1 << 20
CAP = "evalkit's cap"

#: Why a program has to end: evalkit's side of the episode is over, so that nothing it does can count, or the
#: script kills it here.
Why: TypeAlias = Literal["", "over", "kill"]
Over = Callable[[], Why]
#: What a run says of a program that the script has killed.
KILLED = "killed by the script"


class Runner(Protocol):
    """Runs episodes of one harness, one after the other."""

    def run(self, told: dict[str, str], over: Over, then: Then = is_over) -> Finished:
        """Run one episode; ``told`` are the variables of it, ``then`` says how it goes on behind an ending.

        Stopped where :meth:`stop` was called.
        """

    def stop(self) -> None:
        """End what is running soon, from another thread."""

    def close(self) -> None:
        """End what is running."""


class Stopped(Exception):
    """The run was interrupted while an episode was under way."""


class Deadline:
    """When an episode is ended by evalkit: the time limit, the cap, a flood of output."""

    def __init__(self, seconds: float, over: Over, stopped: Event | None = None) -> None:
        self._stopped = stopped or Event()
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._over = over
        self._grace: float | None = None

    def passed(self, printed: int) -> Finished | None:
        """Why the episode has to end now; None while it goes on. Stopped where nobody waits for it."""
        if self._stopped.is_set():
            raise Stopped
        now = time.monotonic()
        why = self._over()
        if why == "kill":
            return Finished(problem=KILLED, killed=True)
        if self._grace is None and why:
            self._grace = now + GRACE_S
        if self._grace is not None and now > self._grace:
            return Finished(problem=CAP, never=True)
        if now > self._end:
            return Finished(problem=f"time limit of {self._seconds:g} s", never=True)
        if printed > FLOOD:
            return Finished(problem=f"printed more than {FLOOD >> 20} MB")
        return None


class CommandRunner:
    """One process for each episode."""

    def __init__(self, harness: Harness, environment: Environment, seconds: float | None = None) -> None:
        self._seconds = seconds or harness.manifest.time_limit_s
        self._around = Surroundings(harness, environment)
        self._stopped = Event()

    def run(self, told: dict[str, str], over: Over, then: Then = is_over) -> Finished:
        own = self._around.episode()
        env = {**self._around.env(), **told, **own}
        try:
            finished = self._run(env, own, over)
            while (further := then(finished)) is not None:
                remove(own["EVALKIT_ENDING_FILE"])
                before = finished.output
                finished = self._run({**env, **further.variables}, own, over)
                finished = msgspec.structs.replace(finished, output=before + finished.output)
            return finished
        finally:
            self._around.done(own)

    def _run(self, env: dict[str, str], own: dict[str, str], over: Over) -> Finished:
        try:
            group = Group(self._around.command(), env, own["EVALKIT_WORKDIR"], self._around.folder)
        except OSError as error:
            return Finished(problem=f"cannot be started: {error.strerror}")
        deadline = Deadline(self._seconds, over, self._stopped)
        passed = None
        left = 0
        try:
            while passed is None and group.running:
                passed = deadline.passed(group.output.total)
                time.sleep(_TICK)
        finally:
            left = group.kill()
        output = group.output.text()
        if passed is None and group.over:
            passed = Finished(problem=group.over)
        if passed is None and group.output.total > FLOOD:
            passed = Finished(problem=f"printed more than {FLOOD >> 20} MB")
        if passed is not None:
            return died(passed, group, group.exit, output, left)
        told = read_ending(Path(own["EVALKIT_ENDING_FILE"]))
        return Finished(told, exit=group.exit, output=output, left=left, leg=group.process.pid)

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._around.close()


def died(finished: Finished, group: Group, code: str, output: str, left: int) -> Finished:
    """How a program came to its end that evalkit ended; one that is still there was not killed."""
    killed = finished.killed and not group.running
    return msgspec.structs.replace(
        finished, exit=code, output=output, left=left, killed=killed, leg=group.process.pid
    )


def read_ending(file: Path) -> Any:
    """The content of an ending file; None where there is none, a text where it is no JSON or no file."""
    try:
        raw = read_plain(file, _LARGEST_ENDING + 1)
    except NoPlainFile as error:
        return f"{error}, not a file"
    return None if raw is None else parse_ending(raw)


def parse_ending(raw: bytes) -> Any:
    """An ending from its bytes; a text, which is no ending, where it is no JSON object."""
    if len(raw) > _LARGEST_ENDING:
        return "more than 1 MB"
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw[:200].decode(errors="replace") or "an empty ending"
