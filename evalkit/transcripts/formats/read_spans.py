"""Runs out of a stream of spans, each when its trace is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from evalkit.transcripts.empty_sessions import empty_of
from evalkit.transcripts.formats.spans import Span, Trace, Traces
from evalkit.transcripts.problems import Found, Problem, guard, one
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.source import Source


def read_span_values(
    values: Iterator[tuple[str, Any]],
    name: str,
    fits: Callable[[Any], bool],
    spans_of: Callable[[dict[str, Any]], Iterator[Span]],
    format: str,
    rest: Callable[[], Iterator[Span]] | None = None,
) -> Iterator[Found]:
    """The runs in values of which each holds spans; a value that holds none is a problem.

    ``rest`` gives spans that were waiting for a part of theirs, when all values were taken.
    """
    traces = Traces()
    understood = True
    for place, value in values:
        if isinstance(value, Problem) or not fits(value):
            understood = False
            yield value if isinstance(value, Problem) else Problem(name, place, "is no span")
            continue
        whole: list[Trace] = []
        problem = guard(partial(_take, traces, spans_of, whole), value, Source(name, place))
        if problem is not None:
            understood = False
            yield problem
        for trace in whole:
            yield one(partial(_recording, format), trace, Source(name, trace.name))
    if rest is not None:
        for span in rest():
            for trace in traces.add(span):
                yield one(partial(_recording, format), trace, Source(name, trace.name))
    for trace in traces.rest():
        yield one(partial(_recording, format), trace, Source(name, trace.name))
    if understood and not traces.count:
        yield Problem(name, "", empty_of(format, "holds no span"))
    if traces.late:
        yield Problem(name, "", f"{traces.late} spans came long after their trace's others and were left out")


def _take(
    traces: Traces, spans_of: Callable[[dict[str, Any]], Iterator[Span]], whole: list[Trace], value: Any
) -> None:
    for span in spans_of(value):
        whole += traces.add(span)


def _recording(format: str, trace: Trace, source: Source) -> Recording:
    return trace.conversation(format).recording(source.id(trace.name), source.file, format, trace.ended)
