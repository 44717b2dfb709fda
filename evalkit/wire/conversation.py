"""From a full request body to the join it stands for.

A request repeats the whole conversation, or names an answer whose conversation the server holds. What moves a
script on is only what it adds to the last turn that was delivered. The server remembers a digest and a count,
not the conversation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.requests import DEFAULT_LIMIT, Request, Result
from evalkit.core.turns import Block, Call, ServerCall, Text, Thinking, Turn, parse_arguments
from evalkit.wire.answers import rebuilt
from evalkit.wire.incoming import Incoming, Piece

Kind: TypeAlias = Literal["first", "extends", "again", "same_answer", "compacted", "new"]


class Point(msgspec.Struct, frozen=True):
    """A place in a conversation: the digest of all that was said up to it, and how many things that were."""

    chain: bytes = b""
    count: int = 0


class Sent(msgspec.Struct, frozen=True):
    """The last turn that was sent: as the script has it, as the wire has it, and the way between the ids."""

    turn: Turn
    wire: Turn
    id: str
    ids: Mapping[str, str]


class Memory(msgspec.Struct):
    """What the server remembers of an episode's conversation.

    ``answered`` is the point of the last request that a turn answered, ``asked`` that of the last request at
    all, ``request`` how the script saw it. ``base`` is where the last request began: at the answer
    ``base_id``, or at the beginning. ``fault`` says that the last answer was no turn, ``delivered`` that the
    last turn reached its client whole.
    """

    answered: Point = Point()
    asked: Point = Point()
    base: Point = Point()
    base_id: str | None = None
    settings: tuple[object, ...] = ()
    request: Request | None = None
    sent: Sent | None = None
    fault: bool = False
    delivered: bool = True


class Joined(msgspec.Struct, frozen=True):
    """A request as what it adds. ``point`` is where the conversation stands with it.

    ``pieces`` is what it adds, for the rules of the join; ``complete`` that they are the whole conversation.
    """

    kind: Kind
    request: Request
    point: Point
    pieces: tuple[Piece, ...] = ()
    complete: bool = False


def said(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that make up a conversation: no instructions, no thinking, no blank text.

    Clients leave thinking of earlier turns out, and the APIs refuse blank text.
    """
    return [
        piece
        for piece in pieces
        if piece.role != "system"
        and not isinstance(piece.block, Thinking)
        and not (isinstance(piece.block, Text) and not piece.block.text.strip())
    ]


def speaks(turn: Turn) -> bool:
    """Whether a turn has anything that a request can send back."""
    return any(
        isinstance(block, Call | ServerCall) or (isinstance(block, Text) and bool(block.text.strip()))
        for block in turn.content
    )


def _step(chain: bytes, piece: Piece) -> bytes:
    block = piece.block
    if isinstance(block, Text):
        key = f"{piece.role[0]}{block.text}"
    elif isinstance(block, Call):
        key = f"c{block.id}\0{block.tool}"
    elif isinstance(block, Result):
        key = f"r{block.id}\0{block.text}"
    elif isinstance(block, ServerCall):
        key = f"s{block.id}"
    else:
        key = ""
    return hashlib.blake2b(chain + key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def walk(start: Point, pieces: Sequence[Piece]) -> Point:
    """The point that is reached by saying ``pieces`` from ``start``."""
    chain = start.chain
    for piece in pieces:
        chain = _step(chain, piece)
    return Point(chain, start.count + len(pieces))


def settings_of(incoming: Incoming) -> tuple[object, ...]:
    """What may make a request of the same conversation another one. Streaming is not of it."""
    return (incoming.limit, incoming.model, incoming.tools, incoming.choice)


def join(memory: Memory, incoming: Incoming, *, retried: bool) -> Joined:
    """What a request adds to the conversation that the server remembers.

    ``retried`` says that the client marks the request as a repetition of one it has no answer to.
    """
    pieces = said(incoming.pieces)
    limit = incoming.limit if incoming.limit is not None else DEFAULT_LIMIT
    plain = Request(limit=limit, model=incoming.model)
    start = beginning(memory, incoming.continues)
    point = walk(start, pieces)
    if memory.request is None:
        return Joined("first", plain, point, tuple(pieces), True)
    sent = memory.sent
    goes_on = sent is not None and incoming.continues == sent.id
    repeated = point == memory.asked and not (goes_on and memory.base_id != incoming.continues)
    if repeated and memory.settings == settings_of(incoming):
        lost = not memory.fault and (retried or not memory.delivered)
        again = msgspec.structs.replace(memory.request, again=True)
        return Joined("same_answer" if lost else "again", again, point)
    if sent is None:
        return Joined("first", plain, point, tuple(pieces), True)
    if goes_on:
        return Joined("extends", _request(sent, plain, pieces, held=True), point, tuple(pieces))
    base = memory.answered
    length = base.count - start.count
    if 0 <= length <= len(pieces) and walk(start, pieces[:length]) == base:
        tail = pieces[length:]
        return Joined("extends", _request(sent, plain, tail, held=False), point, tuple(tail))
    place = _find(sent.wire, pieces)
    if place is not None:
        tail = pieces[place:]
        return Joined("compacted", _request(sent, plain, tail, held=False), point, tuple(tail))
    texts = [piece.block.text for piece in pieces if piece.role == "user" and isinstance(piece.block, Text)]
    request = msgspec.structs.replace(plain, text="\n".join(texts[1:]) or None)
    return Joined("new", request, point, tuple(pieces), True)


def beginning(memory: Memory, continues: str | None) -> Point:
    """Where a request begins: at the beginning, or behind the answer that it goes on from."""
    if continues is None:
        return Point()
    if memory.sent is not None and continues == memory.sent.id:
        turn = [Piece("assistant", block, 0) for block in memory.sent.wire.content]
        return walk(memory.answered, said(turn))
    if continues == memory.base_id:
        return memory.base
    return Point(continues.encode(), 0)


def _request(sent: Sent, plain: Request, tail: Sequence[Piece], *, held: bool) -> Request:
    """The join in the script's own terms."""
    spoken = [piece for piece in tail if piece.role == "assistant"]
    results = tuple(
        Result(sent.ids.get(piece.block.id, piece.block.id), piece.block.text, piece.block.error)
        for piece in tail
        if isinstance(piece.block, Result)
    )
    texts = [piece.block.text for piece in tail if piece.role == "user" and isinstance(piece.block, Text)]
    echo: Turn | None = None
    if held or (not spoken and texts and not speaks(sent.wire)):
        echo = sent.turn
    elif spoken:
        blocks = [_own(piece.block, sent.ids) for piece in spoken if not isinstance(piece.block, Result)]
        echo = sent.turn if _is(sent.wire, spoken) else rebuilt(sent.turn, tuple(blocks))
    return msgspec.structs.replace(plain, echo=echo, results=results, text="\n".join(texts) or None)


def _own(block: Block, ids: Mapping[str, str]) -> Block:
    """A block with the script's own id."""
    if isinstance(block, Call):
        return Call(ids.get(block.id, block.id), block.tool, block.arguments)
    if isinstance(block, ServerCall):
        return ServerCall(ids.get(block.id, block.id), block.name, block.result)
    return block


def _is(turn: Turn, spoken: Sequence[Piece]) -> bool:
    """Whether the assistant's pieces, or the first message of them, are a turn sent back."""
    first = [piece for piece in spoken if piece.at == spoken[0].at]
    return any(_same(turn, [piece.block for piece in group]) for group in (spoken, first))


def _same(turn: Turn, blocks: Sequence[Block | Result]) -> bool:
    """Whether blocks are those of a turn, as far as any dialect can send them back.

    Arguments that were cut in their JSON, thinking and blank text are not compared; texts are taken together.
    """
    calls = [block for block in blocks if isinstance(block, Call)]
    if [(call.id, call.tool) for call in calls] != [(call.id, call.tool) for call in turn.calls]:
        return False
    for sent, back in zip(turn.calls, calls, strict=True):
        value = parse_arguments(sent.arguments)
        if value is not None and parse_arguments(back.arguments) != value:
            return False
    servers = [block.id for block in blocks if isinstance(block, ServerCall)]
    if servers != [block.id for block in turn.content if isinstance(block, ServerCall)]:
        return False
    return _words(blocks) == _words(turn.content)


def _words(blocks: Sequence[Block | Result]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text.strip())


def _find(turn: Turn, pieces: Sequence[Piece]) -> int | None:
    """Where the last turn stands in a conversation that was rewritten before it; None where it is gone."""
    end = len(pieces)
    while end:
        start = end
        while start and pieces[start - 1].role == "assistant":
            start -= 1
        if start < end and _is(turn, pieces[start:end]):
            return start
        end = start if start < end else end - 1
    return None
