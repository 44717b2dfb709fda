"""Calls that a system may refuse, limits, and groups of tasks. Beside the guard, like it without packages."""

from __future__ import annotations

import ctypes
import os
import resource
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")


def library() -> ctypes.CDLL:
    """The C library."""
    return ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call the C library. OSError where it refuses."""
    if getattr(library(), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def attempt(function: Callable[..., object], *arguments: object) -> bool:
    """Whether a call that a system may refuse was done."""
    try:
        function(*arguments)
    except (OSError, ValueError):
        return False
    return True


def limit(kind: int, value: int) -> None:
    """Set a limit of this process, as far as the hard one allows."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    # Some systems refuse one of them (macOS: memory).
    attempt(resource.setrlimit, kind, (value, value))


def write_file(file: str, text: str) -> None:
    """Write into a file that is there. OSError where that is refused."""
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def make_group(tasks: int) -> str | None:
    """A control group with at most so many tasks; None where this machine gives none."""
    if os.geteuid():
        return None
    for base in _CGROUPS:
        group = f"{base}/evalkit-{os.getpid()}"
        _sweep_groups(base)
        try:
            os.mkdir(group)
        except OSError:
            continue
        if attempt(write_file, f"{group}/pids.max", str(tasks)):
            return group
        drop_group(group)
    return None


def _sweep_groups(base: str) -> None:
    """Remove the empty groups of guards that were killed."""
    try:
        names = os.listdir(base)
    except OSError:
        return
    for name in names:
        number = name.removeprefix("evalkit-")
        if number != name and number.isdigit() and not os.path.exists(f"/proc/{number}"):
            attempt(os.rmdir, f"{base}/{name}")


def drop_group(group: str) -> None:
    """Remove a control group once its processes have left it."""
    for _ in range(100):
        try:
            os.rmdir(group)
            return
        except OSError:
            # Its processes are dead and not yet out of it.
            time.sleep(0.002)
