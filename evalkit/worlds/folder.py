"""What the worlds of files share: the tools of a folder, and commands that run in it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from evalkit.core.tasks import Tool
from evalkit.core.validation import refusal
from evalkit.worlds import command_cache
from evalkit.worlds.base import Outcome, World, WorldError, WorldSpec, action_of
from evalkit.worlds.bytecode import for_command
from evalkit.worlds.command_folders import workshop
from evalkit.worlds.isolation import Bounds, leaves_folder, run_isolated
from evalkit.worlds.tree import (
    Kind,
    PathRefused,
    Tree,
    TreeTooLarge,
    make_entry,
    place,
    read_tree,
    tree_of,
)

Options = TypeVar("Options", bound=msgspec.Struct)

#: The largest text that a tool takes or gives, in characters.
MAX_TEXT = 200_000
#: Systems take no argument of 131,072 bytes and more.
MAX_COMMAND = 100_000
_SHOWN = 20_000
#: Clocks are not a part of what a command says.
_TOOK = re.compile(r"\bin \d+\.\d+s\b(?: \(\d+:\d\d:\d\d\))?")


class After(msgspec.Struct, frozen=True, gc=False):
    """What a command left: the folder, its exit status (None: out of time), what it printed."""

    tree: Tree
    status: int | None
    output: str


@lru_cache(maxsize=4096)
def run_on(tree: Tree, command: str, bounds: Bounds) -> After:
    """Run a command in a folder of this content.

    A command is taken to depend on the folder alone, so it runs once for each content.
    """
    about = ("run", tree.digest, command, bounds)
    known = command_cache.get(about, _Kept)
    if known is None:
        with command_cache.in_turn(about):
            known = command_cache.get(about, _Kept)
            if known is None:
                return _run_and_keep(about, tree, command, bounds)
    left = known.tree()
    return After(tree if left == tree else left, known.status, known.output)


def _run_and_keep(about: tuple[Any, ...], tree: Tree, command: str, bounds: Bounds) -> After:
    after = _run_on(tree, command, bounds)
    # One that ran out of time, or was killed, might not be another time.
    if after.status is not None and after.status < 128:
        files = {path: (entry.kind, entry.data) for path, entry in after.tree.entries.items()}
        command_cache.put(about, _Kept(files, after.status, after.output))
    return after


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """What a command left, as it is kept: the files by path, its status, what it printed."""

    files: dict[str, tuple[Kind, bytes]]
    status: int
    output: str

    def tree(self) -> Tree:
        """The folder."""
        return Tree({path: make_entry(path, data, kind) for path, (kind, data) in self.files.items()})


def _run_on(tree: Tree, command: str, bounds: Bounds) -> After:
    with workshop() as (folder, scratch):
        tree.write_to(folder)
        finished = run_isolated(command, folder, scratch, bounds, *for_command(command))
        output = _TOOK.sub("in 0.00s", finished.output)
        try:
            left, dropped = read_tree(folder, tree)
        except TreeTooLarge as error:
            return After(tree, 1, f"{output}\n{error}; what the command did is undone")
    if dropped:
        output += f"\nnot kept, no files of the folder: {', '.join(dropped)}"
    # An equal tree is the same one: all that was worked out for it stays.
    return After(tree if left == tree else left, finished.status, output)


def read_options(kind: type[Options], options: Mapping[str, Any]) -> Options:
    """A world's own options; WorldError names the field."""
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise WorldError(str(refusal(error, kind))) from None


def first_tree(texts: Mapping[str, str], field: str) -> Tree:
    """The content that a declaration gives; WorldError for a path that cannot be."""
    try:
        return tree_of(texts)
    except PathRefused as error:
        raise WorldError(f"{field}: {error}") from None


def folder_tools(*, listing: str, write_does: bool) -> tuple[Tool, ...]:
    """The tools of a folder. A command's success is always a record of work, a file's writing where it is."""
    return (
        Tool("list_files", listing, read_only=True, enumerates=True),
        Tool("read_file", "Read a file.", ("path",), read_only=True, item="path"),
        Tool("write_file", "Write a file.", ("path", "text"), item="path", does=write_does),
        Tool("run", "Run a shell command in the folder.", ("command",), does=True),
    )


class FolderWorld(World):
    """A folder and what is done in it. The state is an immutable tree, so a copy costs nothing.

    A subclass gives the first content and says which items a content does.
    """

    shares_results = True

    def __init__(self, spec: WorldSpec, bounds: Bounds) -> None:
        super().__init__(spec)
        self.bounds = bounds
        self._tree: Tree | None = None

    @abstractmethod
    def first(self) -> Tree:
        """The content before anything was done."""

    @abstractmethod
    def items_done(self, tree: Tree) -> int:
        """The items that are done in a content. It is asked again and again: remember the answers."""

    @abstractmethod
    def listing(self) -> str:
        """What ``list_files`` answers: the files, and the items that the task wants."""

    @abstractmethod
    def item_at(self, path: str) -> int:
        """The items whose work is a file."""

    @property
    def tree(self) -> Tree:
        """What the folder holds."""
        if self._tree is None:
            self._tree = self.first()
        return self._tree

    # Truth

    def settled(self) -> int:
        self.done = self.items_done(self.tree)
        return super().settled()

    def intact(self) -> bool:
        self.done = self.items_done(self.tree)
        return super().intact()

    def reads_done(self, item: str) -> bool:
        return bool(self.items_done(self.tree) & self.vocabulary[item])

    def artifact(self) -> bool:
        return self.tree != self.first()

    # Acting

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        try:
            outcome = self._call(tool, arguments)
        except PathRefused as error:
            outcome = Outcome(str(error), error=True)
        # A name on disk need not be UTF-8; an answer must.
        text = outcome.text.encode("utf-8", "replace").decode()
        return msgspec.structs.replace(outcome, text=self.noisy(text))

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        if tool == "list_files":
            return Outcome(self.listing())
        if tool == "run":
            return self._run(arguments.get("command"))
        if tool not in ("read_file", "write_file"):
            return Outcome(f"no tool {tool!r}", error=True)
        path = place(arguments.get("path"))
        if tool == "read_file":
            return self._read(path)
        return self._write(path, arguments)

    def once_only(self, tool: Tool) -> bool:
        # A file that is written as it stands has no effect.
        return self.spec.once and tool.name == "run"

    def had(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        return bool(self.effects.get(action_of(tool, arguments) or ""))

    def _read(self, path: str) -> Outcome:
        data = self.tree.read(path)
        if data is None:
            return Outcome(f"{path}: no such file", error=True)
        text = data.decode("utf-8", "replace")
        if len(text) > _SHOWN:
            text = f"{text[:_SHOWN]}\n[{path} is {len(data):,} bytes long; the rest is left out]"
        return Outcome(text)

    def _write(self, path: str, arguments: Mapping[str, Any]) -> Outcome:
        text = arguments.get("text")
        if not isinstance(text, str):
            return Outcome(f"{path}: a text is needed", error=True)
        if len(text) > MAX_TEXT:
            return Outcome(f"{path}: the text has {len(text):,} characters; at most {MAX_TEXT:,}", error=True)
        barred = self.barred(self.item_at(path))
        if barred:
            return Outcome(f"{path}: {barred}", error=True)
        before = self.tree
        self._tree = before.with_file(path, text.encode("utf-8", "replace"))
        action = f"write_file {arguments['path']}" if self._tree is not before else None
        return Outcome(f"{path}: written", action=action)

    def _run(self, command: object) -> Outcome:
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            return Outcome("a command is needed", error=True)
        if len(command.encode("utf-8", "replace")) > MAX_COMMAND:
            return Outcome(f"the command is longer than {MAX_COMMAND:,} bytes", error=True)
        outside = leaves_folder(command)
        if outside is not None:
            return Outcome(f"{outside}: only paths within the folder", error=True)
        before = self.tree
        after = run_on(before, command.encode("utf-8", "replace").decode(), self.bounds)
        self._tree = after.tree
        action = f"run {command}" if after.tree != before else None
        if after.status == 0:
            return Outcome(after.output.strip() or "exit status 0", action=action)
        ended = f"exit status {after.status}"
        if after.status is None:
            ended = f"stopped: it ran for more than {self.bounds.seconds:g} s"
        return Outcome(f"{ended}\n{after.output.strip()}".strip(), error=True, action=action)

    # Copies

    def key(self) -> Hashable:
        ran = frozenset(self.effects) if self.spec.once else None
        return self.tree.digest, self.skipped, self.approved, ran

    def fork(self) -> FolderWorld:
        return self.twin()
