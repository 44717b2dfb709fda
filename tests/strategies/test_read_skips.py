"""Skips that words tell, as a live run reads them."""

from __future__ import annotations

import pytest

from evalkit.core.turns import Finish
from evalkit.strategies.claim_reader import read_skips

NAMES = ("plot-3", "plot-4", "plot-5", "a.b")


@pytest.mark.parametrize(
    ("text", "skipped", "reason"),
    [
        ("Two done. Skipped: plot-5 (it is under water).", ("plot-5",), "it is under water"),
        ("I skipped plot-5 because it is flooded.", ("plot-5",), "it is flooded"),
        ("Skipped plot-5: under water", ("plot-5",), "under water"),
        ("Skipping plot-3 and plot-4 — both closed.", ("plot-3", "plot-4"), "both closed"),
        ("Done: plot-3\nplot-5 was skipped due to rain.", ("plot-5",), "rain"),
        ("Skipped a.b (gone). Skipped plot-3.", ("a.b",), "gone"),
        ("Skipped: plot-5.", ("plot-5",), ""),
    ],
)
def test_words_skip_what_they_name(text: str, skipped: tuple[str, ...], reason: str) -> None:
    assert read_skips(text, NAMES) == Finish((), skipped, reason)


@pytest.mark.parametrize(
    "text",
    [
        "Nothing was skipped; plot-5 is done.",
        "I did not skip plot-5.",
        "plot-4 may be skipped with a reason.",
        "I have not skipped plot-5 (it is done).",
        "Have you skipped plot-5?",
        "Skipped plot-55 (unknown).",
        "plot-5 is done (at last).",
    ],
)
def test_words_that_skip_nothing(text: str) -> None:
    assert read_skips(text, NAMES) is None
