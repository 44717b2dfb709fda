"""What became of mutants, written down as it is found, so that a run goes on where one stopped."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.mutation.trial import ROOT, Mutant, Outcome, source_of

#: Where it is kept.
LOG = ROOT / ".cache" / "mutants.jsonl"


class Log:
    """Outcomes by mutant. One that was noticed stands while its module is as it was, one that survived while
    the tests of its place are too; random scenarios count while the module is as it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:  # it was being written when the run was stopped
                    continue
                self._known.setdefault(row["mutant"], {}).update(row)

    def outcome(self, mutant: Mutant) -> Outcome | None:
        """What became of it; None where that is not known, or no longer."""
        row = self._known.get(_name(mutant), {})
        if "found" not in row or (row["found"] == "survived" and row.get("tests") != _tests(mutant)):
            return None
        return Outcome(row["found"], row["by"], row["seconds"])

    def played(self, mutant: Mutant) -> int:
        """How many random scenarios gave equal episodes."""
        played: int = self._known.get(_name(mutant), {}).get("played", 0)
        return played

    def keep(self, mutant: Mutant, outcome: Outcome) -> None:
        """Write down what became of it."""
        tests = _tests(mutant) if outcome.found == "survived" else ""
        self._write(mutant, found=outcome.found, by=outcome.by, seconds=outcome.seconds, tests=tests)

    def keep_played(self, mutant: Mutant, number: int) -> None:
        """Write down that so many random scenarios gave equal episodes."""
        self._write(mutant, played=number)

    def _write(self, mutant: Mutant, **row: Any) -> None:
        name = _name(mutant)
        self._known.setdefault(name, {}).update(row)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps({"mutant": name, **row}) + "\n")


def _name(mutant: Mutant) -> str:
    return f"{mutant.told} @ {_digest(source_of(mutant.module))}"


def _tests(mutant: Mutant) -> str:
    return _digest("".join([(ROOT / test).read_text() for test in mutant.place.tests]))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
