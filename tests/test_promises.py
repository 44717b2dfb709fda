"""The page of promises: every test that it names is there, and soak tests are what it says."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.promises.breaks import BREAKS, Break

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", PAGE)))


@cache
def found_in(file: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file by ``name`` or ``Class::name``."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found.update({prefix + each.name: each for each in inner if isinstance(each, ast.FunctionDef)})
    return found


def marks(test: ast.FunctionDef) -> str:
    return " ".join(ast.unparse(decorator) for decorator in test.decorator_list)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMED)
def test_it_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert test in found_in(file)


def test_every_row_names_one() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "held by" not in line]
    rows = [line for line in rows if not line.startswith("| ---")]
    assert len(rows) >= 35
    assert [row for row in rows if "`tests/" not in row] == []


def test_what_takes_long_is_marked_as_such() -> None:
    for line in PAGE.splitlines():
        quick, *long = re.split(r"\*(?:soak|slow)\*", line)
        for part, wanted in ((quick, False), *((part, True) for part in long)):
            for name in re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", part):
                file, _, test = name.partition("::")
                assert ("slow" in marks(found_in(file)[test])) == wanted, name


def test_every_row_is_broken_by_something() -> None:
    """``make promises`` breaks each of them."""
    tried = {each.test.partition("[")[0] for each in BREAKS}
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
    unbroken = [row for row in rows if not tried & set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", row))]
    assert unbroken == []


@pytest.mark.parametrize("each", BREAKS, ids=lambda each: each.name)
def test_what_breaks_a_promise_is_there(each: Break) -> None:
    """The attribute that ``make promises`` replaces, and its test, which the page names."""
    module, _, attribute = each.target.partition(":")
    found: object = import_module(module)
    for part in attribute.split("."):
        found = inspect.getattr_static(found, part)
    assert each.test.partition("[")[0] in NAMED
    compile(each.broken, each.name, "eval")
