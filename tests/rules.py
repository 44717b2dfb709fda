"""Rules of the loop, of truth and of flags that the code marks, each with the one test that is named for it.

In the code ``# rule: NAME`` stands before the statement that carries a rule out; its test has
``@pytest.mark.rule("NAME")``. So from line to test is one search, and a test that no longer comes to the line
fails, whatever else it asserts.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from functools import lru_cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

ROOT = Path(__file__).parent.parent
MARKED = ("loop", "scoring", "core")
_RULE = re.compile(r"^\s*# rule: (\w+)$")


@lru_cache(maxsize=1)
def rules() -> dict[str, tuple[str, range]]:
    """Each rule's file and the lines of its statement. ValueError where a name stands twice."""
    found: dict[str, tuple[str, range]] = {}
    for room in MARKED:
        for file in sorted((ROOT / "evalkit" / room).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if "# rule: " not in text:
                continue
            ends = {
                node.lineno: max(node.end_lineno or 0, node.lineno)
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.stmt)
            }
            for number, line in enumerate(text.splitlines(), 1):
                match = _RULE.match(line)
                if match is None:
                    continue
                if match[1] in found:
                    raise ValueError(f"{file}: rule {match[1]!r} is marked twice")
                found[match[1]] = str(file), range(number + 1, ends[number + 1] + 1)
    return found


class Watching:
    """Takes down the rules that are carried out, in this thread and in those that it starts."""

    def __init__(self) -> None:
        self.met: set[str] = set()
        self._lines = {(file, line): name for name, (file, lines) in rules().items() for line in lines}
        self._files = {file for file, _ in self._lines}

    def __enter__(self) -> Watching:
        self._before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)
        threading.settrace(None)  # type: ignore[arg-type]

    def _call(self, frame: FrameType, event: str, told: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, told: Any) -> Any:
        name = self._lines.get((frame.f_code.co_filename, frame.f_lineno))
        if name is not None:
            self.met.add(name)
        return self._line
