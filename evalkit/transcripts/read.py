"""Files and folders in, recordings and problems out: which format a file is, and all that it holds.

Nothing that a file holds stops the others: what cannot be read is a :class:`Problem` with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from evalkit.core.turns import count_tokens, parse_arguments
from evalkit.transcripts import claude_code, inspect_logs, openai_agents, otel
from evalkit.transcripts.claims import read_claim
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
from evalkit.transcripts.problem import ODD, Found, Problem, guard, one, problem_of
from evalkit.transcripts.read_spans import read_span_values
from evalkit.transcripts.recording import Conversation, Recording, Unreadable
from evalkit.transcripts.records import (
    LOOK,
    is_record,
    is_told_in_parts,
    item_list,
    message_list,
    record,
)
from evalkit.transcripts.responses import is_item, read_response
from evalkit.transcripts.source import Source

#: Formats that a file can be, for those who ask.
FORMATS = {
    "openai-chat": "OpenAI Chat message lists, alone or in records with labels (JSON, JSONL)",
    "anthropic-messages": "Anthropic message lists, likewise",
    "openai-responses": "OpenAI Responses items and response objects",
    "tau-bench": "tau-bench results",
    "tau2": "tau2-bench results",
    "inspect": "Inspect logs (.eval, .json)",
    "swe-agent": "SWE-agent .traj",
    "mini-swe-agent": "mini-swe-agent .traj.json",
    "atif": "Harbor ATIF trajectories",
    "claude-code": "Claude Code sessions (JSONL)",
    "openai-agents": "OpenAI Agents SDK traces",
    "otel-genai": "OpenTelemetry GenAI spans (OTLP JSON)",
    "multi-agent": "plain multi-agent histories (who-and-when)",
}
_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj", ".eval")
#: Lists within a document that are read one element at a time.
_LISTS = frozenset(("simulations", "samples", "resourceSpans", "resource_spans", "data"))


#: Recordings after which what core remembers by text is dropped: texts of foreign runs rarely come again.
_FORGET = 20


def read_paths(paths: Iterable[Path]) -> Iterator[Found]:
    """All recordings of files and folders, one at a time, in order of names; folders to their depth."""
    for path in paths:
        inner = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in inner:
            yield from read_file(file)


def read_file(path: Path) -> Iterator[Found]:
    """The recordings of one file; at least one recording or problem."""
    name = path.as_posix()
    any_found = False
    if path.exists() and not path.is_file():
        yield Problem(name, "", "is no file")
        return
    try:
        with path.open("rb") as file:
            for number, found in enumerate(_read(file, path, name)):
                any_found = True
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
        yield from _inspect(file, path, name)
    elif head[:1] == b"[":
        yield from _sequence(((f"entry {n}", v) for n, v in enumerate(elements(file), 1)), name)
    elif head[:1] == b"{":
        if is_lines(file):
            yield from _sequence(_json_lines(file), name)
        else:
            yield from _document(file, path, name)
    elif not head:
        raise Unreadable("is empty")
    else:
        known = ", ".join(_ENDINGS)
        raise Unreadable(f"is no transcript: neither JSON nor an archive (formats: {known})")


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
        yield from _records(
            ((f"simulation {n}", v) for n, v in enumerate(elements(_again(file), "simulations"), 1)),
            name,
        )
    elif "samples" in names and "eval" in names:
        yield from _inspect(file, path, name)
    elif "resourceSpans" in names or "resource_spans" in names:
        key = "resourceSpans" if "resourceSpans" in names else "resource_spans"
        parts = ((f"entry {n}", v) for n, v in enumerate(elements(_again(file), key), 1))
        values = _unbroken(parts, name)
        yield from read_span_values(values, name, _is_object, otel.spans_of, "otel-genai")
    elif names == ["data"] or ("data" in names and value is None):
        yield from _sequence(
            ((f"entry {n}", v) for n, v in enumerate(elements(_again(file), "data"), 1)), name
        )
    elif broken is not None:
        raise broken
    else:
        yield from _sequence(iter([("", whole(file, size) if value is None else value)]), name)


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
        if len(first) == LOOK or _is_decisive(value):
            break
    good = [value for _, value in first if not isinstance(value, Problem)]
    values = chain(first, values)
    if any(map(otel.is_otlp, good)):
        yield from read_span_values(values, name, otel.is_otlp, otel.spans_of, "otel-genai")
    elif any(map(openai_agents.is_agents_object, good)):
        yield from read_span_values(
            values, name, openai_agents.is_agents_object, openai_agents.spans_of, "openai-agents"
        )
    elif any(map(claude_code.is_claude_code, good)):
        yield from _session(values, name)
    elif is_told_in_parts(good):
        yield from _parts(values, name, messages=not any(map(is_item, good)))
    elif good and not any(map(is_record, good)):
        found = (
            ", ".join(list(map(str, good[0]))[:8]) if isinstance(good[0], dict) else type(good[0]).__name__
        )
        raise Unreadable(f"is of no known format; its entries: {found[:120] or 'nothing'}")
    else:
        yield from _records(values, name)


def _is_decisive(value: Any) -> bool:
    """Whether a value alone says what a sequence is of; a message does not, since items may have no type."""
    told = (otel.is_otlp, openai_agents.is_agents_object, claude_code.is_claude_code)
    return is_record(value) or any(fits(value) for fits in told)


def _session(values: Iterator[tuple[str, Any]], name: str) -> Iterator[Found]:
    session = claude_code.Session()
    for place, value in values:
        if isinstance(value, Problem):
            yield value
        else:
            problem = guard(session.add, value, Source(name, place))
            if problem is not None:
                yield problem
    yield one(lambda _, source: session.recording(source), None, Source(name))


def _parts(values: Iterator[tuple[str, Any]], name: str, *, messages: bool) -> Iterator[Found]:
    """One run, told as messages or items."""
    problems: list[Problem] = []

    def good() -> Iterator[Any]:
        for _, value in values:
            if isinstance(value, Problem):
                problems.append(value)
            else:
                yield value

    def read(_: Any, source: Source) -> Recording:
        return message_list(list(good()), source) if messages else item_list(good(), source)

    found = one(read, None, Source(name))
    yield from problems
    yield found


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
