"""Verdicts on "done?", the actions of a loop, and how a run ends. All of it data."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from evalkit.core.turns import Call

EndingKind: TypeAlias = Literal["done", "partial", "escalated", "limit", "error", "never", "void"]
ENDINGS: tuple[str, ...] = ("done", "partial", "escalated", "limit", "error", "never", "void")
TRUTHS: tuple[str, ...] = ("complete", "reachable", "spoiled", "stuck")


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a condition is met, why, and which items stand against it.

    ``gaps`` is a bit set of items. ``names`` says that the condition spoke of items at all, so that no gap
    means "nothing is open" and not "cannot tell".
    """

    met: bool
    reason: str
    gaps: int = 0
    names: bool = False


class Report(msgspec.Struct, frozen=True):
    """What a harness says at its end; the same shape for every ending.

    ``outstanding`` is None where the run can name no items (no report); ``skipped`` are recorded skips.
    """

    outstanding: tuple[str, ...] | None = None
    skipped: tuple[str, ...] = ()
    reason: str = ""


class Ending(msgspec.Struct, frozen=True):
    """How a harness says that its run ended; ``native`` is its own signal."""

    kind: EndingKind
    native: str = ""
    report: Report = Report()


class RunTools(msgspec.Struct, frozen=True, gc=False):
    """Run these calls of the current turn; others of the turn are answered with an error.

    ``keys`` are the harness's own idempotency keys, one for each call, empty for a tool that takes none; no
    keys at all leave the model's.
    """

    calls: tuple[Call, ...]
    keys: tuple[str, ...] = ()


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send the turn back with its results, and ``text`` as a user message where there is one.

    Calls of the turn that were not run are answered with an error.
    """

    text: str | None = None


class Resend(msgspec.Struct, frozen=True, gc=False):
    """Send a paused turn back unchanged, with nothing after it."""


class Reissue(msgspec.Struct, frozen=True, gc=False):
    """Ask again: unchanged (``retry``, ``poll``), with a larger limit, of another model, with less history.

    ``shorten`` is what follows a full window: the conversation is compacted, what filled it left out.
    """

    why: Literal["retry", "poll", "limit", "model", "shorten"]


class Reject(msgspec.Struct, frozen=True, gc=False):
    """Send the turn back with its results, its finish call answered with ``text`` as an error."""

    text: str


class End(msgspec.Struct, frozen=True):
    """The run is over."""

    ending: Ending


Action: TypeAlias = RunTools | Send | Resend | Reissue | Reject | End
