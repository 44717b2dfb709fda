"""Whether a run was complete: what its source says of it, or a table that somebody made."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from evalkit.core.names import counted
from evalkit.transcripts.recording import NO_LABEL, Label, Recording

#: Fields by which recordings say how they went, in the order they are looked for.
FIELDS = (
    "complete",
    "resolved",
    "is_correct",
    "is_corrected",
    "success",
    "passed",
    "reward",
    "utility",
    "score",
    "final_label",
)
#: Fields that write 1 for right, -1 for wrong, 0 for undecided.
_SIGNED = ("final_label",)
#: What Inspect's scorers write: correct; incorrect, partly correct, no answer.
_GRADES = {"C": True, "I": False, "P": False, "N": False}
_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "complete", "pass", "passed", "resolved", "success"), True),
    **dict.fromkeys(("0", "false", "no", "incomplete", "fail", "failed", "unresolved", "failure"), False),
}


#: Labels without a recording that are named one by one: a table may be of more runs than are looked at.
_NAMED = 5


class LabelError(ValueError):
    """A table of labels that cannot be used; one line with file and line."""


def complete_of(value: Any) -> bool | None:
    """What a value says of a run: a number up to 1 is complete at 1 (full reward), a grade where it is ``C``.

    A number above 1 is on a scale that nobody told: it says nothing.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return None if value != value or value > 1 else value == 1
    if isinstance(value, str):
        return _GRADES.get(value, _WORDS.get(value.strip().lower()))
    return None


def label_of(
    record: Mapping[str, Any], fields: tuple[str, ...] = FIELDS, by: Literal["state", "words"] = "words"
) -> Label:
    """The label in the first of the fields that says anything; none where a later field says the opposite."""
    label = _first(record, fields, by)
    if label.complete is not None:
        for name in fields:
            if _opposite(label.complete, record.get(name), name):
                said = f"{label.source} and {name} {record[name]} disagree"
                return Label(None, said, by=by, disputed=True)
    return label


def _first(record: Mapping[str, Any], fields: tuple[str, ...], by: Literal["state", "words"]) -> Label:
    for name in fields:
        value = record.get(name)
        if name in _SIGNED and value not in (1, -1):
            continue
        complete = complete_of(value)
        if complete is not None:
            return Label(complete, f"{name} {value}", by=by)
        if isinstance(value, int | float) and value > 1:
            return Label(None, f"{name} {value}", by=by, score=float(value))
    return NO_LABEL


def _opposite(complete: bool, value: Any, name: str) -> bool:
    """Whether a value says the opposite. A part of a reward says nothing against either: what is enough is
    the source's to say.
    """
    if name in _SIGNED and value not in (1, -1):
        return False
    if isinstance(value, float) and 0 < value < 1:
        return False
    return complete_of(value) is (not complete)


class Labels:
    """A table of labels: CSV with columns ``recording`` and ``complete``; ``complete_at``, ``by`` if known.

    ``recording`` is a recording's id, the part of it after ``#``, its file, or the end of a path of these
    ("run1/log.json", "log.json"), where that is one recording only. ``complete_at`` is the model turn (from
    1; 0 is the start) after which it was complete.
    ``by`` is ``state`` where the label speaks of the world that the run left, and not of its words.
    """

    def __init__(self, rows: Mapping[str, Label] | None = None, complete_from: float | None = None) -> None:
        self.rows = dict(rows or {})
        self.complete_from = complete_from
        self.scores = 0
        self.disputed = 0
        self.used: dict[str, str] = {}
        self.ambiguous: set[str] = set()
        self.source = "labels"
        self._first = ""

    @classmethod
    def read(cls, path: Path, complete_from: float | None = None) -> Labels:
        """Read a table. LabelError says what is wrong in which line."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                fields = reader.fieldnames or []
                for name in ("recording", "complete"):
                    if name not in fields:
                        raise LabelError(
                            f"{path}:1: no column {name!r}; columns: recording, complete, complete_at, by"
                        )
                labels = cls(dict(_row(path, reader.line_num, row) for row in reader), complete_from)
                labels.source = path.as_posix()
                return labels
        except OSError as error:
            raise LabelError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise LabelError(f"{path}: is not UTF-8 text") from None
        except csv.Error as error:
            raise LabelError(f"{path}: is not CSV: {error}") from None

    def apply(self, recording: Recording) -> Recording:
        """The recording with its label from the table, where the table has one."""
        if not self.rows and recording.label.score is None and not recording.label.disputed:
            return recording
        self._first = self._first or recording.id
        names = (*_ends(recording.id), recording.id.partition("#")[2], *_ends(recording.file))
        for name in names if self.rows else ():
            if name and name in self.rows:
                if self.used.setdefault(name, recording.id) != recording.id:
                    self.ambiguous.add(name)
                return msgspec.structs.replace(recording, label=self.rows[name])
        label = recording.label
        self.disputed += label.disputed
        if label.score is None:
            return recording
        if self.complete_from is None:
            self.scores += 1
            return recording
        complete = label.score >= self.complete_from
        return msgspec.structs.replace(recording, label=msgspec.structs.replace(label, complete=complete))

    def notes(self) -> list[str]:
        """What was wrong with the table, now that all recordings are read."""
        unused = [name for name in self.rows if name not in self.used]
        notes = [f"label {name!r} matches no recording" for name in unused[:_NAMED]]
        if len(unused) > _NAMED:
            notes.append(f"and {len(unused) - _NAMED} more labels match no recording")
        if self.scores:
            notes.append(
                f"{_runs_have(self.scores)} a score above 1, which is no label: say from where on a run is "
                "complete with --complete-from"
            )
        if self.disputed:
            notes.append(
                f"{_runs_have(self.disputed)} labels that contradict each other, and so none: say which "
                "holds with --labels"
            )
        notes += [
            f"label {name!r} matches more than one recording, and was taken for each"
            for name in sorted(self.ambiguous)
        ]
        return notes

    def check(self) -> None:
        """Whether any label was of use, now that all recordings are read. LabelError where none was."""
        if self.rows and self._first and not self.used:
            raise LabelError(
                f"{self.source}: no label matches a recording ({counted(len(self.rows), 'label')}); "
                f"`evalkit transcripts list` shows what these are called: {self._first}"
            )


def _runs_have(count: int) -> str:
    return f"{counted(count, 'run')} {'has' if count == 1 else 'have'}"


def _ends(path: str) -> Iterator[str]:
    """A path, and what is left of it as folders are left out from the front."""
    while path:
        yield path
        path = path.partition("/")[2]


def _row(path: Path, line: int, row: Mapping[str, Any]) -> tuple[str, Label]:
    text = str(row.get("complete") or "")
    complete = _WORDS.get(text.strip().lower())
    if complete is None and text.strip():
        try:
            complete = complete_of(float(text))
        except ValueError:
            raise LabelError(f"{path}:{line}: complete: {text!r} is not one of 1, 0, true, false") from None
    when = str(row.get("complete_at") or "").strip()
    if when and not when.isdigit():
        raise LabelError(f"{path}:{line}: complete_at: {when!r} is not a turn number")
    if when and complete is not True:
        raise LabelError(f"{path}:{line}: complete_at: only a run that ended complete has one")
    by = str(row.get("by") or "").strip() or "words"
    if by not in ("state", "words"):
        raise LabelError(f"{path}:{line}: by: {by!r} is not one of state, words")
    return str(row["recording"]), Label(
        complete, "table", int(when) if when else None, "state" if by == "state" else "words"
    )
