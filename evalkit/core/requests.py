"""What reaches the model side, what it is to the model, and the rules every API shares.

A request is kept as its *join*: what it adds to the last delivered turn. So judging it costs the same in the
first turn and in the five-hundredth.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from evalkit.core.turns import Turn

#: Where a request stands among those that were answered.
Place: TypeAlias = Literal["on", "back", "lost"]

DEFAULT_LIMIT = 4096
FIRST_MODEL = "primary"
FALLBACK_MODEL = "fallback"
#: Ends the native label of a 400 or 413 that says that the window is full.
FULL_WINDOW = "_window_full"
#: The statuses of the 4xx that another try can get past: RFC 9110 and the providers' pages on errors.
_PASSING = frozenset(("http_408", "http_409", "http_429"))


def cannot_pass(native: str | None) -> bool:
    """Whether a fault, by its native label, stays the same however often the same is asked again."""
    return native is not None and native.startswith("http_4") and native not in _PASSING


def says_window_full(native: str | None) -> bool:
    """Whether a fault, by its native label, says that the window is full: only a shorter request helps."""
    return native is not None and native.endswith(FULL_WINDOW)


class Result(msgspec.Struct, frozen=True, gc=False):
    """The answer to a call."""

    id: str
    text: str
    error: bool = False


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request, as what it adds to the conversation.

    ``echo`` is the last delivered turn as the harness sends it back, None where it is left out (the first
    request, a retry, a re-issue). ``limit`` is the output limit in tokens. ``again`` marks a request that
    equals the one before; ``poll`` one that only asks for a pending answer. ``shortened`` marks one whose
    history was compacted by the harness: of what was said before only the prompt and ``echo`` are left, and
    ``history`` tokens between them.

    ``after`` is the number of the answered turn that it goes on from where that is not the last one, 0 for
    the beginning; ``lost`` says that nothing of what was answered stands in it, ``beside`` that another
    request was open when it came.
    """

    echo: Turn | None = None
    results: tuple[Result, ...] = ()
    text: str | None = None
    limit: int = DEFAULT_LIMIT
    model: str = FIRST_MODEL
    again: bool = False
    poll: bool = False
    shortened: bool = False
    history: int = 0
    after: int | None = None
    lost: bool = False
    beside: bool = False


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A conversation as its model side remembers it: the turn delivered last, and what it was asked with.

    ``number`` is the turn's, from 1; ``carried`` are the tokens that the last request carried.
    """

    turn: Turn | None = None
    limit: int = DEFAULT_LIMIT
    model: str = FIRST_MODEL
    number: int = 0
    carried: int = 0


class Stimulus(msgspec.Struct, frozen=True, gc=False):
    """What a request is to the model: all that may move it on.

    ``text`` is the new user text, answers to a finish call that was rejected included. ``place`` is where it
    stands: ``on`` from the last turn, ``back`` at an earlier one, or ``lost``, without any.
    """

    place: Place
    changed: bool
    shortened: bool
    higher_limit: bool
    other_model: bool
    resent: bool
    rejected: bool
    text: str


def finish_answer(turn: Turn, results: tuple[Result, ...], finish_tool: str) -> Result | None:
    """The answer to the turn's finish call, if the request has one."""
    for call in turn.calls:
        if call.tool == finish_tool:
            for result in results:
                if result.id == call.id:
                    return result
    return None


def stimulus(conversation: Delivered, request: Request, finish_tool: str, carries: int = 0) -> Stimulus:
    """What ``request`` is to a model with this conversation; it ``carries`` so many tokens.

    Appended history (the turn and its tool results) alone is not a change.
    """
    turn = conversation.turn
    text = request.text or ""
    rejected = False
    if turn is not None and request.echo is not None and turn.calls:
        answer = finish_answer(turn, request.results, finish_tool)
        if answer is not None:
            rejected = True
            text = f"{text}\n{answer.text}" if text else answer.text
    place: Place = "on"
    if request.lost:
        place = "lost"
    elif request.after is not None and request.after != conversation.number:
        place = "back"
    shortened = carries < conversation.carried
    other = request.model != conversation.model
    return Stimulus(
        place=place,
        changed=bool(text) or request.limit != conversation.limit or other or shortened,
        shortened=shortened,
        higher_limit=request.limit > conversation.limit,
        other_model=other,
        resent=request.echo == turn and request.text is None and not request.results,
        rejected=rejected,
        text=text,
    )


def neutral_faults(previous: Turn | None, request: Request) -> tuple[str, ...]:
    """The rules of all dialects that a request breaks at its join, as short names; empty where it is clean.

    ``call_without_result``, ``result_without_call``, ``result_twice``, ``pause_changed`` and
    ``pause_followed`` (documented on the providers' tool-use and server-tool pages).
    """
    echo, results = request.echo, request.results
    if len(results) == 1 and echo is not None and len(echo.calls) == 1 and echo.calls[0].id == results[0].id:
        return ()
    if echo is None:
        return ("result_without_call",) if request.results else ()
    if not echo.calls and not request.results and echo.kind != "pause":
        return ()
    faults = []
    if echo.kind == "pause":
        if previous is not None and echo != previous:
            faults.append("pause_changed")
        if request.text is not None or request.results:
            faults.append("pause_followed")
        return tuple(faults)
    wanted = [call.id for call in echo.calls]
    given = [result.id for result in request.results]
    if wanted == given:
        return ()
    if any(call not in given for call in wanted):
        faults.append("call_without_result")
    if any(result not in wanted for result in given):
        faults.append("result_without_call")
    if len(set(given)) != len(given):
        faults.append("result_twice")
    return tuple(faults)


def broken_at(rule: str, echo: Turn | None, results: tuple[Result, ...]) -> str:
    """The id of the call or result that breaks a neutral rule; empty where none does."""
    called = [call.id for call in echo.calls] if echo is not None else []
    given = [result.id for result in results]
    wrong: list[str] = []
    if rule == "call_without_result":
        wrong = [name for name in called if name not in given]
    elif rule == "result_without_call":
        wrong = [name for name in given if name not in called]
    elif rule == "result_twice":
        wrong = [name for name in given if given.count(name) > 1]
    return wrong[0] if wrong else ""
