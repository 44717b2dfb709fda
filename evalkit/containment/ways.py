"""The ways in which a program can be held, and what a machine gives for it."""

from __future__ import annotations

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

    ``network`` and ``files``: whether a program can be left without any, and without all files but those that
    are named. ``tasks``: whether a control group counts its processes; without it the guard does.
    """

    way: Way
    network: bool = False
    files: bool = False
    tasks: bool = False
    why: str = ""
