"""The namespaces in which a command lives. Beside the guard, and like it without packages."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from evalkit.containment import system_calls
else:
    import system_calls

_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID_NODEV, _MS_NOSUID_NODEV_NOEXEC, _MS_REC_PRIVATE = 2 | 4, 2 | 4 | 8, 0x4000 | (1 << 18)
_MS_BIND_REC, _MS_REMOUNT_BIND_RDONLY = 0x1000 | 0x4000, 0x20 | 0x1000 | 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def leave(*, network: bool) -> None:
    """Make the namespaces in which the next process begins."""
    flags = _CLONE_NEWPID | _CLONE_NEWNS | _CLONE_NEWIPC
    if not network:
        flags |= _CLONE_NEWNET
    uid, gid = os.geteuid(), os.getegid()
    if uid:
        flags |= _CLONE_NEWUSER
    system_calls.call("unshare", flags)
    if uid:
        system_calls.write_file("/proc/self/setgroups", "deny")
        system_calls.write_file("/proc/self/uid_map", f"{uid} {uid} 1")
        system_calls.write_file("/proc/self/gid_map", f"{gid} {gid} 1")


def settle(alone: bool, seen: tuple[str, ...], own: tuple[str, ...]) -> None:
    """In the namespace: its own processes, and what else it is to have."""
    system_calls.call("mount", b"none", b"/", None, _MS_REC_PRIVATE, None)
    system_calls.call("mount", b"proc", b"/proc", b"proc", _MS_NOSUID_NODEV_NOEXEC, None)
    if alone:
        _loopback_up()
    if own:
        _narrow(seen, own)


def _narrow(seen: tuple[str, ...], own: tuple[str, ...]) -> None:
    """Leave of the file system what is named: ``seen`` to read, ``own`` to read and write."""
    here = os.getcwd()
    # A folder that is there on every machine; nothing that is named lies in it.
    root = "/proc"
    system_calls.call("mount", b"none", root.encode(), b"tmpfs", _MS_NOSUID_NODEV, b"size=64m,mode=755")
    for place in (*seen, *own):
        target = root + place
        if os.path.islink(place) and place not in own:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            system_calls.attempt(os.symlink, os.readlink(place), target)
            continue
        if os.path.isdir(place):
            os.makedirs(target, exist_ok=True)
        elif os.path.exists(place):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        else:
            continue
        system_calls.call("mount", place.encode(), target.encode(), None, _MS_BIND_REC, None)
        if place not in own and place != "/dev":
            # A user namespace may not loosen what is locked; there rights to files hold.
            system_calls.library().mount(None, target.encode(), None, _MS_REMOUNT_BIND_RDONLY, None)
    os.makedirs(f"{root}/proc", exist_ok=True)
    system_calls.call("mount", b"proc", f"{root}/proc".encode(), b"proc", _MS_NOSUID_NODEV_NOEXEC, None)
    if os.path.isdir(f"{root}/dev/shm"):
        system_calls.call(
            "mount", b"none", f"{root}/dev/shm".encode(), b"tmpfs", _MS_NOSUID_NODEV, b"size=64m,mode=1777"
        )
    os.makedirs(f"{root}/tmp", exist_ok=True)
    system_calls.attempt(os.chmod, f"{root}/tmp", 0o1777)
    os.chroot(root)
    os.chdir(here)


def _loopback_up() -> None:
    import _socket
    import fcntl

    any_ = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    asked = struct.pack("16sh14x", b"lo", 0)
    (flags,) = struct.unpack("16xh14x", fcntl.ioctl(any_.fileno(), _SIOCGIFFLAGS, asked))
    fcntl.ioctl(any_.fileno(), _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    any_.close()
