"""``evalkit run --replace``: the run that is there goes, and nothing else that is."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.runs.store import FILE, Store
from tests.helpers import document

MOVES = [{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(yaml.safe_dump(document(MOVES, scenario="one")))
    assert run("gate").exit_code == 0
    return tmp_path


def run(*more: str) -> Result:
    strategy, *rest = more
    return CliRunner().invoke(
        main, ["run", "s.yaml", "-s", strategy, "--out", "r", "--no-charts", "--workers", "1", *rest]
    )


def strategies() -> list[str]:
    store = Store.open(Path("r"), write=False)
    store.close()
    return list(store.recipe.strategies)


def test_a_run_is_replaced_and_what_else_lies_there_stays(here: Path) -> None:
    (here / "r/notes.txt").write_text("mine")
    (here / "r/traces").mkdir()
    (here / "r/traces/000000.json.gz").write_text("of the old one")
    assert run("silence", "--replace").exit_code == 0
    assert strategies() == ["silence"]
    assert (here / "r/notes.txt").read_text() == "mine"
    assert not (here / "r/traces").exists()


def test_the_refusal_of_a_taken_folder_names_it(here: Path) -> None:
    result = run("silence")
    assert (result.exit_code, strategies()) == (2, ["gate"])
    assert "r: holds a run already; --resume it, --replace it, or choose another: --out r-2" in result.stderr


def test_a_folder_without_a_run_is_left_alone(here: Path) -> None:
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
        (here / "r" / name).unlink(missing_ok=True)
    before = sorted(here.rglob("*"))
    result = run("silence", "--replace")
    assert result.exit_code == 2
    assert "evalkit: r: holds no run of evalkit" in result.stderr
    assert sorted(here.rglob("*")) == before


def test_nor_is_a_base_of_another_program(here: Path) -> None:
    (here / "r" / FILE).write_text("not a store")
    assert run("silence", "--replace").exit_code == 2
    assert (here / "r" / FILE).read_text() == "not a store"


@pytest.mark.parametrize("wrong", [("gaet", "--replace"), ("silence", "--replace", "--seeds", "0")])
def test_nothing_is_removed_for_a_plan_that_is_refused(here: Path, wrong: tuple[str, ...]) -> None:
    assert run(*wrong).exit_code == 2
    assert strategies() == ["gate"]


def test_a_run_that_is_being_played_is_not_removed(here: Path) -> None:
    player = Store.open(Path("r"), write=True)
    result = run("silence", "--replace")
    assert "r: is being played by another evalkit" in result.stderr
    assert (result.exit_code, player.count()) == (2, 1)
    player.close()
    assert run("silence", "--replace").exit_code == 0


def test_without_a_folder_there_is_nothing_to_replace(here: Path) -> None:
    result = CliRunner().invoke(main, ["run", "s.yaml", "-s", "gate", "--replace"])
    assert (result.exit_code, sorted(path.name for path in here.iterdir())) == (2, ["r", "s.yaml"])
