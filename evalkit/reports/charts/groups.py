"""The groups of outcomes, which colour and hatch tell apart on every chart and page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.reports.charts.style import (
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
)

if TYPE_CHECKING:
    pass


#: Outcomes are grouped: what a reader has to know first. Colour and hatch both tell them apart.
GROUPS: dict[str, tuple[str, str]] = {
    "done, complete": (GREEN, ""),
    "not done, could not be": (SKY, ""),
    "complete, not closed": (YELLOW, "///"),
    "stopped early, said so": (ORANGE, ""),
    "called done, was not": (RED, "xxx"),
    "never ended": (PINK, "..."),
    "spoiled": ("#333333", "\\\\\\"),
}


def group_of(outcome: str) -> str:
    """The group that an outcome is in."""
    ending, truth = outcome.split("/")
    if ending == "never":
        return "never ended"
    if ending == "done":
        return "done, complete" if truth == "complete" else "called done, was not"
    if truth == "complete":
        return "complete, not closed"
    if truth == "spoiled":
        return "spoiled"
    return "not done, could not be" if truth == "stuck" else "stopped early, said so"
