"""What a harness says at its end, and what it means: its own word, a rule of its manifest, its exit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import msgspec

from evalkit.core.decisions import Ending, Report
from evalkit.harnesses.manifest import Rule

#: The endings that a harness can declare; the others are evalkit's.
DECLARED = ("done", "partial", "escalated", "limit", "error")
_SHOWN = 200
#: How Node ends what it says of an error that nobody caught, a frame of its stack, and how the error begins.
_NODE = re.compile(r"Node\.js v\d")
_FRAME = re.compile(r"\s+at ")
_ERROR = re.compile(r"\S*(Error|Exception)\b")


class Finished(msgspec.Struct, frozen=True):
    """How a harness came to its end.

    ``told`` is the ending it wrote, ``problem`` what evalkit had to end it for, ``exit`` how its process
    ended (``exit:0``, ``signal:SIGKILL``), ``left`` how many of its processes were still running then.
    ``killed``: it was running, the script killed it, and it is gone. ``leg`` is the process that it was,
    ``waits``: it is still there and waits for a further line.
    """

    told: Any = None
    problem: str = ""
    never: bool = False
    exit: str = "exit:0"
    output: str = ""
    left: int = 0
    killed: bool = False
    leg: int = 0
    waits: bool = False


class Further(msgspec.Struct, frozen=True):
    """How an episode goes on behind an ending or a crash.

    ``message`` is the user's next message, ``decisions`` are those about calls that waited. ``restart``: the
    program is started again in the same folder and told that it resumes, ``after_s`` seconds from now and by
    ``resumers`` processes at once; else a resident process gets a further line.
    """

    message: str | None = None
    restart: bool = False
    after_s: float = 0.0
    resumers: int = 1
    decisions: list[dict[str, Any]] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """For a program that is started again."""
        told = {"EVALKIT_RESUME": "1"}
        if self.message is not None:
            told["EVALKIT_MESSAGE"] = self.message
        if self.decisions is not None:
            told["EVALKIT_DECISIONS"] = json.dumps(self.decisions)
        return told

    @property
    def line(self) -> dict[str, Any]:
        """For a resident program."""
        if self.decisions is None:
            return {"message": self.message or ""}
        return {"decisions": self.decisions, "message": self.message}


#: Told of each ending of a program; how the episode goes on, or None where it is over.
Then: TypeAlias = Callable[[Finished], "Further | None"]


def is_over(finished: Finished) -> None:
    """The rule of an episode to which nothing happens: its first ending is its last."""


def telling_line(output: str) -> str:
    """The line of a failed program's output that says why: the last, but Node's last word is its version."""
    lines = [line for line in output.split("\n") if line.strip()]
    if lines and _NODE.match(lines[-1]):
        frame = next((number for number, line in enumerate(lines) if _FRAME.match(line)), len(lines) - 1)
        lines = [line for line in lines if _ERROR.match(line)] or lines[:frame] or lines
    return " ".join(lines[-1].split()) if lines else ""


def ending_of(finished: Finished, rules: tuple[Rule, ...]) -> tuple[Ending, str]:
    """The ending, and a note where it needs one.

    In this order: evalkit ended it; it waits for a person who does not come; the ending it declared; its
    native signal by the first rule that fits; the error it told; its exit (a rule may name that too).
    """
    if finished.never:
        return Ending("never", finished.problem), ""
    if finished.problem:
        return Ending("error", finished.problem), ""
    if finished.told is None:
        return _by_exit(finished.exit, rules)
    told = finished.told
    if isinstance(told, dict) and told.get("ending") is None and isinstance(told.get("waiting"), list):
        return Ending("escalated", "waiting"), ""
    problem = _invalid(told)
    if problem:
        return Ending("error", "invalid ending"), f"invalid ending: {problem}"
    native = " ".join(str(told.get("native") or "").split())[:_SHOWN]
    report = _report(told.get("report"))
    kind = told.get("ending")
    if kind is not None:
        return Ending(kind, native, report), ""
    failed = bool(told.get("error"))
    if native:
        rule = _fitting(native, rules, failed=failed)
        if rule is not None:
            return Ending(rule.ending, native, report), ""
    if failed:
        note = " ".join(str(told["error"]).split())[:_SHOWN]
        return Ending("error", native or "error", report), note
    if native:
        return Ending("error", native, report), f"no rule of the manifest says what {native!r} means"
    return _by_exit(finished.exit, rules, report)


def _by_exit(code: str, rules: tuple[Rule, ...], report: Report | None = None) -> tuple[Ending, str]:
    rule = _fitting(code, rules, failed=True)
    if rule is not None:
        return Ending(rule.ending, code, report or Report()), ""
    return Ending("done" if code == "exit:0" else "error", code, report or Report()), ""


def _fitting(native: str, rules: tuple[Rule, ...], *, failed: bool = False) -> Rule | None:
    """The first rule that fits. ``*`` fits any ending that the harness returned, and no exception."""
    for rule in rules:
        if fnmatchcase(native, rule.native) and not (failed and rule.native == "*"):
            return rule
    return None


def _invalid(told: Any) -> str:
    if not isinstance(told, dict):
        return f"is no object: {str(told)[:_SHOWN]!r}"
    kind = told.get("ending")
    if kind is not None and kind not in DECLARED:
        return f"ending {str(kind)[:_SHOWN]!r}; allowed: {', '.join(DECLARED)}"
    report = told.get("report")
    if report is not None and not isinstance(report, dict):
        return "report is no object"
    for name in ("outstanding", "skipped"):
        value = (report or {}).get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            return f"report.{name} is no list of item ids"
    if kind is None and not told.get("native") and not told.get("error"):
        return "has neither ending nor native"
    return ""


def _report(told: dict[str, Any] | None) -> Report:
    if not told:
        return Report()
    outstanding = told.get("outstanding")
    return Report(
        None if outstanding is None else tuple(outstanding),
        tuple(told.get("skipped") or ()),
        str(told.get("reason") or ""),
    )
