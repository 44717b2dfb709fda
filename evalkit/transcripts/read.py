"""Files and folders in, recordings and problems out: which format a file is, and all that it holds.

Nothing that a file holds stops the others: what cannot be read is a :class:`Problem` with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from evalkit.core.turns import count_tokens, parse_arguments
from evalkit.transcripts.benchmark_labels import with_label
from evalkit.transcripts.catalog import (
    ALWAYS,
    FORMATS,
    SESSIONS,
    Session,
    Spans,
    is_decisive,
    nearest,
    session_format,
    spans_format,
)
from evalkit.transcripts.document_formats import LOOK, ONLY_LABELS, is_record, list_reader, record, unknown
from evalkit.transcripts.documents import (
    WHOLE,
    Broken,
    decode,
    elements,
    head_of,
    is_lines,
    keys,
    lines,
    whole,
)
from evalkit.transcripts.empty_sessions import emptiness, empty_of
from evalkit.transcripts.formats import aider, http_cassettes, inspect_logs, otel
from evalkit.transcripts.formats.messages import is_message
from evalkit.transcripts.formats.read_spans import read_span_values
from evalkit.transcripts.formats.responses import is_item, read_response
from evalkit.transcripts.input_files import Looked
from evalkit.transcripts.joined_requests import joined
from evalkit.transcripts.problems import ODD, Found, Problem, guard, one, problem_of
from evalkit.transcripts.recording import Conversation, Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.transcripts.turn_claims import read_claim

__all__ = ["FORMATS", "read_file", "read_paths"]

#: Lists within a document that are read one element at a time.
_LISTS = frozenset(("simulations", "samples", "resourceSpans", "resource_spans", "data"))
#: Fields under which documents of no format of their own keep many runs, or the lines of one.
_WRAPPERS = (
    *("data", "traces", "runs", "spans", "calls", "observations", "trajectories", "results", "episodes"),
    *("rows", "sessions", "records", "events", "messages", "history", "steps"),
)

#: Recordings after which what core remembers by text is dropped: texts of foreign runs rarely come again.
_FORGET = 20
#: How files begin that are none of these, and what to do about it.
#: Files of lines by name, so that the first of them may be odd.
_LINED = (".jsonl", ".ndjson")
_MAGIC = (
    (b"\x28\xb5\x2f\xfd", "is compressed (zstd); unpack it first"),
    (b"\x1f\x8b", "is compressed (gzip); unpack it first"),
    (b"BZh", "is compressed (bzip2); unpack it first"),
    (b"SQLite format 3", "is a database; export its sessions (opencode: opencode export)"),
)


def read_paths(paths: Iterable[Path], looked: Looked | None = None) -> Iterator[Found]:
    """All recordings of files and folders, one at a time, in order of names; folders to their depth.

    A file that is named twice is read once; logs of one run's requests are one recording, wherever they lie;
    a label that lies beside a run is its label. ``looked`` says afterwards what was passed over.
    """
    files = looked if looked is not None else Looked(paths)
    return joined(
        found
        for file in files
        for found in _whole_file(file)
        if file in files.named or not isinstance(found, Problem) or found.why != ONLY_LABELS
    )


def read_file(path: Path) -> Iterator[Found]:
    """The recordings of one file; at least one recording or problem."""
    return joined(_whole_file(path))


def _whole_file(path: Path) -> Iterator[Found]:
    """What a file holds; after each recording what was not read of it."""
    name = path.as_posix()
    any_found = False
    if path.exists() and not path.is_file():
        yield Problem(name, "", "is no file")
        return
    try:
        with path.open("rb") as file:
            for number, found in enumerate(_read(file, path, name)):
                any_found = True
                if isinstance(found, Recording):
                    yield with_label(found)
                    for odd in found.odd:
                        place, _, what = odd.partition(": ")
                        inner = found.id.partition("#")[2]
                        yield Problem(name, f"{inner}, {place}" if inner else place, what or odd)
                else:
                    yield found
                if number % _FORGET == 0:
                    _forget()
    except Unreadable as error:
        yield Problem(name, "", str(error))
    except OSError as error:
        yield Problem(name, "", f"cannot be read: {error.strerror or error}")
    except ODD as error:
        yield problem_of(Source(name), error)
    else:
        if not any_found:
            yield Problem(name, "", "holds no recording")


def _forget() -> None:
    count_tokens.cache_clear()
    parse_arguments.cache_clear()
    read_claim.cache_clear()


def _read(file: IO[bytes], path: Path, name: str) -> Iterator[Found]:
    head = head_of(file)
    if head[:2] == b"PK":
        yield from _or(_inspect(file, path, name), _empty(name, "inspect", "samples"))
    elif head[:1] == b"[":
        entries = ((f"entry {n}", v) for n, v in enumerate(_entries(file, path), 1))
        yield from _or(_sequence(entries, name), Problem(name, "", "is an empty list: holds no recording"))
    elif head[:1] == b"{" or path.suffix.lower() in _LINED:
        if head[:1] != b"{" or is_lines(file):
            yield from _sequence(_json_lines(file), name)
        else:
            yield from _document(file, path, name)
    elif not head:
        raise Unreadable("is empty")
    elif path.suffix.lower() in (".yaml", ".yml") or b"interactions:" in head[:2048]:
        yield from _yaml(file, path, name)
    elif aider.START.encode() in head[:4096]:
        text = file.read(WHOLE).decode("utf-8", "replace")
        none = Problem(name, "", empty_of("aider", "holds no model turn"))
        yield from _or(aider.chats(text, Source(name)), none)
    else:
        for magic, why in _MAGIC:
            if head.startswith(magic):
                raise Unreadable(why)
        raise Unreadable(f"is no transcript: neither JSON nor an archive; {ALWAYS}")


def _entries(file: IO[bytes], path: Path) -> Iterable[Any]:
    """The elements of a list: decoded at once where it is whole and not large, else one after the other."""
    size = path.stat().st_size
    if size <= WHOLE:
        with suppress(Broken):
            value = whole(file, size)
            if isinstance(value, list):
                return value
        file.seek(0)
    return elements(file)


def _yaml(file: IO[bytes], path: Path, name: str) -> Iterator[Found]:
    value = http_cassettes.load_yaml(file, path.stat().st_size)
    if http_cassettes.is_cassette(value):
        yield from http_cassettes.recordings(value, Source(name))
    elif is_record(value):
        yield one(record, value, Source(name))
    else:
        raise Unreadable(emptiness(value) or f"is YAML, but no cassette; {unknown(value)}")


def _json_lines(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """The values of a file of lines; a broken line is given as the error it is."""
    for number, line in lines(file):
        try:
            yield f"line {number}", decode(line)
        except Broken as error:
            yield f"line {number}", error


# One document


def _document(file: IO[bytes], path: Path, name: str) -> Iterator[Found]:
    size = path.stat().st_size
    value: Any = None
    broken: Broken | None = None
    if size <= WHOLE:
        try:
            value = whole(file, size)
        except Broken as error:
            broken = error
    names = list(value) if isinstance(value, dict) else keys(file, _LISTS)
    if "simulations" in names:
        simulations = ((f"simulation {n}", v) for n, v in enumerate(elements(_again(file), "simulations"), 1))
        yield from _or(_records(simulations, name), _empty(name, "tau2", "simulations"))
    elif "samples" in names and "eval" in names:
        yield from _or(_inspect(file, path, name), _empty(name, "inspect", "samples"))
    elif "resourceSpans" in names or "resource_spans" in names:
        key = "resourceSpans" if "resourceSpans" in names else "resource_spans"
        parts = ((f"entry {n}", v) for n, v in enumerate(elements(_again(file), key), 1))
        values = _unbroken(parts, name)
        yield from read_span_values(values, name, _is_object, otel.spans_of, "otel-genai")
    elif names == ["data"] or ("data" in names and value is None):
        entries = ((f"entry {n}", v) for n, v in enumerate(elements(_again(file), "data"), 1))
        yield from _or(_sequence(entries, name), _empty(name, "openai-agents", "data"))
    elif broken is not None:
        raise broken
    else:
        value = whole(file, size) if value is None else value
        if http_cassettes.is_cassette(value):
            yield from http_cassettes.recordings(value, Source(name))
            return
        inner = _wrapped(value)
        if inner:
            yield from _sequence(((f"entry {n}", v) for n, v in enumerate(value[inner], 1)), name)
        else:
            yield from _sequence(iter([("", value)]), name)


def _or(found: Iterator[Found], none: Problem) -> Iterator[Found]:
    """What is found, or a problem where nothing is."""
    first = next(found, none)
    yield first
    yield from found


def _empty(name: str, format: str, field: str) -> Problem:
    return Problem(name, "", empty_of(format, f"its `{field}` holds nothing"))


def _wrapped(value: Any) -> str:
    """The field of a document of no format of its own under which runs, or the lines of one, lie."""
    if not isinstance(value, dict) or is_record(value) or is_decisive(value) or session_format([value]):
        return ""
    for key in _WRAPPERS:
        inner = value.get(key)
        if not isinstance(inner, list) or not inner:
            continue
        seen = inner[:LOOK]
        if any(map(is_record, seen)) or spans_format(seen) or session_format(seen) or list_reader(seen):
            return key
    return ""


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _again(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file


def _inspect(file: IO[bytes], path: Path, name: str) -> Iterator[Found]:
    samples = inspect_logs.samples(_again(file), str(path), path.stat().st_size)
    for place, value in _unbroken(samples, name):
        if isinstance(value, Problem):
            yield value
        else:
            yield one(inspect_logs.sample, value, Source(name, place))


# Sequences of values


def _unbroken(values: Iterator[tuple[str, Any]], name: str) -> Iterator[tuple[str, Any]]:
    """The values, with a problem for each that is broken, and one where the sequence breaks off."""
    try:
        for place, value in values:
            yield place, Problem(name, place, str(value)) if isinstance(value, Broken) else value
    except Broken as error:
        place, _, why = str(error).partition(": ")
        yield (
            "",
            Problem(name, place, why)
            if why and place.split()[0] in ("entry", "line")
            else Problem(name, "", str(error)),
        )


def _sequence(values: Iterator[tuple[str, Any]], name: str) -> Iterator[Found]:
    """What a file of several values holds: a run told in parts, or one run each."""
    values = _unbroken(values, name)
    first = []
    for place, value in values:
        first.append((place, value))
        # Records may be large: no more are held than it takes to say what they are.
        if len(first) == LOOK or is_decisive(value) or (is_record(value) and list_reader([value]) is None):
            break
    good = [value for _, value in first if not isinstance(value, Problem)]
    values = chain(first, values)
    spans = spans_format(good)
    session = session_format(good)
    # One value alone is a list of one where it stands in a list, and a document of its own else.
    listed = bool(first) and (len(first) > 1 or first[0][0] != "")
    one_run_each = bool(good) and is_record(good[0]) and list_reader(good[:1]) is None
    parts = list_reader(good) if listed and not one_run_each else None
    if spans is not None:
        yield from _spans(values, name, spans)
    elif parts is not None and (session is None or not _fits_better(session, good)):
        yield from _parts(values, name, parts)
    elif session is not None:
        yield from _session(values, name, session())
    elif good and not any(map(is_record, good)):
        if unknown(good[0]) == ONLY_LABELS:
            raise Unreadable(ONLY_LABELS)
        near = nearest(good[0])
        raise Unreadable("; ".join(filter(None, (unknown(good[0]), near, ALWAYS))))
    else:
        yield from _records(values, name)


def _spans(values: Iterator[tuple[str, Any]], name: str, spans: Spans) -> Iterator[Found]:
    yield from read_span_values(values, name, spans.fits, spans.spans_of, spans.format, spans.rest)


def _fits_better(session: Callable[[], Session], good: list[Any]) -> bool:
    """Whether more lines are those of a session than are messages or items of a list."""
    fits = next(fits for fits, taker in SESSIONS if taker is session)
    return sum(map(fits, good)) > sum(is_message(value) or is_item(value) for value in good)


def _session(values: Iterator[tuple[str, Any]], name: str, session: Session) -> Iterator[Found]:
    for place, value in values:
        if isinstance(value, Problem):
            yield value
        else:
            problem = guard(session.add, value, Source(name, place))
            if problem is not None:
                yield problem
    try:
        yield from session.recordings(Source(name))
    except ODD as error:
        yield problem_of(Source(name), error)


def _parts(
    values: Iterator[tuple[str, Any]], name: str, read: Callable[[list[Any], Source], Recording]
) -> Iterator[Found]:
    """One run, told as messages, items or events."""
    good, places = [], []
    for place, value in values:
        if isinstance(value, Problem):
            yield value
        else:
            good.append(value)
            places.append(place)
    found = one(read, good, Source(name))
    yield found if isinstance(found, Problem) else _by_line(found, places)


def _by_line(recording: Recording, places: list[str]) -> Recording:
    """What was not read named by its line: the reader counted the values, of which broken lines are none."""

    def placed(odd: str) -> str:
        part, colon, what = odd.partition(": ")
        word, _, number = part.partition(" ")
        known = word == "message" and number.isdigit() and int(number) <= len(places)
        place = places[int(number) - 1] if known else ""
        return f"{place}{colon}{what}" if place.startswith("line ") else odd

    if not recording.odd:
        return recording
    return msgspec.structs.replace(recording, odd=tuple(map(placed, recording.odd)))


def _records(values: Iterator[tuple[str, Any]], name: str) -> Iterator[Found]:
    chained: Conversation | None = None
    previous = ""
    for place, value in _unbroken(values, name):
        if isinstance(value, Problem):
            yield value
            continue
        if isinstance(value, dict) and value.get("object") == "response" and "input" not in value:
            # Responses that continue one another are one run.
            if chained is not None and value.get("previous_response_id") != previous:
                yield one(_chained, chained, Source(name, previous))
                chained = None
            chained = chained or Conversation()
            problem = guard(partial(read_response, chained), value, Source(name, place))
            if problem is not None:
                yield problem
            previous = str(value.get("id"))
            continue
        yield one(record, value, Source(name, place))
    if chained is not None:
        yield one(_chained, chained, Source(name, previous))


def _chained(conversation: Conversation, source: Source) -> Recording:
    return conversation.recording(source.id(), source.file, "openai-responses")
