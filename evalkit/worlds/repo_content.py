"""The project that a repo world starts from: one module and one test file for each named test."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Mapping

import msgspec

from evalkit.worlds.base import WorldError
from evalkit.worlds.tree import PathRefused, place

PACKAGE = "app"
TESTS = "tests"
_NAME = re.compile(r"test_[a-z0-9_]+\Z")
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(test_\w+)", re.MULTILINE)

_PYPROJECT = """\
[project]
name = "app"
version = "0.1"

[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
"""
_IGNORED = "__pycache__/\n.pytest_cache/\n"


class Part(msgspec.Struct, frozen=True):
    """What belongs to a named test: its file, the module it tests, that module before and after the work."""

    test: str
    test_path: str
    test_text: str
    path: str
    broken: str
    fixed: str


def part_of(name: str, tests: Mapping[str, str], fixes: Mapping[str, str], files: Mapping[str, str]) -> Part:
    """The part of a test, generated but for what is declared; WorldError for a name that no test can have."""
    function = name.removeprefix("test_")
    if not _NAME.match(name) or keyword.iskeyword(function) or not function.isidentifier():
        raise WorldError(
            f"items: {name!r} is not the name of a test; allowed: test_NAME, NAME of a-z, 0-9, '_'"
        )
    factor, offset = _numbers(function)
    path = f"{PACKAGE}/{function}.py"
    stub = f"def {function}(number: int) -> int:\n"
    values = [number * factor + offset for number in range(4)]
    text = (
        f"from {PACKAGE}.{function} import {function}\n\n\n"
        f"def {name}():\n    assert [{function}(number) for number in range(4)] == {values}\n"
    )
    text = tests.get(name, text)
    if name not in defined_tests(text):
        raise WorldError(f"tests: {name}: its text defines no function {name!r}")
    return Part(
        test=name,
        test_path=f"{TESTS}/{name}.py",
        test_text=text,
        path=path,
        broken=files.get(path, f"{stub}    raise NotImplementedError\n"),
        fixed=fixes.get(name, f"{stub}    return number * {factor} + {offset}\n"),
    )


def texts_of(parts: tuple[Part, ...], files: Mapping[str, str]) -> dict[str, str]:
    """The files of the first commit by path."""
    texts = {"pyproject.toml": _PYPROJECT, ".gitignore": _IGNORED, f"{PACKAGE}/__init__.py": ""}
    for part in parts:
        texts[part.path] = part.broken
        texts[part.test_path] = part.test_text
    for path, text in files.items():
        try:
            texts[place(path)] = text
        except PathRefused as error:
            raise WorldError(f"files: {error}") from None
    return texts


def defined_tests(text: str) -> tuple[str, ...]:
    """The test functions that a file defines."""
    return tuple(dict.fromkeys(_DEFINED.findall(text)))


def _numbers(name: str) -> tuple[int, int]:
    """Two small numbers that belong to a name, so that no two modules are alike."""
    digest = hashlib.blake2b(name.encode(), digest_size=2).digest()
    return digest[0] % 7 + 2, digest[1] % 9 + 1
