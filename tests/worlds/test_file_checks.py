"""Checks on a folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.worlds import WorldError
from evalkit.worlds.file_checks import FileCheck, check_holds, usable
from evalkit.worlds.isolation import Bounds
from evalkit.worlds.tree import Tree, make_entry, tree_of

FOLDER = tree_of({"a.txt": "one\ntwo 22\n", "empty": "", "ok.sh": "exit 0\n", "bad.sh": "exit 3\n"})


def holds(declared: dict[str, Any], folder: Tree = FOLDER) -> bool:
    check = msgspec.convert(declared, FileCheck)
    usable(check, "checks: x")
    return check_holds(check, folder, Bounds())


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ({"exists": "a.txt"}, True),
        ({"exists": "empty"}, True),
        ({"exists": "b.txt"}, False),
        ({"contains": {"path": "a.txt", "text": "two"}}, True),
        ({"contains": {"path": "a.txt", "text": "three"}}, False),
        ({"contains": {"path": "b.txt", "text": ""}}, False),
        ({"matches": {"path": "a.txt", "pattern": r"^two \d+$"}}, True),
        ({"matches": {"path": "a.txt", "pattern": r"^\d+$"}}, False),
        ({"matches": {"path": "b.txt", "pattern": ""}}, False),
        ({"run": "sh ok.sh"}, True),
        ({"run": "sh bad.sh"}, False),
        ({"run": {"command": "sh bad.sh", "status": 3}}, True),
        ({"exists": "a.txt", "run": "sh bad.sh"}, False),
    ],
)
def test_each_kind_of_check(check: dict[str, Any], expected: bool) -> None:
    assert holds(check) is expected


def test_what_a_checks_command_changes_is_not_kept() -> None:
    assert holds({"run": "echo changed > a.txt"})
    assert holds({"contains": {"path": "a.txt", "text": "one"}})


class TestSql:
    @pytest.fixture(params=["delete", "wal"])
    def folder(self, request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
        base = sqlite3.connect(tmp_path / "x.db")
        base.execute(f"pragma journal_mode={request.param}")
        base.execute("create table row (name text)")
        base.executemany("insert into row values (?)", [("a",), ("b",)])
        base.commit()
        base.close()
        return Tree({"x.db": make_entry("x.db", (tmp_path / "x.db").read_bytes())})

    @pytest.mark.parametrize(
        ("query", "count", "expected"),
        [
            ("select count(*) from row", 2, True),
            ("select count(*) from row", 3, False),
            ("select count(*) from row where name like 'a%'", 1, True),
            ("with few as (select name from row limit 1) select count(*) from few", 1, True),
            ("select 2 union all select 2", 2, False),
            ("select 2, 2", 2, False),
            ("select count(*) from elsewhere", 0, False),
            ("not sql", 0, False),
            ("select 1; select 2", 1, False),
            ("delete from row returning 2", 2, False),
            (
                "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n",
                1,
                False,
            ),
        ],
    )
    def test_a_query_gives_its_number(self, folder: Tree, query: str, count: int, expected: bool) -> None:
        assert holds({"sql": {"path": "x.db", "query": query, "count": count}}, folder) is expected

    def test_no_other_file_is_touched(self, folder: Tree, tmp_path: Path) -> None:
        other = tmp_path / "made.db"
        holds({"sql": {"path": "x.db", "query": f"attach '{other}' as other", "count": 0}}, folder)
        assert not other.exists()

    @pytest.mark.long
    @given(st.binary(max_size=300))
    def test_what_is_no_database_holds_no_count(self, data: bytes) -> None:
        folder = Tree({"x.db": make_entry("x.db", data)})
        assert not holds({"sql": {"path": "x.db", "query": "select count(*) from row", "count": 0}}, folder)

    @pytest.mark.parametrize(("version", "expected"), [(1, True), (2, True), (3, False)])
    def test_a_file_that_asks_for_a_log_is_read_and_one_of_an_unknown_version_is_not(
        self, tmp_path: Path, version: int, expected: bool
    ) -> None:
        base = sqlite3.connect(tmp_path / "x.db")
        base.execute("create table row (name)")
        base.commit()
        base.close()
        data = (tmp_path / "x.db").read_bytes()
        folder = Tree({"x.db": make_entry("x.db", data[:18] + bytes((version, version)) + data[20:])})
        query = {"path": "x.db", "query": "select count(*) from row", "count": 0}
        assert holds({"sql": query}, folder) is expected


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({}, "checks: x: a check needs one of exists, contains, matches, run, sql"),
        ({"exists": "../a"}, "checks: x: ../a: leaves the folder"),
        ({"exists": "/a"}, "only paths within the folder"),
        ({"exists": "./a"}, "checks: x: write 'a', found './a'"),
        ({"matches": {"path": "a", "pattern": "("}}, "is no regular expression"),
        ({"run": "cat /etc/passwd"}, "checks: x: run: /etc/passwd is not within the folder"),
        ({"run": " "}, "checks: x: run: a command"),
    ],
)
def test_an_unusable_check_is_named(check: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError) as caught:
        holds(check)
    assert message in str(caught.value)
