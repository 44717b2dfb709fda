"""What a user names a strategy by, and what is said of a name that stands for none."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.strategies.registry import StrategyError, find_strategy, strategy_names, usable_names

MODULE = """
from evalkit import Strategy, conditions as c

patient = Strategy(done_when=c.silence(), nudges=5)
enough = c.silence()


def hasty() -> Strategy:
    return Strategy(done_when=c.silence(), nudges=1)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ours_for_registry.py").write_text(MODULE)
    return tmp_path


def package(folder: Path, name: str, *points: str) -> None:
    """An installed package with these entry points."""
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("\n".join(("[evalkit.strategies]", *points)) + "\n")


def said(name: str) -> str:
    with pytest.raises(StrategyError) as raised:
        find_strategy(name)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "ours_for_registry.py",
            "strategy 'ours_for_registry.py' is a Python file; name a strategy of it: "
            "ours_for_registry:patient, ours_for_registry:hasty",
        ),
        ("plain.py", "strategy 'plain.py' is a Python file; name a strategy of it: plain:NAME"),
        (
            "two words.py",
            "strategy 'two words.py' is a Python file: in its folder name a strategy of it, two words:NAME",
        ),
        (
            "nowhere.py",
            "strategy 'nowhere.py': no such file; a strategy of a Python file is named module:name",
        ),
        (
            "ours_for_registry:pateint",
            "strategy 'ours_for_registry:pateint': 'ours_for_registry' has no 'pateint' "
            "(did you mean 'patient'?); strategies in it: patient",
        ),
        (
            "ours_for_registry:enough",
            "'ours_for_registry:enough' is a condition; a strategy is Strategy(done_when=...)",
        ),
    ],
)
def test_a_name_of_none_leads_to_those_there_are(here: Path, name: str, expected: str) -> None:
    for file in ("plain.py", "two words.py"):
        (here / file).write_text("other = 1\n")
    assert said(name) == expected


def test_a_module_of_a_folder_is_named_as_it_is_suggested(here: Path) -> None:
    (here / "inner").mkdir()
    (here / "inner" / "deep.py").write_text(MODULE)
    assert said("inner/deep.py").endswith("inner.deep:patient, inner.deep:hasty")
    assert find_strategy("inner.deep:patient").nudges == 5
    assert find_strategy("inner.deep:hasty").nudges == 1


def test_what_a_package_offers_is_told_with_its_declaration(here: Path) -> None:
    package(
        here,
        "ours",
        "patient = ours_for_registry:patient",
        "odd = ours_for_registry:enough",
        "gone = no_such:x",
    )
    assert find_strategy("patient").nudges == 5
    declared = "(entry point odd = ours_for_registry:enough of ours 1.2)"
    assert said("odd") == f"'odd' is a condition; a strategy is Strategy(done_when=...) {declared}"
    assert said("gone").startswith(
        "strategy 'gone': entry point gone = no_such:x of ours 1.2 cannot be loaded: ModuleNotFoundError"
    )


def test_a_name_that_two_packages_offer_is_neither(here: Path) -> None:
    package(here, "ours", "patient = ours_for_registry:patient")
    package(here, "theirs", "patient = ours_for_registry:hasty", "gate = ours_for_registry:patient")
    assert said("patient") == (
        "strategy 'patient' is offered twice: entry point patient = ours_for_registry:hasty of theirs 1.2; "
        "entry point patient = ours_for_registry:patient of ours 1.2"
    )
    names, notes = usable_names()
    assert "patient" not in names
    assert any("is offered twice" in note for note in notes)
    # A preset's name stays the preset's, and that is said.
    assert find_strategy("gate").nudges == 3
    assert [note for note in notes if "a preset has this name" in note] == [
        "left out: strategy 'gate': entry point gate = ours_for_registry:patient of theirs 1.2: "
        "a preset has this name"
    ]
    assert strategy_names().count("gate") == 1
