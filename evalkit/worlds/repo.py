"""A git repository with a pytest suite: named tests to make green, and the work to commit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Checks
from evalkit.worlds.base import WorldError, WorldSpec
from evalkit.worlds.folder import FolderWorld, first_tree, folder_tools, read_options, run_on
from evalkit.worlds.isolation import Bounds
from evalkit.worlds.pytest_runs import PytestEvidence, green_tests
from evalkit.worlds.repo_content import Part, defined_tests, part_of, texts_of
from evalkit.worlds.tree import GIT, Tree

_START = (
    "git -c init.defaultBranch=main init -q --template= && git config gc.auto 0"
    " && git add -A && git commit -q -m 'Start'"
)


class RepoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``files``: more of the first commit. ``tests``, ``fixes``: texts by test. ``commits``: of each item."""

    files: dict[str, str] = {}
    tests: dict[str, str] = {}
    fixes: dict[str, str] = {}
    commits: bool = True
    seconds: float = Bounds().seconds


class RepoWorld(FolderWorld):
    """Tests by name, each with a module that it tests. An item is done when its test passes in a real run.

    Invariant: the work is committed. The run uses the test files as declared, whatever became of them.

    Options: ``files`` (path: text, in the first commit beside or instead of what is generated), ``tests``
    (test: the text of its file), ``fixes`` (test: the text of its module that a script writes), ``commits``
    (whether a script's work on an item ends with a commit; default true), ``seconds`` (a command's time).
    """

    kind = "repo"
    option_names = frozenset({"commits", "files", "fixes", "seconds", "tests"})
    tools = folder_tools(listing="List the files, of test files with their tests.", write_does=False)

    def __init__(self, spec: WorldSpec) -> None:
        options = read_options(RepoOptions, spec.options)
        if options.seconds <= 0:
            raise WorldError(f"seconds: must be above 0, got {options.seconds:g}")
        super().__init__(spec, Bounds(seconds=options.seconds))
        for field, named in (("tests", options.tests), ("fixes", options.fixes)):
            for test in named:
                if test not in self.vocabulary:
                    raise WorldError(f"{field}: unknown item {test!r}; known: {', '.join(self.vocabulary)}")
        self._commits = options.commits
        self._parts: dict[str, Part] = {
            test: part_of(test, options.tests, options.fixes, options.files) for test in self.vocabulary
        }
        parts = tuple(self._parts.values())
        texts = texts_of(parts, options.files)
        self._start = first_tree(texts, "files")
        self._tests = tuple((part.test_path, texts[part.test_path]) for part in parts)
        self._places = {part.test_path: self.vocabulary[part.test] for part in parts}
        self._places.update({part.path: self.vocabulary[part.test] for part in parts})
        self.evidence = PytestEvidence(self.vocabulary, self._places)

    def first(self) -> Tree:
        return _committed_first(self._start, self.bounds)

    # Truth

    def items_done(self, tree: Tree) -> int:
        green = green_tests(tree.work, self._tests, self.bounds)
        return self.bits(tuple(test for test in self.vocabulary if test in green))

    def committed(self) -> bool:
        """Whether the last commit holds all that is in the folder."""
        return _clean(self.tree, self.bounds)

    def intact(self) -> bool:
        return super().intact() and self.committed()

    def standing(self) -> tuple[int, bool]:
        """The named tests that are green, then the commit of them all; and the oracle."""
        settled = self.settled()
        whole = settled == self.all and self.committed()
        return settled.bit_count() + whole, whole and super().intact()

    def check(self, level: Checks) -> Verdict:
        verdict = super().check(level)
        if verdict.met or verdict.gaps or self.committed():
            return verdict
        return msgspec.structs.replace(verdict, reason="the work is not committed")

    def reads_done(self, item: str) -> bool:
        """Whether the test passes as the folder has it now, its own file included."""
        own = tuple((path, _text(self.tree, path)) for path, _ in self._tests)
        green = green_tests(self.tree.work, tuple((path, text) for path, text in own if text), self.bounds)
        return item in green

    def artifact(self) -> bool:
        """Whether there is a commit or a diff."""
        first = self.first()
        return self.tree.work != first.work or head(self.tree) != head(first)

    # Acting

    def listing(self) -> str:
        lines = []
        later = set(self.spec.items) - set(self.asked())
        for path in self.tree.paths():
            name = path.rpartition("/")[2]
            tests = defined_tests(_text(self.tree, path)) if re.match(r"test_.*\.py\Z", name) else ()
            tests = tuple(test for test in tests if test not in later)
            lines.append(f"{path}: {', '.join(tests)}" if tests else path)
        return "\n".join(lines)

    def item_at(self, path: str) -> int:
        return self._places.get(path, 0)

    def settle_calls(self, item: str, nonce: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        part = self._parts[item]
        write = ("write_file", {"path": part.path, "text": part.fixed})
        test = ("run", {"command": f"python -m pytest -q {part.test_path}"})
        if not self._commits:
            return write, test
        return write, test, ("run", {"command": f"git add -A && git commit -q -m 'Make {item} pass'"})

    def undo_calls(self, item: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        part = self._parts[item]
        return (("write_file", {"path": part.path, "text": part.broken}),)

    def read_call(self, item: str) -> tuple[str, dict[str, Any]]:
        return "read_file", {"path": self._parts[item].path}


def head(tree: Tree) -> str:
    """The commit that a repository stands at; empty where there is none."""
    said = _text(tree, f"{GIT}/HEAD").strip()
    if not said.startswith("ref: "):
        return said
    name = said.removeprefix("ref: ")
    loose = _text(tree, f"{GIT}/{name}").strip()
    if loose:
        return loose
    for line in _text(tree, f"{GIT}/packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""


@lru_cache(maxsize=256)
def _committed_first(texts: Tree, bounds: Bounds) -> Tree:
    after = run_on(texts, _START, bounds)
    if after.status != 0:
        raise WorldError(f"the repository cannot be made; git says: {' '.join(after.output.split())}")
    return after.tree


def _clean(tree: Tree, bounds: Bounds) -> bool:
    after = run_on(tree, "git status --porcelain", bounds)
    return after.status == 0 and not after.output.strip() and bool(head(tree))


def _text(tree: Tree, path: str) -> str:
    data = tree.read(path)
    return "" if data is None else data.decode("utf-8", "replace")
