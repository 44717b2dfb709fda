"""Values as text for the store: ASCII JSON, so that no text a model may write is refused or changed."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import msgspec

from evalkit.core.requests import Request, Result
from evalkit.core.turns import Block, Claim, Finish, StopReason, Turn, make_turn
from evalkit.loop.state import State

T = TypeVar("T")

_encode = json.JSONEncoder(separators=(",", ":")).encode


class _KeptTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    content: tuple[Block, ...]
    stop: StopReason
    native: str | None = None
    category: str | None = None
    claim: Claim = "none"
    told: Finish | None = None


class _KeptRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """``echo`` is the number of the turn that is sent back, from 1."""

    echo: int | None = None
    results: tuple[Result, ...] = ()
    text: str | None = None
    limit: int = Request().limit
    model: str = Request().model
    again: bool = False
    poll: bool = False
    shortened: bool = False


def dump(value: Any) -> str:
    """A value of our types as ASCII JSON."""
    return _encode(msgspec.to_builtins(value))


def load(text: str, kind: type[T]) -> T:
    """What :func:`dump` wrote."""
    return msgspec.convert(json.loads(text), kind)


def dump_turn(turn: Turn) -> str:
    """A turn without what follows from its content."""
    return dump(_KeptTurn(turn.content, turn.stop, turn.native, turn.category, turn.claim, turn.told))


def load_turn(text: str) -> Turn:
    """What :func:`dump_turn` wrote."""
    kept = load(text, _KeptTurn)
    return make_turn(
        kept.content,
        kept.stop,
        native=kept.native,
        category=kept.category,
        claim=kept.claim,
        told=kept.told,
    )


def dump_request(request: Request, echo: int | None) -> str:
    """A request; ``echo`` is the number of the turn that it sends back."""
    return dump(
        _KeptRequest(
            echo,
            request.results,
            request.text,
            request.limit,
            request.model,
            request.again,
            request.poll,
            request.shortened,
        )
    )


def echo_of(request: Request, turns: int, before: int | None) -> int | None:
    """The number of the turn that a request sends back, after ``turns`` turns.

    What asks again sends back what the request before did, whose echo was ``before``.
    """
    if request.echo is None:
        return None
    return before if request.again else turns


def load_request(text: str, turns: Sequence[Turn]) -> tuple[Request, int | None]:
    """What :func:`dump_request` wrote, given the turns delivered before, and the number of its echo."""
    kept = load(text, _KeptRequest)
    echo = None if kept.echo is None else turns[kept.echo - 1]
    request = Request(
        echo, kept.results, kept.text, kept.limit, kept.model, kept.again, kept.poll, kept.shortened
    )
    return request, kept.echo


def dump_state(state: State) -> str:
    """The loop's state. TypeError names a fold memory of a kind that cannot be kept."""
    return _encode([_packed(value) for value in msgspec.structs.astuple(state)])


def load_state(text: str) -> State:
    """What :func:`dump_state` wrote."""
    values: list[Any] = [_unpacked(value) for value in json.loads(text)]
    return State(*values)


def _packed(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"tuple": [_packed(inner) for inner in value]}
    if isinstance(value, frozenset):
        return {"set": sorted((_packed(inner) for inner in value), key=repr)}
    raise TypeError(
        f"a fold's memory of type {type(value).__name__} cannot be kept; allowed: None, bool, int, float,"
        " str, and tuples and frozensets of them"
    )


def _unpacked(value: Any) -> Hashable:
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        values = [_unpacked(each) for each in inner]
        return tuple(values) if kind == "tuple" else frozenset(values)
    return value  # type: ignore[no-any-return]
