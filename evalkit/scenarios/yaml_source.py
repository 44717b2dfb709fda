"""YAML with the line of every value, and without YAML's traps."""

from __future__ import annotations

import re
from pathlib import Path as FilePath
from typing import Any, TypeAlias

import yaml

Path: TypeAlias = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 60
#: What JSON, SQLite and the wire take as a whole number.
MAX_INT = 2**63 - 1

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Control characters but for tab and line ends, surrogates without their half, and what is no character.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_TRAPS = {"yes", "no", "on", "off", "y", "n"}


class ScenarioError(ValueError):
    """A scenario that cannot be used: one line with file, line, field, what was found, what is allowed."""

    def __init__(self, file: str, line: int | None, field: str, message: str) -> None:
        place = f"{file}:{line}" if line else file
        told = f"{place}: {field[:200]}: {message}" if field else f"{place}: {message}"
        super().__init__(" ".join(told.splitlines())[:1_000])


class Source:
    """One YAML document as plain values, and where each of them stands.

    ``drawn_from`` is the population that a document was drawn from, None for one that was written.
    """

    def __init__(self, file: str, value: Any, lines: dict[Path, int], drawn_from: str | None = None) -> None:
        self.file = file
        self.value = value
        self.lines = lines
        self.drawn_from = drawn_from

    def error(self, path: Path, message: str) -> ScenarioError:
        """An error at the value of a path, or the closest one around it that has a line."""
        at = path
        while at and at not in self.lines:
            at = at[:-1]
        return ScenarioError(self.file, self.lines.get(at), field_name(path), message)


def field_name(path: Path) -> str:
    """``model[2].say`` for ``("model", 2, "say")``."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def read_file(path: FilePath) -> str:
    """The text of a file. ScenarioError where it is no readable text file of a bearable size."""
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(str(path), None, "", "is not a file")
        if path.stat().st_size > 4 * MAX_BYTES:
            raise ScenarioError(str(path), None, "", f"is larger than {4 * MAX_BYTES:,} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ScenarioError(str(path), None, "", f"cannot be read: {reason}") from None


def read_yaml(text: str, file: str) -> list[Source]:
    """All documents of a text. ScenarioError for what YAML would silently take."""
    if len(text) > MAX_BYTES:
        raise ScenarioError(file, None, "", f"is {len(text):,} characters long; at most {MAX_BYTES:,}")
    try:
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join((error.problem or error.context or "not YAML").split())
        raise ScenarioError(file, mark.line + 1 if mark else None, "", f"not YAML: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        raise ScenarioError(file, None, "", f"not YAML: {problem}") from None
    return [_Reader(file).read(node) for node in nodes if node is not None]


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.nodes = 0
        self.open: set[int] = set()

    def read(self, node: yaml.Node) -> Source:
        return Source(self.file, self._value(node, ()), self.lines)

    def _fail(self, node: yaml.Node, path: Path, message: str) -> ScenarioError:
        return ScenarioError(self.file, node.start_mark.line + 1, field_name(path), message)

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self.nodes += 1
        self.lines[path] = node.start_mark.line + 1
        if self.nodes > MAX_NODES:
            raise self._fail(node, path, f"more than {MAX_NODES:,} values in one document")
        if len(path) > MAX_DEPTH:
            raise self._fail(node, path[:3], f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.open:
            raise self._fail(node, path, "an alias that contains itself")
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._value(child, (*path, place)) for place, child in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self.open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._fail(key_node, path, "a key must be a word")
            key = self._text(key_node, path)
            if key in values:
                raise self._fail(key_node, (*path, key), "stands here twice")
            values[key] = self._value(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        text: str = node.value
        if tag == "bool":
            if text.lower() in _TRAPS:
                raise self._fail(
                    node, path, f"YAML reads {text} as true or false; quote it or write true or false"
                )
            return text.lower() == "true"
        if tag == "null":
            return None
        if tag in ("int", "float"):
            return self._number(node, path, tag)
        if tag in ("str", "timestamp"):
            return self._text(node, path)
        raise self._fail(node, path, f"the tag {node.tag} is not allowed")

    def _number(self, node: yaml.ScalarNode, path: Path, tag: str) -> int | float:
        text = node.value.replace("_", "")
        try:
            number = int(text, 0) if tag == "int" else float(text)
        except ValueError:
            raise self._fail(node, path, f"YAML reads {node.value[:40]} as a number; quote it") from None
        if abs(number) > MAX_INT or number != number:
            raise self._fail(node, path, f"{node.value[:40]} is out of range: from -2^63 to 2^63 - 1")
        return number

    def _text(self, node: yaml.ScalarNode, path: Path) -> str:
        text: str = node.value
        found = _UNSEEN.search(text)
        if found:
            raise self._fail(node, path, f"holds the character U+{ord(found[0]):04X}, which no text may")
        return text


def write_document(document: dict[str, Any]) -> str:
    """A document as YAML."""
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100))
