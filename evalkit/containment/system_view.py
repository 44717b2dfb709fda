"""What the system shows of processes and folders. Beside the guard, and like it without packages."""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def numbers() -> list[int]:
    """The processes that are there; none where the system does not show them."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def stat_of(process: int) -> list[bytes]:
    """State, parent, group, session and so on, as proc(5) has them; empty where it is gone."""
    try:
        with open(f"/proc/{process}/stat", "rb", buffering=0) as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def is_dead(stat: list[bytes]) -> bool:
    """Whether a process is gone, or nothing but its number is left."""
    return stat[:1] in ([], [b"Z"], [b"X"])


def descendants(root: int) -> Iterator[int]:
    """The living processes below one."""
    children: dict[int, list[int]] = {}
    dead = set()
    for process in numbers():
        stat = stat_of(process)
        if stat:
            children.setdefault(int(stat[1]), []).append(process)
            if is_dead(stat):
                dead.add(process)
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            waiting.append(child)
            if child not in dead:
                yield child


def memory_of(process: int) -> int:
    """Bytes that are a process's own."""
    try:
        with open(f"/proc/{process}/statm", "rb", buffering=0) as file:
            _, resident, shared, *_ = file.read().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def size_of(folders: tuple[str, ...], most: int, files: int) -> tuple[int, int]:
    """Bytes and entries below folders; counting ends beyond the limits."""
    size = count = 0
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    try:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    except OSError:
                        continue
                    if (most and size > most) or (files and count > files):
                        return size, count
        except OSError:
            continue
    return size, count
