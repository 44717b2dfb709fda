"""Programs that set out to be rid of their guards, under a subreaper: none of what they start is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalkit.containment import guarded
from evalkit.containment.guarded import Guarded
from evalkit.containment.machine import seals
from evalkit.containment.ways import Machine
from tests.processes import gone, living
from tests.runs.test_interrupted import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")

#: Starts what has its own session and no environment; its guards are the processes up to evalkit's own.
ESCAPES = """
import ctypes, os, signal, subprocess, sys, time
word, evalkit = sys.argv[1], int(sys.argv[2])
subprocess.Popen(["env", "-i", "setsid", "sh", "-c", "sleep 62; echo late", word])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvpe("sh", ["sh", "-c", "sleep 62; echo late", word], {})
    os._exit(0)
time.sleep(0.2)
guards, at = [], os.getppid()
while at not in (0, 1, evalkit):
    guards.append(at)
    at = int(open(f"/proc/{at}/stat").read().rpartition(")")[2].split()[1])
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, *arguments):
    ctypes.set_errno(0)
    return os.strerror(ctypes.get_errno()) if getattr(libc, name)(*arguments) == -1 else "done"
"""
#: The numbers of calls that the C library has no function for, by machine.
CALLS = {"x86_64": (200, 234, 129, 424, 302), "aarch64": (130, 131, 138, 424, 261)}

#: As on a machine without namespaces.
SUBREAPER = Machine("subreaper", network=True, files=True)


def started(place: Path, text: str, word: str, **options: object) -> Guarded:
    (place / "escapes.py").write_text(ESCAPES + text)
    command = [sys.executable, str(place / "escapes.py"), word, str(os.getpid())]
    sink = (place / "said").open("wb")
    environment = {"PATH": os.environ["PATH"], "MARK": word}
    return Guarded(
        command,
        environment,
        place,
        mark=f"MARK={word}",
        machine=SUBREAPER,
        stdout=sink,
        stderr=sink,
        **options,
    )  # type: ignore[arg-type]


def unsealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system without filters of calls."""
    without = "guard.syscall_filter.refuse_signals = lambda guards: None; sys.exit"
    monkeypatch.setattr(guarded, "_GUARD", guarded._GUARD.replace("sys.exit", without))


@pytest.mark.parametrize("which", ["0", "-1"], ids=["inner", "outer"])
def test_one_guard_takes_the_place_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    unsealed(monkeypatch)
    word = f"escapes-{os.getpid()}-{which}"
    one = started(tmp_path, f"os.kill(guards[{which}], signal.SIGKILL)\ntime.sleep(62)", word)
    assert one.wait(20), (tmp_path / "said").read_text()
    assert gone(word, 2.0)
    assert one.code is not None
    assert one.code < 0


def test_a_guard_that_is_killed_from_outside(tmp_path: Path) -> None:
    """By the system, for instance, where memory is short."""
    for number in range(2):
        word = f"bereaved-{os.getpid()}-{number}"
        one = started(tmp_path, "open('there', 'w'); time.sleep(62)", word)
        until((tmp_path / "there").exists)
        outer = one.guard.pid
        inner = int(Path(f"/proc/{outer}/task/{outer}/children").read_text())
        os.kill((outer, inner)[number], signal.SIGKILL)
        one.wait(10)
        assert gone(word, 2.0)
        assert one.code == -signal.SIGKILL
        (tmp_path / "there").unlink()


def test_no_call_reaches_a_guard(tmp_path: Path) -> None:
    assert seals(), "this machine lets its guards be signalled"
    tkill, tgkill, queue, by_handle, limit = CALLS[os.uname().machine]
    text = f"""
for guard in guards:
    for signal_ in (0, signal.SIGSTOP, signal.SIGKILL):
        print(tried("kill", guard, signal_), tried("kill", -guard, signal_))
        print(tried("syscall", {tkill}, guard, signal_), tried("syscall", {tgkill}, guard, guard, signal_))
        info = (ctypes.c_int * 32)(signal_, 0, -1)
        print(tried("syscall", {queue}, guard, signal_, info))
        print(tried("syscall", {by_handle}, os.pidfd_open(guard), signal_, None, 0))
    print(tried("syscall", {limit}, guard, 0, (ctypes.c_ulonglong * 2)(0, 0), None))
    print(tried("setpriority", 0, guard, 19), tried("ptrace", 16, guard, 0, 0))
    print(tried("ptrace", 0x4206, guard, 0, 0))
print(tried("kill", -1, 0), tried("setpriority", 2, 0, 19))
import fcntl
heard, told = os.pipe()
print(tried("fcntl", heard, 10, signal.SIGKILL))
fcntl.fcntl(heard, fcntl.F_SETOWN, guards[0])
fcntl.fcntl(heard, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(told, b"x")
own = os.fork()
if own == 0: time.sleep(62)
os.kill(own, signal.SIGKILL)
time.sleep(0.2)
print("ended as", os.waitpid(own, 0)[1], "guards", [os.path.exists(f"/proc/{{guard}}") for guard in guards])
"""
    word = f"signals-{os.getpid()}"
    one = started(tmp_path, text, word)
    assert one.wait(20)
    said = (tmp_path / "said").read_text()
    assert one.code == 0, said
    *refused, last = said.splitlines()
    assert last == "ended as 9 guards [True, True]"
    assert {" ".join(words) for line in refused for words in [line.split()]} <= {
        "Operation not permitted",
        "Operation not permitted Operation not permitted",
        "Function not implemented",
    }
    assert len(refused) == 2 * (3 * 4 + 3) + 2
    assert living(word) == []


def test_what_stops_both_of_them_first_is_ended_all_the_same(tmp_path: Path) -> None:
    text = """
for number in (signal.SIGSTOP, signal.SIGKILL):
    for guard in guards:
        try: os.kill(guard, number)
        except PermissionError: pass
"""
    word = f"both-{os.getpid()}"
    one = started(tmp_path, text, word)
    assert one.wait(20)
    assert living(word) == []


def test_guards_take_no_longer_to_end_than_to_be_told(tmp_path: Path) -> None:
    word = f"told-{os.getpid()}"
    one = started(tmp_path, "open('there', 'w'); time.sleep(62)", word)
    until((tmp_path / "there").exists)
    begun = time.monotonic()
    assert one.kill() >= 2
    assert time.monotonic() - begun < 2
    assert living(word) == []


def test_where_processes_are_not_shown_its_children_are_found(tmp_path: Path) -> None:
    """Without /proc: those of another session too."""
    if os.geteuid():
        pytest.skip("only root may hide /proc")
    word = f"hidden-{os.getpid()}"
    text = f"""
import os, subprocess, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from evalkit.containment.guarded import Guarded
from evalkit.containment.ways import Machine
assert os.listdir("/proc") == []
one = Guarded(
    ["sh", "-c", "env -i setsid sh -c 'sleep 62; :' {word} & sleep 0.3; echo on; exit 3"], dict(os.environ),
    {str(tmp_path)!r}, machine=Machine("subreaper"), stdout=1, stderr=2,
)
assert one.wait(20)
print(one.code)
"""
    hidden = 'mount -t tmpfs none /proc && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", hidden, "sh", sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "on\n3\n", done.stderr
    assert gone(word, 0.5)
