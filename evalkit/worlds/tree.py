"""A folder's content as an immutable value: cheap to copy, compared by hash."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from evalkit.worlds.git_index import index_digest

Kind: TypeAlias = Literal["file", "program", "link", "folder"]

#: A folder that grew beyond these is not taken over.
MAX_FILES = 2_000
MAX_BYTES = 16_000_000

#: Bytes of a path; a little further the system opens nothing by it.
MAX_PATH = 3_000

GIT = ".git"
#: What git leaves of a command that is over, and never reads again.
_PASSING = frozenset({f"{GIT}/COMMIT_EDITMSG", f"{GIT}/FETCH_HEAD"})


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A file, an executable file, a link (``data`` is its target) or an empty folder."""

    kind: Kind
    data: bytes
    digest: bytes


class TreeTooLarge(Exception):
    """A folder holds more than evalkit keeps of one."""


class PathRefused(ValueError):
    """A path that leaves the folder or that no file can have; the message says why."""


def place(path: object) -> str:
    """A path within a folder in its plain form, ``a/b.txt``. PathRefused for any other."""
    if not isinstance(path, str) or not path.strip():
        raise PathRefused(f"a path is needed, found {path!r}")
    if path.startswith(("/", "~")) or "\\" in path:
        raise PathRefused(f"{path}: only paths within the folder, like a/b.txt")
    if ".." in path.split("/"):
        raise PathRefused(f"{path}: leaves the folder")
    if not path.isprintable() or any(0xD800 <= ord(sign) <= 0xDFFF for sign in path):
        raise PathRefused(f"{path!r}: has signs that a path cannot have")
    plain = posixpath.normpath(path)
    if len(plain.encode()) > 1_000 or any(len(part.encode()) > 200 for part in plain.split("/")):
        raise PathRefused(f"{plain[:40]}…: longer than a path can be")
    if plain == "." or plain.split("/")[0].lower() == GIT:
        raise PathRefused(f"{path}: not a file of the folder")
    return plain if plain == path else place(plain)


class Tree:
    """The files below a folder by path. Never changed: :meth:`with_file` makes another one.

    Two trees are equal when their content is; what git keeps of times and inodes is left out.
    """

    __slots__ = ("_digest", "_work", "entries")

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self._digest: bytes | None = None
        self._work: Tree | None = None

    @property
    def digest(self) -> bytes:
        """The hash of the content."""
        if self._digest is None:
            whole = hashlib.blake2b(digest_size=16)
            for path in sorted(self.entries):
                entry = self.entries[path]
                whole.update(os.fsencode(f"{path}\0{entry.kind}\0"))
                whole.update(entry.digest)
            self._digest = whole.digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def work(self) -> Tree:
        """The same without git's own folder: what tests and checks see."""
        if self._work is None:
            kept = {path: entry for path, entry in self.entries.items() if not _in_git(path)}
            self._work = self if len(kept) == len(self.entries) else Tree(kept)
        return self._work

    def paths(self) -> list[str]:
        """The files in order, without git's own."""
        return sorted(path for path, entry in self.work.entries.items() if entry.kind != "folder")

    def read(self, path: str) -> bytes | None:
        """A file's content, None where there is no such file."""
        entry = self.entries.get(path)
        return entry.data if entry is not None and entry.kind in ("file", "program") else None

    def with_file(self, path: str, data: bytes) -> Tree:
        """This tree with a file written. PathRefused where a folder, a link or a file is in the way."""
        old = self.entries.get(path)
        if old is not None and old.kind == "link":
            raise PathRefused(f"{path}: is a link")
        if (old is not None and old.kind == "folder") or any(
            other.startswith(f"{path}/") for other in self.entries
        ):
            raise PathRefused(f"{path}: is a folder")
        if old is not None and old.data == data:
            return self
        entries = dict(self.entries)
        for parent in _parents(path):
            above = self.entries.get(parent)
            if above is None:
                continue
            if above.kind != "folder":
                raise PathRefused(f"{path}: {parent} is a {'link' if above.kind == 'link' else 'file'}")
            del entries[parent]
        entries[path] = make_entry(path, data, old.kind if old is not None else "file")
        return Tree(entries)

    def with_texts(self, texts: Iterable[tuple[str, str]]) -> Tree:
        """This tree with several files written."""
        tree = self
        for path, text in texts:
            tree = tree.with_file(path, text.encode())
        return tree

    def write_to(self, folder: Path) -> None:
        """Make the files in an empty folder."""
        made = set()
        for path in sorted(self.entries):
            entry = self.entries[path]
            target = folder / path
            parent = target if entry.kind == "folder" else target.parent
            if parent not in made:
                parent.mkdir(parents=True, exist_ok=True)
                made.add(parent)
            if entry.kind == "link":
                target.symlink_to(os.fsdecode(entry.data))
            elif entry.kind != "folder":
                target.write_bytes(entry.data)
                if entry.kind == "program":
                    target.chmod(0o755)


def tree_of(texts: Mapping[str, str]) -> Tree:
    """A tree of texts by path. PathRefused for a path that cannot be."""
    return Tree({}).with_texts((place(path), text) for path, text in texts.items())


def make_entry(path: str, data: bytes, kind: Kind = "file") -> Entry:
    """An entry with its digest."""
    digest = index_digest(data) if path == f"{GIT}/index" else _hash(data)
    return Entry(kind, data, digest)


def read_tree(folder: Path, like: Tree) -> tuple[Tree, tuple[str, ...]]:
    """What a folder holds now, and the links that left it and were not taken over.

    Entries equal to those of ``like`` are shared with it. TreeTooLarge beyond the limits. A folder that is
    not there any more, or is something else now, holds nothing.
    """
    if folder.is_symlink() or not folder.is_dir():
        return Tree({}), ()
    entries: dict[str, Entry] = {}
    dropped: list[str] = []
    size = 0
    root = str(folder)
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        if len(os.fsencode(inside)) > MAX_PATH:
            raise TreeTooLarge(f"the folder is nested deeper than {MAX_PATH:,} bytes of path")
        os.chmod(os.path.join(root, inside), 0o700)
        empty = True
        for item in os.scandir(os.path.join(root, inside)):
            path = f"{inside}/{item.name}" if inside else item.name
            empty = False
            if item.is_dir(follow_symlinks=False):
                waiting.append(path)
                continue
            if path in _PASSING:
                continue
            read = _read_link(path, item.path) if item.is_symlink() else _read_file(item)
            if read is None:
                dropped.append(path)
                continue
            kind, data = read
            size += len(data)
            if size > MAX_BYTES or len(entries) >= MAX_FILES:
                raise TreeTooLarge(
                    f"the folder holds more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB"
                )
            known = like.entries.get(path)
            same = known is not None and known.kind == kind and known.data == data
            entries[path] = known if same and known is not None else make_entry(path, data, kind)
        if empty and inside:
            entries[inside] = make_entry(inside, b"", "folder")
    return Tree(entries), tuple(sorted(dropped))


def _read_link(path: str, place_on_disk: str) -> tuple[Kind, bytes] | None:
    """A link's target where it stays within the folder."""
    target = os.readlink(place_on_disk)
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or inside == ".." or inside.startswith("../"):
        return None
    return "link", os.fsencode(target)


def _read_file(item: os.DirEntry[str]) -> tuple[Kind, bytes] | None:
    """A file's content; None for what is no plain file."""
    mode = item.stat(follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        return None
    if not mode & stat.S_IRUSR:
        os.chmod(item.path, 0o600)
    if item.stat(follow_symlinks=False).st_size > MAX_BYTES:
        raise TreeTooLarge(f"{item.name} is larger than {MAX_BYTES // 1_000_000} MB")
    with open(item.path, "rb") as file:
        return ("program" if mode & stat.S_IXUSR else "file"), file.read()


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _in_git(path: str) -> bool:
    return path == GIT or path.startswith(f"{GIT}/")


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
