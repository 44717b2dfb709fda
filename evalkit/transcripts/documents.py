"""Files of JSON, read as streams: lines, arrays, documents with one large list, members of an archive.

Nothing is executed and no object is built but plain JSON values. A record may be large, a file may be larger
than memory; sizes are bounded before anything is read whole.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import msgspec

from evalkit.transcripts.recording import Unreadable

#: The largest single record (a line, or a document that is one run), in bytes.
MAX_RECORD = 256_000_000
#: Documents up to this size are decoded at once, in bytes; larger ones are scanned for their lists.
WHOLE = 16_000_000
_CHUNK = 1 << 18
#: A decoder's complaint this close to the end of what it was given may be about the end.
_CLOSE = 16
_NOT_BLANK = re.compile(r"[^ \t\n\r]")

_decode = msgspec.json.Decoder().decode


class Broken(Unreadable):
    """A file that ends or breaks within a value."""


def decode(data: bytes) -> Any:
    """One JSON value. NaN and lone surrogates, which Python's own writer emits, are taken. Broken if none."""
    try:
        return _decode(data)
    except RecursionError:
        raise Broken("is nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        first = str(error)
    try:
        return json.loads(data)
    except RecursionError:
        raise Broken("is nested too deep") from None
    except UnicodeDecodeError:
        raise Broken("is not UTF-8 text") from None
    except ValueError:
        # The library's words, without saying twice that it is JSON: "malformed: invalid character".
        raise Broken(f"is not JSON: {_began_low(first.removeprefix('JSON is '))}") from None


def _began_low(text: str) -> str:
    return text[:1].lower() + text[1:]


def head_of(file: IO[bytes]) -> bytes:
    """The first bytes of a file, byte-order mark and blank space left out; the file stands at its start."""
    head = file.read(_CHUNK)
    file.seek(0)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1. Broken for a line over the limit."""
    number = 0
    while True:
        line = file.readline(MAX_RECORD + 1)
        if not line:
            return
        number += 1
        if len(line) > MAX_RECORD:
            raise Broken(f"line {number}: is longer than {MAX_RECORD:,} bytes")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def is_lines(file: IO[bytes]) -> bool:
    """Whether a file that begins with an object holds one JSON value a line, and more than one line."""
    found = []
    for _, line in lines(file):
        found.append(line)
        if len(found) == 2:
            break
    file.seek(0)
    if len(found) < 2 or found[0].rstrip()[-1:] in (b"{", b",", b"["):
        return False
    return found[1].lstrip()[:1] == b"{" or _is_whole(found[0])


def _is_whole(line: bytes) -> bool:
    """Whether a line is a value by itself, so that what follows is another line, however odd."""
    try:
        decode(line)
    except Broken:
        return False
    return True


class Window:
    """A file as text, of which only the part around one value is held.

    Python's own decoder reads a value where it stands; it is bounded in depth, and as fast as reading all at
    once. A value that does not end in the window is tried again with twice as much of the file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def _more(self, size: int) -> None:
        data = self._file.read(size)
        self._ended = not data
        try:
            self._text = self._text[self._at :] + self._utf8.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise Broken("is not UTF-8 text") from None
        self._at = 0

    def peek(self) -> str:
        """The next character that is not blank; empty at the end of the file."""
        while True:
            found = _NOT_BLANK.search(self._text, self._at)
            if found is not None:
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if self._ended:
                return ""
            self._more(_CHUNK)

    def take(self, character: str) -> bool:
        """Whether this character comes next; it is passed if so."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """The next value. Broken where it is none, does not end, or is larger than a record may be."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError:
                raise Broken("is nested too deep") from None
            except json.JSONDecodeError as error:
                # What breaks close to the window's end may only be cut there.
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - _CLOSE
                if not cut:
                    raise Broken(f"is not JSON: {_began_low(error.msg)}") from None
                if self._ended:
                    raise Broken("the file ends within it") from None
            except ValueError as error:
                raise Broken(f"is not JSON: {error}") from None
            else:
                # A number that is cut may still be one ("1." of "1.5").
                spare = _CLOSE if isinstance(value, int | float) else 0
                if end + spare < len(self._text) or self._ended:
                    self._at = end
                    return value
            held = len(self._text) - self._at
            if held > MAX_RECORD:
                raise Broken(f"is longer than {MAX_RECORD:,} characters")
            self._more(max(_CHUNK, held))


def elements(file: IO[bytes], key: str = "") -> Iterator[Any]:
    """The elements of a list, one after the other: of the file's, or of the one under a key of its document.

    Broken where the file breaks, with the number of the element.
    """
    window = Window(file)
    if key:
        for name in _fields(window):
            if name == key:
                break
        else:
            return
    if not window.take("["):
        raise Broken(f"field {key!r}: is no list" if key else "is no list")
    if window.take("]"):
        return
    count = 0
    while True:
        count += 1
        try:
            value = window.value()
        except Broken as error:
            raise Broken(f"entry {count}: {error}") from None
        yield value
        if not window.take(","):
            break
    if not window.take("]"):
        what = "the file ends" if not window.peek() else "a comma is missing"
        raise Broken(f"entry {count + 1}: {what} before it")


def _fields(window: Window) -> Iterator[str]:
    """The keys of a document, each with the window at its value; a value that nobody reads is passed over."""
    if not window.take("{"):
        raise Broken("is no object")
    if window.take("}"):
        return
    while True:
        name = window.value()
        if not isinstance(name, str) or not window.take(":"):
            raise Broken("is not JSON: a field has no name")
        yield name
        try:
            window.value()
        except Broken as error:
            raise Broken(f"field {name!r}: {error}") from None
        if not window.take(","):
            break
    if not window.take("}"):
        raise Broken("the file ends within it" if not window.peek() else "is not JSON: a comma is missing")


def keys(file: IO[bytes], until: frozenset[str]) -> list[str]:
    """The keys of a document, up to the first of ``until``; those before a break where it breaks."""
    found: list[str] = []
    with suppress(Broken):
        for name in _fields(Window(file)):
            found.append(name)
            if name in until:
                break
    file.seek(0)
    return found


def whole(file: IO[bytes], size: int) -> Any:
    """A file as one value. Broken where it is none, or larger than a record may be."""
    if size > MAX_RECORD:
        raise Broken(f"is one record of {size:,} bytes; at most {MAX_RECORD:,}")
    data = file.read()
    file.seek(0)
    return decode(data.removeprefix(b"\xef\xbb\xbf"))
