"""Bodies of exchanges without secrets: JSON, streams of it, and text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from evalkit.secrets.cleaning import clean_text, clean_value, may_hold_secrets, secrets_in
from evalkit.secrets.rules import REDACTED, is_secret_field, mask

#: Fields of a stream's events that say what an event is and hold no part of a text.
_STRUCTURE = frozenset(
    ("type", "object", "model", "id", "item_id", "role", "event", "status", "finish_reason")
)
#: Fields that tell apart the texts which come in turns.
_WHICH = ("index", "output_index", "content_index", "summary_index", "item_id")
_MASKS = re.compile(rf"{REDACTED}x*")

Channel: TypeAlias = tuple[Any, ...]


def clean_body(body: bytes | str | None, known: tuple[str, ...] = (), *, canonical: bool = False) -> str:
    """A body without secrets, and without the names of who made it: JSON, a stream, or text.

    ``canonical`` sorts the keys of JSON, and leaves no trace of how long a secret was: what is asked is then
    the same whoever's key stood in it.
    """
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _clean_stream(text, known)
    plain = _dumps(value, canonical=canonical)
    if not may_hold_secrets(plain, known):
        return plain if canonical else text
    cleaned = clean_value(value, known, identities=True)
    if canonical:
        return _MASKS.sub(REDACTED, _dumps(cleaned, canonical=True))
    return text if cleaned == value else _dumps(cleaned)


def clean_json(text: str) -> str:
    """A JSON text without secrets, for what evalkit writes itself; one without any comes back as it is."""
    if not may_hold_secrets(text):
        return text
    value = json.loads(text)
    cleaned = clean_value(value)
    return text if cleaned == value else _dumps(cleaned)


def _dumps(value: Any, *, canonical: bool = False) -> str:
    return json.dumps(value, sort_keys=canonical, ensure_ascii=False, separators=(",", ":"))


class _Line:
    """A line of a stream. One with JSON in it has its value, and how to write it again."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.value: Any = None
        self.head, rest = ("data:", line[5:]) if line.startswith("data:") else ("", line)
        data = rest.strip()
        self.head += rest[: len(rest) - len(rest.lstrip())]
        self.tail = rest[len(rest.rstrip()) :]
        self.ascii = self.compact = True
        if data[:1] not in ("{", "["):
            return
        try:
            self.value = json.loads(data)
        except (ValueError, RecursionError):
            return
        for self.ascii in (True, False):
            for self.compact in (True, False):
                if self._written(self.value) == data:
                    return
        self.ascii, self.compact = False, True

    def _written(self, value: Any) -> str:
        separators = (",", ":") if self.compact else (", ", ": ")
        return json.dumps(value, ensure_ascii=self.ascii, separators=separators)

    def with_value(self, value: Any) -> str:
        return f"{self.head}{self._written(value)}{self.tail}"


def _clean_stream(text: str, known: tuple[str, ...]) -> str:
    """A stream of JSON values: each is cleaned, and so is the text that their parts make up together."""
    lines = [_Line(line) for line in text.splitlines(keepends=True)]
    if not any(line.value is not None for line in lines):
        return clean_text(text, known, identities=True)
    parts: dict[Channel, list[_Part]] = {}
    for place, line in enumerate(lines):
        for channel, path, said in _texts(line.value, (), ()):
            parts.setdefault(channel, []).append(_Part(place, path, said))
    joined: dict[int, list[tuple[Channel, str]]] = {}
    for pieces in parts.values():
        # A text that comes in pieces is judged as a whole: a piece of it may look like something else.
        if len(pieces) > 1:
            spans = secrets_in("".join(piece.said for piece in pieces), known, identities=True)
            for piece, clean in zip(pieces, _redistributed(pieces, spans), strict=True):
                joined.setdefault(piece.place, []).append((piece.path, clean))
    written = []
    for place, line in enumerate(lines):
        if line.value is None:
            written.append(clean_text(line.line, known, identities=True))
            continue
        value = line.value
        for path, _ in joined.get(place, ()):
            value = _with(value, path, "")
        value = clean_value(value, known, identities=True)
        for path, clean in joined.get(place, ()):
            value = _with(value, path, clean)
        written.append(line.line if value == line.value else line.with_value(value))
    return "".join(written)


class _Part(NamedTuple):
    """A piece of a text: its line, where it stands there, what it says."""

    place: int
    path: Channel
    said: str


def _texts(value: Any, channel: Channel, path: Channel) -> Iterator[tuple[Channel, Channel, str]]:
    """The texts in an event: which text each is a part of, where it stands, what it says."""
    if isinstance(value, dict):
        which = tuple(value[name] for name in _WHICH if isinstance(value.get(name), int | str))
        kind = value.get("type") if isinstance(value.get("type"), str) and not path else None
        channel = (*channel, *which, kind) if which or kind else channel
        for key, inner in value.items():
            if key not in _STRUCTURE and not is_secret_field(key) and clean_text(key) == key:
                yield from _texts(inner, (*channel, key), (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _texts(inner, channel, (*path, place))
    elif isinstance(value, str) and value:
        yield channel, path, value


def _redistributed(parts: Sequence[_Part], spans: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """The parts again, each with its piece of what stands for a secret; a last piece may be longer."""
    at = 0
    for _, _, said in parts:
        end, clean, done = at + len(said), "", at
        for first, last in spans:
            low, high = max(first, at), min(last, end)
            if low >= high:
                continue
            stands = mask(last - first)
            piece = stands[low - first :] if high == last else stands[low - first : high - first]
            clean += said[done - at : low - at] + piece
            done = high
        yield clean + said[done - at :]
        at = end


def _with(value: Any, path: Channel, said: str) -> Any:
    """A value with another text in one place."""
    if not path:
        return said
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _with(value[path[0]], path[1:], said)
    return copied
