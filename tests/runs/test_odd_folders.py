"""Run folders of other versions, half written or spoilt: one line, never a traceback."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, RunError, Store
from tests.runs.test_run import plan

COMMANDS = (
    ("report", "RUN", "--no-charts"),
    ("show", "RUN", "random/gate"),
    ("gate", "RUN", "--baseline", "BASELINE"),
    ("compare", "RUN", "WHOLE"),
    ("run", "--resume", "RUN", "--no-charts", "--workers", "1"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders") / "whole"
    made = plan(20)
    store = Store.create(folder, made.recipe)
    run_plan(made, store, 1)
    store.close()
    (folder / "baseline.json").write_text(CliRunner().invoke(main, ["baseline", str(folder)]).stdout)
    return folder


def call(whole: Path, folder: Path, *arguments: str) -> Result:
    places = {"RUN": str(folder), "WHOLE": str(whole), "BASELINE": str(whole / "baseline.json")}
    return CliRunner().invoke(main, [places.get(argument, argument) for argument in arguments])


def ends_well(result: Result) -> None:
    """Whatever came of it, it was no exception, and an error is one line."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in (0, 1, 2, 3)
    if result.exit_code == 2:
        told = result.stderr.strip().splitlines()
        assert told[-2].startswith("evalkit: "), result.stderr
        assert told[-1].startswith("hint: evalkit "), result.stderr


def copied(whole: Path, tmp_path: Path) -> Path:
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def changed(folder: Path, statement: str, *values: Any) -> Path:
    base = sqlite3.connect(folder / FILE)
    base.execute(statement, values)
    base.commit()
    base.close()
    return folder


def recipe(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    base = sqlite3.connect(folder / FILE)
    ((text,),) = base.execute("select value from meta where name = 'recipe'")
    base.close()
    value = json.loads(text)
    change(value)
    return changed(folder, "update meta set value = ? where name = 'recipe'", json.dumps(value))


SPOILT: list[Callable[[Path], Path]] = [
    lambda folder: changed(folder, "update meta set value = '1' where name = 'schema'"),
    lambda folder: changed(folder, "update meta set value = x'ff00' where name = 'schema'"),
    lambda folder: changed(folder, "delete from meta"),
    lambda folder: changed(folder, "update meta set value = '{}' where name = 'recipe'"),
    lambda folder: changed(folder, f"update meta set value = '{'[' * 5000}' where name = 'recipe'"),
    lambda folder: changed(folder, "drop table meta"),
    lambda folder: changed(folder, "drop view episodes"),
    lambda folder: changed(folder, "alter table episode rename to other"),
    lambda folder: changed(folder, "delete from episode"),
    lambda folder: changed(folder, "delete from scenario"),
    lambda folder: changed(folder, "update episode set cell = cell + 100000"),
    lambda folder: recipe(folder, lambda value: value.update(evalkit="99.0")),
    lambda folder: recipe(folder, lambda value: value.update(sources={})),
    lambda folder: recipe(folder, lambda value: value["sources"].update({"s.yaml": "scenario: [" * 90})),
    lambda folder: recipe(folder, lambda value: value["entries"].pop()),
    lambda folder: recipe(folder, lambda value: value["contenders"][0].update(strategy="gone:gone")),
    lambda folder: recipe(folder, lambda value: value["contenders"][0].update(strategy="../../x.yaml")),
    lambda folder: recipe(folder, lambda value: value["contenders"][0].update(harness="gone")),
    lambda folder: recipe(folder, lambda value: value.update(seeds=-1)),
    lambda folder: recipe(folder, lambda value: value.update(baseline="nobody")),
    lambda folder: recipe(folder, lambda value: value["medium"].update(model="nobody:x")),
]


@pytest.mark.parametrize("number", range(len(SPOILT)))
def test_a_spoilt_folder_is_told_in_one_line(whole: Path, tmp_path: Path, number: int) -> None:
    folder = SPOILT[number](copied(whole, tmp_path))
    for arguments in COMMANDS:
        ends_well(call(whole, folder, *arguments))


def test_another_version_is_named(whole: Path, tmp_path: Path) -> None:
    folder = SPOILT[0](copied(whole, tmp_path))
    result = call(whole, folder, "report", "RUN")
    assert result.exit_code == 2
    assert "the run has store version 1, this evalkit reads" in result.stderr


@pytest.mark.parametrize("seed", range(25))
def test_no_flipped_bytes_make_a_traceback(whole: Path, tmp_path: Path, seed: int) -> None:
    folder = copied(whole, tmp_path)
    chance = random.Random(seed)
    data = bytearray((folder / FILE).read_bytes())
    for _ in range(chance.choice([1, 5, 200])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if seed % 3 == 0:
        data = data[: chance.randrange(len(data))]
    (folder / FILE).write_bytes(bytes(data))
    for arguments in COMMANDS[:1] + COMMANDS[-1:]:
        ends_well(call(whole, folder, *arguments))


def test_a_schema_that_is_no_text_is_told_in_one_line(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    data = (folder / FILE).read_bytes()
    assert b"CREATE TABLE meta" in data
    (folder / FILE).write_bytes(data.replace(b"CREATE TABLE meta", b"CRE\x9dTE TABLE meta"))
    with pytest.raises(RunError, match="the run cannot be read"):
        Store.open(folder, write=True)
    for arguments in COMMANDS:
        ends_well(call(whole, folder, *arguments))


def test_what_is_no_database_is_no_run(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(RunError, match="is no run folder"):
        Store.open(tmp_path, write=False)
