"""A folder of files. What each item takes is declared as checks on the folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from evalkit.worlds.base import WorldError, WorldSpec
from evalkit.worlds.file_checks import FileCheck, check_holds, plain_path, usable
from evalkit.worlds.folder import FolderWorld, first_tree, folder_tools, read_options
from evalkit.worlds.isolation import Bounds, leaves_folder
from evalkit.worlds.tree import PathRefused, Tree, place


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of the work on an item: ``write`` a file with ``text``, or ``run`` a command."""

    write: str | None = None
    text: str = ""
    run: str | None = None

    @property
    def call(self) -> tuple[str, dict[str, Any]]:
        """The step as a tool call."""
        if self.run is not None:
            return "run", {"command": self.run}
        return "write_file", {"path": self.write, "text": self.text}


class FilesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``files``: the first content. ``checks``: what each item takes. ``work``: how a script does it."""

    files: dict[str, str] = {}
    checks: dict[str, FileCheck | tuple[FileCheck, ...]] = {}
    work: dict[str, tuple[Step, ...]] = {}
    seconds: float = Bounds().seconds


class FilesWorld(FolderWorld):
    """Files and commands. An item is done when its checks hold.

    Options: ``files`` (path: text, the first content), ``checks`` (item: a check or a list of them:
    ``exists``, ``contains``, ``matches``, ``run``, ``sql``), ``work`` (item: the calls by which a script does
    it; not needed where ``exists`` and ``contains`` of one file say it), ``seconds`` (a command's time).
    """

    kind = "files"
    option_names = frozenset({"checks", "files", "seconds", "work"})
    tools = folder_tools(listing="List the files, and the items that are wanted.", write_does=True)

    def __init__(self, spec: WorldSpec) -> None:
        options = read_options(FilesOptions, spec.options)
        if options.seconds <= 0:
            raise WorldError(f"seconds: must be above 0, got {options.seconds:g}")
        super().__init__(spec, Bounds(seconds=options.seconds))
        self._first = first_tree(options.files, "files")
        for field, named in (("checks", options.checks), ("work", options.work)):
            for item in named:
                if item not in self.vocabulary:
                    raise WorldError(f"{field}: unknown item {item!r}; known: {', '.join(self.vocabulary)}")
        self._checks = tuple(
            (self.vocabulary[item], _checks_of(item, options.checks)) for item in self.vocabulary
        )
        by_item = {item: checks for item, (_, checks) in zip(self.vocabulary, self._checks, strict=True)}
        self._work = {item: _work_of(item, by_item[item], options.work) for item in self.vocabulary}
        self.evidence = FilesEvidence(self.vocabulary, by_item, self._work)
        self._paths = {item: _paths_of(by_item[item], self._work[item]) for item in self.vocabulary}

    def first(self) -> Tree:
        return self._first

    def items_done(self, tree: Tree) -> int:
        return _done(tree, self._checks, self.bounds)

    def listing(self) -> str:
        wanted = []
        for item in self.asked():
            paths = ", ".join(path for path in self._paths[item] if path != item)
            wanted.append(f"{item} ({paths})" if paths else item)
        return "\n".join((*self.tree.paths(), f"Wanted: {', '.join(wanted)}"))

    def item_at(self, path: str) -> int:
        return self.bits(tuple(item for item, paths in self._paths.items() if path in paths))

    def settle_calls(self, item: str, nonce: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        return tuple(step.call for step in self._work[item])

    def undo_calls(self, item: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        """The item's files as they were at first."""
        calls: list[tuple[str, dict[str, Any]]] = []
        for path in self._paths[item]:
            before = self._first.read(path)
            if before is None:
                calls.append(("run", {"command": f"rm -f {shlex.quote(path)}"}))
            else:
                calls.append(("write_file", {"path": path, "text": before.decode()}))
        return tuple(calls)

    def read_call(self, item: str) -> tuple[str, dict[str, Any]]:
        paths = self._paths[item]
        return ("read_file", {"path": paths[0]}) if paths else ("list_files", {})


class FilesEvidence:
    """An item is on record as done when the last call of its work, or its check's command, has succeeded."""

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        checks: Mapping[str, tuple[FileCheck, ...]],
        work: Mapping[str, tuple[Step, ...]],
    ) -> None:
        self._finishing: dict[tuple[str, str], int] = {}
        self._any: dict[tuple[str, str], int] = {}
        for item, bit in vocabulary.items():
            commands = [check.command for check in checks[item]]
            proofs = [("run", command.command) for command in commands if command and not command.status]
            calls = [_named(step) for step in work[item]]
            for name in (calls[-1], *proofs):
                self._finishing[name] = self._finishing.get(name, 0) | bit
            for name in (*calls, *proofs):
                self._any[name] = self._any.get(name, 0) | bit

    def __call__(self, tool: str, arguments: Mapping[str, Any], text: str, error: bool) -> int:
        value = arguments.get("command" if tool == "run" else "path")
        if tool not in ("run", "write_file") or not isinstance(value, str):
            return 0
        if tool == "run":
            name = (tool, value.strip())
        else:
            try:
                name = (tool, place(value))
            except PathRefused:
                return 0
        return (self._any if error else self._finishing).get(name, 0)


def _named(step: Step) -> tuple[str, str]:
    return ("run", step.run.strip()) if step.run is not None else ("write_file", str(step.write))


@lru_cache(maxsize=4096)
def _done(tree: Tree, checks: tuple[tuple[int, tuple[FileCheck, ...]], ...], bounds: Bounds) -> int:
    done = 0
    for bit, of_item in checks:
        if all(check_holds(check, tree, bounds) for check in of_item):
            done |= bit
    return done


def _checks_of(item: str, declared: Mapping[str, FileCheck | tuple[FileCheck, ...]]) -> tuple[FileCheck, ...]:
    found = declared.get(item, ())
    checks = (found,) if isinstance(found, FileCheck) else found
    if not checks:
        raise WorldError(f"checks: item {item!r} has none; give exists, contains, matches, run or sql")
    for check in checks:
        usable(check, f"checks: {item}")
    return checks


def _work_of(
    item: str, checks: tuple[FileCheck, ...], declared: Mapping[str, tuple[Step, ...]]
) -> tuple[Step, ...]:
    """The declared steps, else the writing of the one file of which only existence and texts are checked."""
    steps = declared.get(item)
    if steps is None:
        paths = {path for check in checks for path in check.paths}
        if len(paths) != 1 or any(check.matches or check.run or check.sql for check in checks):
            raise WorldError(f"work: item {item!r} has none, and its checks do not say what to write")
        texts = [check.contains.text for check in checks if check.contains is not None]
        return (Step(write=paths.pop(), text="\n".join((*texts, "")) if texts else f"{item}\n"),)
    if not steps:
        raise WorldError(f"work: {item}: at least one step is needed")
    for step in steps:
        if (step.write is None) == (step.run is None):
            raise WorldError(f"work: {item}: a step has either 'write' with 'text', or 'run'")
        if step.run is not None and (not step.run.strip() or leaves_folder(step.run)):
            raise WorldError(
                f"work: {item}: run: {leaves_folder(step.run) or 'a command'} is not within the folder"
            )
        if step.write is not None:
            plain_path(step.write, f"work: {item}")
    return steps


def _paths_of(checks: tuple[FileCheck, ...], work: tuple[Step, ...]) -> tuple[str, ...]:
    looked = [path for check in checks for path in check.paths]
    return tuple(dict.fromkeys((*looked, *(step.write for step in work if step.write is not None))))
