"""What this machine gives to hold what evalkit starts."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL

from evalkit.containment.folders import temporary_folder
from evalkit.containment.guarded import Guarded, Roots
from evalkit.containment.ways import WAY, WAYS, Machine, Way

#: Where programs and their libraries are, and the little of the system's settings that they read.
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/dev"),
    *(f"/etc/{name}" for name in ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")),
    *(f"/etc/{name}" for name in ("passwd", "group", "nsswitch.conf", "hosts", "ssl", "ca-certificates")),
    *(f"/etc/{name}" for name in ("protocols", "services", "mime.types", "os-release", "terminfo")),
)
_CGROUPS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """What was found by trying it, once in a process."""
    if sys.platform != "linux":
        return Machine("group", why=f"{sys.platform} has no PID namespaces")
    tasks = os.geteuid() == 0 and any(
        os.access(base, os.W_OK) and (base.name == "pids" or _counts_tasks(base)) for base in _CGROUPS
    )
    for way in WAYS[1:]:
        if os.environ.get(WAY) == way:
            return Machine(way, tasks=tasks, why=f"{WAY}={way}")
    why = ""
    for network, files in ((True, True), (True, False), (False, False)):
        why = _tried(network=network, files=files)
        if not why:
            return Machine("namespace", network, files, tasks)
    return Machine("subreaper", tasks=tasks, why=why)


@lru_cache(maxsize=1)
def seals() -> bool:
    """Whether a program under a subreaper is kept from signalling its guards; found by trying it."""
    return _ended_with(["/bin/sh", "-c", "kill -0 $PPID"], "subreaper") not in (0, None)


def _counts_tasks(base: Path) -> bool:
    try:
        return "pids" in (base / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _tried(*, network: bool, files: bool) -> str:
    """Why a program cannot be started in a namespace, without network and files; empty where it can."""
    try:
        code = _ended_with(["true"], "namespace", network=not network, files=files)
    except OSError as error:
        return str(error)
    return "" if code == 0 else "a program started in one does not end"


def _ended_with(command: list[str], way: Way, *, network: bool = True, files: bool = False) -> int | None:
    """How a program ends that is held in a way, or None; OSError where it cannot be started."""
    with temporary_folder("try") as folder:
        own = str(folder.folder)
        guarded = Guarded(
            command,
            {"PATH": os.defpath},
            own,
            machine=Machine(way, network=True, files=True),
            network=network,
            roots=Roots(SYSTEM, (own,)) if files else None,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        guarded.wait(10.0)
        guarded.kill()
    return guarded.code
