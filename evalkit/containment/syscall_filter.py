"""Whatever a program calls, its guards are not signalled, traced or slowed down: a filter of system calls.

Beside the guard, and like it without packages. Needs no rights (seccomp(2)); what it is laid on, and all that
comes of that, cannot take it off again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
#: F_SETSIG: the signal that comes with a file's news, to whomever F_SETOWN names. Without it that is SIGIO.
_F_SETSIG = 10
_PRIO_USER = 2
#: Machine: its name for auditing, and the numbers of the calls below, from its table of system calls.
_MACHINES = {
    "x86_64": (0xC000003E, (62, 129, 200, 234, 297, 302, 424, 72, 101, 311, 141, 142, 144, 203, 314)),
    "aarch64": (0xC00000B7, (129, 138, 130, 131, 240, 261, 424, 25, 117, 271, 140, 118, 119, 122, 274)),
}
#: Call: the argument that is looked at, whether a group and everybody may be meant by it, and what else is
#: refused there. No argument: it is always refused.
_CALLS: tuple[tuple[str, int | None, bool, tuple[int, ...]], ...] = (
    ("kill", 0, True, ()),
    ("rt_sigqueueinfo", 0, False, ()),
    ("tkill", 0, False, ()),
    ("tgkill", 1, False, ()),
    ("rt_tgsigqueueinfo", 1, False, ()),
    ("prlimit64", 0, False, ()),
    ("pidfd_send_signal", None, False, ()),
    ("fcntl", 1, False, (_F_SETSIG,)),
    ("ptrace", 1, False, ()),
    ("process_vm_writev", 0, False, ()),
    ("setpriority", 1, False, ()),
    ("sched_setparam", 0, False, ()),
    ("sched_setscheduler", 0, False, ()),
    ("sched_setaffinity", 0, False, ()),
    ("sched_setattr", 0, False, ()),
)


def refuse_signals(guards: Sequence[int]) -> None:
    """Lay the filter on this process. OSError where the system has none, or the machine is not known here."""
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    filter_ = _filter(*_MACHINES[machine], guards)
    held = ctypes.create_string_buffer(filter_, len(filter_))
    program = struct.pack("@HP", len(filter_) // 8, ctypes.addressof(held))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_SECCOMP, _MODE_FILTER, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _filter(audited: int, numbers: Sequence[int], guards: Sequence[int]) -> bytes:
    """The instructions: struct sock_filter of linux/filter.h, over struct seccomp_data of linux/seccomp.h."""
    refused = _said(_RETURN, _ERRNO | errno.EPERM)
    unknown = _said(_RETURN, _ERRNO | errno.ENOSYS)
    allowed = _said(_RETURN, _ALLOW)
    # Another machine's calls have other numbers: a program that was built for it does not run.
    parts = [_said(_LOAD, 4), _said(_EQUAL, audited, 1, 0), unknown, _said(_LOAD, 0)]
    if audited == _MACHINES["x86_64"][0]:
        parts += [_said(_AT_LEAST, _X32, 0, 1), unknown]
    for number, (name, argument, groups, others) in zip(numbers, _CALLS, strict=True):
        values = [*others] if others else [*guards]
        if groups:
            values += [-1, *(-guard for guard in guards)]
        block = [unknown]
        if argument is not None:
            # Numbers of processes have 32 bits, whatever stands above them.
            tests = [
                _said(_EQUAL, value & 0xFFFFFFFF, len(values) - place, 0)
                for place, value in enumerate(values)
            ]
            block = [_said(_LOAD, 16 + 8 * argument), *tests, allowed, refused]
        if name == "setpriority":
            block = [_said(_LOAD, 16), _said(_EQUAL, _PRIO_USER, len(block) - 1, 0), *block]
        parts += [_said(_EQUAL, number, 0, len(block)), *block]
    return b"".join([*parts, allowed])


def _said(code: int, value: int, matches: int = 0, differs: int = 0) -> bytes:
    return struct.pack("=HBBI", code, matches, differs, value)
