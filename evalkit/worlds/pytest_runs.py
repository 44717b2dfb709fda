"""Real pytest runs: which named tests are green, and what a printed run is evidence of."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from evalkit.containment.files import NoPlainFile, read_plain
from evalkit.worlds import command_cache
from evalkit.worlds.bytecode import for_command
from evalkit.worlds.command_folders import workshop
from evalkit.worlds.isolation import PYTHON, Bounds, run_isolated
from evalkit.worlds.tree import PathRefused, Tree, place

#: Bytes of a report that are read.
_LARGEST = 16_000_000
_PASSED = re.compile(r"\b(\d+) passed\b")
_NOT_PASSED = re.compile(r"\b\d+ (?:failed|errors?)\b")
_RED = re.compile(r"^(?:FAILED|ERROR) \S*?(test_\w+)(?:\.py)?(?:\[.*\])?(?: |$)", re.MULTILINE)


@lru_cache(maxsize=4096)
def green_tests(work: Tree, tests: tuple[tuple[str, str], ...], bounds: Bounds) -> frozenset[str]:
    """The names of the tests that pass in a real run of these test files on this content.

    ``tests`` are paths with the texts that they have in the run, whatever the content says of them.
    A parametrised test is green when all of its cases are. Each content is run once.
    """
    try:
        tree = work.with_texts(tests)
    except PathRefused:
        return frozenset()
    about = ("green", tree.digest, tuple(path for path, _ in tests), bounds)
    known = command_cache.get(about, frozenset[str])
    if known is None:
        with command_cache.in_turn(about):
            known = command_cache.get(about, frozenset[str])
            if known is None:
                known, whole = _run(tree, tests, bounds)
                if whole:
                    command_cache.put(about, known)
    return known


def _run(tree: Tree, tests: tuple[tuple[str, str], ...], bounds: Bounds) -> tuple[frozenset[str], bool]:
    """The green tests of a run, and whether it came to its own end."""
    with workshop() as (folder, scratch):
        tree.write_to(folder)
        report = scratch / "report.xml"
        command = shlex.join(
            [
                PYTHON,
                *("-m", "pytest", "-q", "--no-header", "--tb=no", "--continue-on-collection-errors"),
                f"--junitxml={report}",
                *(path for path, _ in tests),
            ]
        )
        status = run_isolated(command, folder, scratch, bounds, *for_command(command)).status
        whole = status is not None and status < 128
        try:
            cases = list(ElementTree.fromstring(read_plain(report, _LARGEST) or b"").iter("testcase"))
        except (NoPlainFile, ElementTree.ParseError):
            return frozenset(), whole
    passed: dict[str, bool] = {}
    for case in cases:
        name = case.get("name", "").partition("[")[0]
        clean = not any(child.tag in ("failure", "error", "skipped") for child in case)
        passed[name] = passed.get(name, True) and clean
    return frozenset(name for name, green in passed.items() if green), whole


class PytestEvidence:
    """What a harness learns of items from calls on a repository.

    A file's writing is about the item whose module or test file it is. A run of pytest is a record of success
    for the tests it named, or for all where it named none, if it printed that as many passed and none
    failed; of failure for those it printed as failed.
    """

    def __init__(self, vocabulary: Mapping[str, int], places: Mapping[str, int]) -> None:
        self._vocabulary = dict(vocabulary)
        self._places = dict(places)

    def __call__(self, tool: str, arguments: Mapping[str, Any], text: str, error: bool) -> int:
        if tool == "write_file":
            try:
                return self._places.get(place(arguments.get("path")), 0)
            except PathRefused:
                return 0
        command = arguments.get("command")
        if tool != "run" or not isinstance(command, str) or not re.search(r"\bpytest\b", command):
            return 0
        named = self._named(command)
        if error:
            return self._items(set(_RED.findall(text))) or named
        passed = _PASSED.findall(text)
        if not passed or _NOT_PASSED.search(text):
            return 0
        items = named or self._items(set(self._vocabulary))
        return items if int(passed[-1]) >= items.bit_count() else 0

    def _items(self, names: set[str]) -> int:
        items = 0
        for name in names:
            items |= self._vocabulary.get(name, 0)
        return items

    def _named(self, command: str) -> int:
        return self._items(set(re.findall(r"\btest_\w+", command.replace(".py", " "))))
