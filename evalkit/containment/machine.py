"""What this machine gives to hold what evalkit starts."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL
from typing import Literal

import msgspec

#: ``namespace``: a PID namespace; ``subreaper``: what loses its parent is found by its guard; ``group``: what
#: stays in its process group.
Way = Literal["namespace", "subreaper", "group"]
#: Names the way to take where the machine's best one is not wanted.
WAY = "EVALKIT_CONTAINMENT"
WAYS: tuple[Way, ...] = ("namespace", "subreaper", "group")


class Machine(msgspec.Struct, frozen=True):
    """How programs are held here. ``why`` says what stands in the way of a namespace.

    ``network``: whether a program can be left without any. ``tasks``: whether a control group counts its
    processes; without it the guard does.
    """

    way: Way
    network: bool
    tasks: bool
    why: str = ""


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """What was found by trying it, once in a process."""
    wanted = os.environ.get(WAY, "")
    if sys.platform != "linux":
        return Machine("group", False, False, f"{sys.platform} has no PID namespaces")
    tasks = os.geteuid() == 0 and any(
        os.access(base, os.W_OK) and (base.name == "pids" or _counts_tasks(base)) for base in _CGROUPS
    )
    if wanted in WAYS and wanted != "namespace":
        return Machine(wanted, False, tasks, f"{WAY}={wanted}")
    why = _tried(network=False)
    if why is None:
        return Machine("namespace", True, tasks)
    without = _tried(network=True)
    if without is None:
        return Machine("namespace", False, tasks, why)
    return Machine("subreaper", False, tasks, without)


_CGROUPS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))


def _counts_tasks(base: Path) -> bool:
    try:
        return "pids" in (base / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _tried(*, network: bool) -> str | None:
    """Why a program cannot be started in a namespace; None where it can."""
    from evalkit.containment.guarded import Guarded

    try:
        guarded = Guarded(
            ["true"],
            {"PATH": os.defpath},
            "/",
            way="namespace",
            network=network,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
    except OSError as error:
        return str(error)
    try:
        return None if guarded.wait(10.0) and guarded.code == 0 else "a program started in one does not end"
    finally:
        guarded.kill()
