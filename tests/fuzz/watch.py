"""What input must never bring about: a process, a connection, a file outside of its folder."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NEVER = frozenset(
    {
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.startfile"),
        *("subprocess.Popen", "socket.connect", "socket.bind", "pty.spawn", "ctypes.dlopen"),
    }
)
#: Events that change something at the path which is their first or second argument.
_CHANGES = frozenset(
    {
        *("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.truncate"),
        *("os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.copyfile", "shutil.move"),
    }
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Escaped(BaseException):
    """Input had an effect that it must not have. No handler for exceptions takes it for one of its own."""


class _Watch:
    """The folder that may be written to, and what was done elsewhere; an audit hook cannot be taken away."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.escaped: list[str] = []
        self.hooked = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _NEVER:
            self._note(f"{event}{arguments!r}"[:300])
        elif event == "open" and len(arguments) == 3:
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else flags & _WRITES
            if writes:
                self._look(event, path)
        elif event in _CHANGES:
            for path in arguments[:2]:
                self._look(event, path)

    def _look(self, event: str, path: Any) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        full = os.path.realpath(os.fsdecode(path))
        # Python's own caches are written wherever a module is first imported.
        harmless = full == os.devnull or "__pycache__" in full
        if not harmless and not full.startswith(f"{self.folder}{os.sep}") and full != str(self.folder):
            self._note(f"{event} {full}"[:300])

    def _note(self, what: str) -> None:
        self.escaped.append(what)
        raise Escaped(what)


_watch = _Watch()


@contextmanager
def confined() -> Iterator[Path]:
    """A folder of one's own; :class:`Escaped` for a process, a connection or a change anywhere else."""
    if not _watch.hooked:
        sys.addaudithook(_watch)
        _watch.hooked = True
    with tempfile.TemporaryDirectory(prefix="evalkit-fuzz-") as name:
        folder = Path(os.path.realpath(name))
        _watch.escaped.clear()
        _watch.folder = folder
        try:
            yield folder
        finally:
            _watch.folder = None
        if _watch.escaped:
            raise Escaped(_watch.escaped[0])
