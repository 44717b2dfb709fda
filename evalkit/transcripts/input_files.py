"""Which files of a folder are looked at: each once, and no reports of evalkit's own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from evalkit.core.names import counted

#: Endings that a recording may have; files of other kinds in a folder are counted and left alone.
ENDINGS = frozenset(
    (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".har", ".responses", ".trajectory", ".txt")
)
#: Endings of which only some files are recordings: known by how they begin.
_BY_HEAD = {
    ".yaml": (b"interactions:", b"http_interactions:", b"- request:"),
    ".yml": (b"interactions:", b"http_interactions:", b"- request:"),
    ".md": (b"# aider chat started at",),
}
#: Folders that hold no recordings of a user's.
_NEVER = frozenset(("node_modules", "__pycache__", "site-packages"))


class Looked:
    """The files below paths, in order of names however they are given; one that is named twice comes once."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = sorted(paths)
        self._seen: set[int] = set()
        #: The files that were named themselves, and not found in a folder.
        self.named: set[Path] = set()
        self.others: Counter[str] = Counter()
        self.reports = 0
        self.twice = 0
        self.files = 0

    def __iter__(self) -> Iterator[Path]:
        for path in self._paths:
            if not path.is_dir():
                self.named.add(path)
                yield from self._once(path)
                continue
            for folder, names, files in os.walk(path):
                here = Path(folder)
                if is_report(here):
                    self.reports += 1
                    names.clear()
                    continue
                names[:] = sorted(
                    name for name in names if name not in _NEVER and not name.startswith((".git", ".venv"))
                )
                for name in sorted(files):
                    file = here / name
                    if file.is_file():
                        if may_be_recording(file):
                            yield from self._once(file)
                        else:
                            self.others[file.suffix.lower()] += 1

    def _once(self, path: Path) -> Iterator[Path]:
        real = hash(os.path.realpath(path))
        if real in self._seen:
            self.twice += 1
            return
        self._seen.add(real)
        self.files += 1
        yield path

    def notes(self) -> list[str]:
        """What was passed over."""
        notes = []
        if self.twice:
            notes.append(f"{counted(self.twice, 'file')} named twice counted once")
        if self.reports:
            notes.append(f"{counted(self.reports, 'folder')} of evalkit's own reports left out")
        if self.others:
            kinds = ", ".join(f"{count} {ending}" for ending, count in sorted(self.others.items()))
            notes.append(f"files of other kinds left alone: {kinds}")
        return notes


def is_report(folder: Path) -> bool:
    """Whether a folder is a report of evalkit's own."""
    try:
        with (folder / "summary.json").open("rb") as file:
            return b'"evalkit.' in file.read(200)
    except OSError:
        return False


def may_be_recording(file: Path) -> bool:
    """Whether a file of a folder is looked at."""
    ending = file.suffix.lower()
    if ending in ENDINGS:
        return True
    heads = _BY_HEAD.get(ending)
    if heads is None and ending not in ("", ".log"):
        return False
    try:
        with file.open("rb") as opened:
            head = opened.read(2048)
    except OSError:
        return True
    if heads is None:
        return head.lstrip()[:1] in (b"{", b"[") or head[:2] == b"PK"
    return any(begin in head for begin in heads)
