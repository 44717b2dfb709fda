"""Ends of turn that were found in public repositories: where each is, and its label, in ``found_claims.csv``.

Their texts are not kept here. Who fetches the files puts them into a folder, as they are or as JSON lines of
``{"id": …, "messages": […]}``, and names it in ``EVALKIT_CLAIMS``: an end is known again by its words.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from evalkit.strategies.claim_reader import without_code
from evalkit.transcripts.read import read_paths
from evalkit.transcripts.reader_accuracy import Labelled, Measured, measure
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.turn_claims import claim_of

FOUND = Path(__file__).parent / "found_claims.csv"
#: Ends of both samples that a second reader labelled without seeing labels: kind, digest, both labels.
SECOND = Path(__file__).parent / "second_labels.csv"


def rows() -> list[dict[str, str]]:
    """The labelled ends: part, repository, path, commit, turn, digest, claim, first_pass."""
    with FOUND.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def folder() -> Path | None:
    """The folder of fetched files that ``EVALKIT_CLAIMS`` names."""
    named = os.environ.get("EVALKIT_CLAIMS")
    return Path(named) if named else None


def digest(text: str) -> str:
    """An end's words by a digest: quoted code and the breaks of lines make no other end."""
    return blake2b(" ".join(without_code(text).split()).encode(), digest_size=8).hexdigest()


def held_against(texts: Path) -> dict[str, Measured]:
    """The rules against the labels of the ends in a folder, by part."""
    labels = {row["digest"]: row for row in rows()}
    known = [item for item in read_paths([texts]) if isinstance(item, Recording)]
    return measure(_labelled(known, labels), known, claim_of)


def _labelled(known: list[Recording], labels: dict[str, dict[str, str]]) -> Iterator[Labelled]:
    for recording in known:
        for number, step in enumerate(recording.steps, 1):
            row = labels.pop(digest(step.turn.text), None)
            if row is not None:
                yield Labelled(recording.id, number, row["claim"] == "done", row["part"])


def kappa() -> float:
    """Cohen's kappa of the first reader's two passes over the first round."""
    first = {digest: label for _, digest, label, _ in _second()}
    return _kappa([(row["first_pass"], first[row["digest"]]) for row in rows() if row["first_pass"]])


class Agreement(NamedTuple):
    """How far two readers agree on a kind: ends, ends labelled alike, Cohen's kappa."""

    ends: int
    alike: int
    kappa: float


def readers() -> dict[str, Agreement]:
    """The agreement of the two readers by kind, and of all."""
    labelled = _second()
    found: dict[str, Agreement] = {}
    for kind in (*sorted({kind for kind, *_ in labelled}), "all"):
        both = [(first, second) for of, _, first, second in labelled if kind in (of, "all")]
        found[kind] = Agreement(len(both), sum(one == other for one, other in both), _kappa(both))
    return found


def _second() -> list[tuple[str, str, str, str]]:
    with SECOND.open(newline="", encoding="utf-8") as file:
        return [(row["kind"], row["digest"], row["first"], row["second"]) for row in csv.DictReader(file)]


def _kappa(both: list[tuple[str, str]]) -> float:
    agreed = sum(first == second for first, second in both) / len(both)
    first, second = (Counter(pair[place] for pair in both) for place in (0, 1))
    chance = sum(first[label] * second[label] for label in first) / len(both) ** 2
    return (agreed - chance) / (1 - chance) if chance < 1 else 1.0
