"""How well claims are read: a reader's answers against turns that a person labelled."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import get_args

import msgspec

from evalkit.core.turns import Claim, Turn
from evalkit.stats.intervals import wilson
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.turn_claims import ClaimReader


class ReaderError(ValueError):
    """A reader of claims, or a sample for it, that cannot be used; one line."""


class Labelled(msgspec.Struct, frozen=True):
    """One turn that a person read: whether it claims that the task is done. ``part`` splits the sample."""

    recording: str
    turn: int
    done: bool
    part: str = ""


class Measured(msgspec.Struct):
    """Counts of a reader against labels; ``wrong`` are the turns that it read otherwise."""

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0
    wrong: list[Labelled] = msgspec.field(default_factory=list)
    missing: list[Labelled] = msgspec.field(default_factory=list)

    @property
    def precision(self) -> float | None:
        """Of the turns read as a claim, those that are one."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        """Of the turns that are a claim, those read as one."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    def __str__(self) -> str:
        """Both rates with their counts and 95 % intervals (Wilson)."""
        return (
            f"precision {_said(self.tp, self.tp + self.fp)}, recall {_said(self.tp, self.tp + self.fn)}, "
            f"{self.tp + self.fp + self.fn + self.tn} turns"
        )


def _said(count: int, base: int) -> str:
    interval = wilson(count, base)
    if interval is None:
        return "n/a"
    return f"{count / base:.3f} ({count} of {base}, {interval[0]:.2f} to {interval[1]:.2f})"


def read_sample(path: Path) -> list[Labelled]:
    """A labelled sample: CSV with ``recording``, ``turn`` and ``claim`` (``done`` or anything else).

    ``recording`` is the end of a recording's id, from a folder's name on; ``part`` is optional.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for name in ("recording", "turn", "claim"):
                if name not in (reader.fieldnames or ()):
                    raise ReaderError(f"{path}:1: no column {name!r}; columns: recording, turn, claim, part")
            return [_labelled(path, reader.line_num, row) for row in reader]
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ReaderError(f"{path}: is not CSV: {error}") from None


def _labelled(path: Path, line: int, row: dict[str, str]) -> Labelled:
    if not (row["turn"] or "").isdigit():
        raise ReaderError(f"{path}:{line}: turn: {row['turn']!r} is not a number from 1")
    return Labelled(row["recording"], int(row["turn"]), row["claim"] == "done", row.get("part") or "")


def measure(
    sample: Iterable[Labelled], recordings: Iterable[Recording], reader: ClaimReader
) -> dict[str, Measured]:
    """Hold a reader against a sample, by its parts; turns that no recording has are ``missing``."""
    wanted: dict[str, list[Labelled]] = {}
    parts: dict[str, Measured] = {}
    for labelled in sample:
        wanted.setdefault(labelled.recording, []).append(labelled)
        parts.setdefault(labelled.part, Measured())
    found: set[str] = set()
    for recording in recordings:
        name = next((name for name in _endings(recording.id) if name in wanted and name not in found), None)
        if name is None:
            continue
        found.add(name)
        for labelled in wanted[name]:
            if not 0 < labelled.turn <= len(recording.steps):
                parts[labelled.part].missing.append(labelled)
                continue
            _count(parts[labelled.part], labelled, reader(recording.steps[labelled.turn - 1].turn) == "done")
    for name, rows in wanted.items():
        for labelled in rows if name not in found else ():
            parts[labelled.part].missing.append(labelled)
    return parts


def _endings(name: str) -> Iterable[str]:
    """An id, and it without its first folder, its first two, …"""
    path, mark, inner = name.partition("#")
    parts = path.split("/")
    for place in range(len(parts)):
        yield "/".join(parts[place:]) + mark + inner


def _count(measured: Measured, labelled: Labelled, read: bool) -> None:
    measured.tp += read and labelled.done
    measured.fp += read and not labelled.done
    measured.fn += labelled.done and not read
    measured.tn += not read and not labelled.done
    if read != labelled.done:
        measured.wrong.append(labelled)


def find_reader(name: str) -> ClaimReader:
    """A reader of your own, ``module:name``: a function of a turn that gives its claim (by a live model)."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ReaderError(f"reader {name!r}: expected module:name")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), attribute)
    except ImportError as error:
        raise ReaderError(f"reader {name!r}: cannot be imported: {error}") from None
    except AttributeError:
        raise ReaderError(f"reader {name!r}: {module!r} has no {attribute!r}") from None

    def read(turn: Turn) -> Claim:
        try:
            claim = found(turn)
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise ReaderError(f"reader {name!r} failed: {said}") from error
        if claim not in get_args(Claim):
            raise ReaderError(
                f"reader {name!r} gave {claim!r}; a claim is one of {', '.join(get_args(Claim))}"
            )
        return claim  # type: ignore[no-any-return]

    return read
