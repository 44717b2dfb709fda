"""The open items of a coding session: its checklist files, and the commands that check it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from evalkit.worker.task_records import Item, TaskError

#: A line of a Markdown checklist: ``- [ ] open``, ``- [x] done``.
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s+(.+?)\s*$")
#: A tool call in a line of Claude Code's transcript.
_TOOL_USE = re.compile(r'"type"\s*:\s*"tool_use"')
_TEXT = ("item", "content", "text", "name", "title", "subject")
_DONE = ("done", "completed", "complete")
#: Characters of a failed check's output that are shown.
TAIL = 600


class Checked(msgspec.Struct, frozen=True):
    """What a check command said; ``detail`` is the end of its output."""

    command: str
    passed: bool
    detail: str


def read_checklist(path: Path) -> tuple[Item, ...]:
    """The lines of a checklist: boxes in Markdown, or a JSON list. TaskError where it cannot be read.

    A JSON entry is an object with the item's text (``item``, ``content``, ``text``, …) and ``done`` or a
    ``status`` of ``done`` or ``completed``. The same text twice is one item, open where one of them is.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"checklist {path}: cannot be read: {error}") from None
    found = _from_json(path, text) if path.suffix == ".json" else _from_markdown(text)
    items: dict[str, bool] = {}
    for name, done in found:
        items[name] = items.get(name, True) and done
    return tuple(Item(name, done) for name, done in items.items())


def _from_markdown(text: str) -> list[tuple[str, bool]]:
    matches = (_BOX.match(line) for line in text.splitlines())
    return [(match.group(2), match.group(1) != " ") for match in matches if match]


def _from_json(path: Path, text: str) -> list[tuple[str, bool]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"checklist {path}: not JSON: {error}") from None
    if isinstance(value, dict):
        value = next((inner for inner in value.values() if isinstance(inner, list)), None)
    if not isinstance(value, list):
        raise TaskError(f"checklist {path}: expected a list of items")
    return [_entry(path, place, entry) for place, entry in enumerate(value)]


def _entry(path: Path, place: int, entry: Any) -> tuple[str, bool]:
    if isinstance(entry, dict):
        name = next((entry[key] for key in _TEXT if isinstance(entry.get(key), str)), "")
        if name.strip():
            done = entry.get("done", entry.get("status") in _DONE)
            return " ".join(name.split()), done is True
    raise TaskError(f"checklist {path}: entry {place}: expected an object with one of {', '.join(_TEXT)}")


def run_checks(commands: Iterable[str], folder: Path, timeout: float) -> list[Checked]:
    """Run check commands in a shell; exit code 0 passes. ``timeout`` is for each, in seconds."""
    return [_run(command, folder, timeout) for command in commands]


def _run(command: str, folder: Path, timeout: float) -> Checked:
    with subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as ran:
        try:
            said, _ = ran.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return Checked(command, False, f"still running after {timeout:g} s")
        finally:
            # What it started would go on, and hold the pipe.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(ran.pid, signal.SIGKILL)
    output = said.decode("utf-8", "replace").strip()
    detail = output[-TAIL:] if output else f"exit code {ran.returncode}"
    return Checked(command, ran.returncode == 0, detail)


def acted_since(transcript: Path, words: str) -> bool:
    """Whether a session called a tool after these words were last said to it, by its JSON lines transcript.

    False where the transcript cannot be read or does not hold the words: nobody can tell.
    """
    said = json.dumps(words)[1:-1]
    acted = False
    try:
        lines = transcript.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    for line in reversed(lines):
        if said in line:
            return acted
        acted = acted or _TOOL_USE.search(line) is not None
    return False
