"""From a full request body to the join it stands for.

A request repeats the whole conversation, or names an answer whose conversation the server holds. What moves a
script on is only what it adds to a turn that was delivered. The server remembers a digest and a count of each
answered request, not the conversation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.requests import DEFAULT_LIMIT, Request, Result
from evalkit.core.turns import (
    Block,
    Call,
    ServerCall,
    Text,
    Thinking,
    Turn,
    count_tokens,
    parse_arguments,
)
from evalkit.wire.answers import encode_json, rebuilt
from evalkit.wire.incoming import Incoming, Piece

Kind: TypeAlias = Literal["first", "extends", "again", "same_answer", "back", "compacted", "new"]


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


class Held(msgspec.Struct, frozen=True):
    """An answered request: where the conversation stood with it, the turn, the answered one before it."""

    point: Point
    sent: Sent
    parent: int


class Memory(msgspec.Struct):
    """What the server remembers of an episode's conversation.

    ``turns`` are the answered requests in order, ``asked`` is the point of the last request at all,
    ``request`` how the script saw it. ``base`` is where the last request began: at the answer ``base_id``, or
    at the beginning. ``fault`` says that the last answer was no turn, ``delivered`` that the last turn
    reached its client whole. ``prompt`` is what the conversation began with, ``summaries`` are those that the
    model gave, ``summed`` says that it gave one since the last turn.
    """

    turns: list[Held] = []
    asked: Point = Point()
    base: Point = Point()
    base_id: str | None = None
    settings: tuple[object, ...] = ()
    request: Request | None = None
    fault: bool = False
    delivered: bool = True
    prompt: str = ""
    summaries: tuple[str, ...] = ()
    summed: bool = False
    #: Whether its client was killed since the last turn: what it leaves out then it never kept.
    died: bool = False

    @property
    def sent(self) -> Sent | None:
        """The last turn that was sent."""
        return self.turns[-1].sent if self.turns else None

    def number(self, name: str | None) -> int:
        """The number of the turn with this answer's id; 0 where there is none."""
        for place in range(len(self.turns), 0, -1):
            if self.turns[place - 1].sent.id == name:
                return place
        return 0


class Joined(msgspec.Struct, frozen=True):
    """A request as what it adds. ``point`` is where the conversation stands with it.

    ``pieces`` is what it adds, for the rules of the join; ``complete`` that they are the whole conversation.
    ``last`` is the turn that it goes on from, ``parent`` its number.
    """

    kind: Kind
    request: Request
    point: Point
    pieces: tuple[Piece, ...] = ()
    complete: bool = False
    last: Sent | None = None
    parent: int = 0


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


def _keys(pieces: Sequence[Piece]) -> Iterator[str]:
    """What each piece says of a conversation: ids say nothing, an assistant's words only that it spoke."""
    spoke = -1
    for piece in pieces:
        block, before = piece.block, spoke
        spoke = -1
        if isinstance(block, Call):
            value = parse_arguments(block.arguments)
            written = block.arguments if value is None else encode_json(value).decode()
            yield f"c{block.tool}\0{written}"
        elif isinstance(block, Result):
            yield f"r{block.text}"
        elif isinstance(block, ServerCall):
            yield f"s{block.name}"
        elif isinstance(block, Text) and piece.role == "user":
            yield f"u{block.text}"
        else:
            # Clients put the texts of a message together.
            spoke = piece.at
            yield "" if before == piece.at else "a"


def _step(chain: bytes, key: str) -> bytes:
    if not key:
        return chain
    return hashlib.blake2b(chain + key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def walk(start: Point, pieces: Sequence[Piece]) -> Point:
    """The point that is reached by saying ``pieces`` from ``start``."""
    chain = start.chain
    for key in _keys(pieces):
        chain = _step(chain, key)
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
    sent, turns = memory.sent, len(memory.turns)
    same = point == memory.asked and memory.settings == settings_of(incoming)
    if memory.request is None or sent is None:
        if memory.request is not None and same:
            return Joined("again", msgspec.structs.replace(memory.request, again=True), point)
        return Joined("first", _first(plain, pieces, memory.summaries), point, tuple(pieces), True)
    goes_on = incoming.continues == sent.id
    lost = not memory.fault and (retried or not memory.delivered)
    if same and not (goes_on and memory.base_id != incoming.continues):
        again = msgspec.structs.replace(memory.request, again=True)
        if lost:
            return Joined("same_answer", again, point, (), False, sent, turns)
        if memory.fault or not _holds(sent.turn):
            return Joined("again", again, point, (), False, sent, turns)
    if goes_on:
        request = _request(sent, plain, pieces, held=True)
        return Joined("extends", request, point, tuple(pieces), False, sent, turns)
    number, length = _longest(memory.turns, start, pieces)
    if incoming.continues is not None and not number:
        number = memory.number(incoming.continues)
    if number:
        at = memory.turns[number - 1]
        tail = pieces[length:]
        never_kept = memory.died and number == turns and at.sent.turn.calls
        if never_kept and tail and all(isinstance(piece.block, Text) for piece in tail):
            # Frameworks put words of their own, as the assistant's too, where a turn is missing.
            return _anew(memory, plain, start, pieces, point, at.parent)
        held = incoming.continues == at.sent.id
        dropped = number == turns and bool(tail or memory.fault or not _holds(at.sent.turn))
        dropped = dropped and not memory.summed
        goes_on = _goes_on(at.sent.wire, tail)
        rewritten = goes_on and number < turns and _rewritten(memory, pieces, number, length)
        if held or (goes_on and not rewritten) or (dropped and _compacted(memory, plain, tail) is None):
            request = _request(at.sent, plain, tail, held=held)
            if number == turns:
                return Joined("extends", request, point, tuple(tail), False, sent, turns)
            request = msgspec.structs.replace(request, after=number)
            return Joined("back", request, point, tuple(tail), False, at.sent, number)
    compacted = _compacted(memory, plain, pieces)
    if compacted is not None:
        return Joined("compacted", compacted[0], point, tuple(compacted[1]), False, sent, turns)
    if memory.summed:
        # What it makes of a summary that cannot be recognised, an empty one, is its own matter.
        history = sum(map(_tokens, pieces[1:]))
        request = msgspec.structs.replace(plain, shortened=True, history=history)
        return Joined("compacted", request, point, tuple(pieces), True, sent, turns)
    if number and length == len(pieces):
        # An earlier request, or the last one although its turn was delivered: the model decides anew.
        return _anew(memory, plain, start, pieces, point, memory.turns[number - 1].parent)
    kept = sum(_tokens(piece) for piece in pieces[1:] if not _is_users(piece))
    own = not any(memory.prompt in piece.block.text for piece in pieces if isinstance(piece.block, Text))
    request = msgspec.structs.replace(
        _first(plain, pieces, memory.summaries), lost=True, shortened=True, history=kept, beside=own
    )
    return Joined("new", request, point, tuple(pieces), True)


def prompt_of(pieces: Sequence[Piece]) -> str:
    """The words that a conversation begins with."""
    return next((p.block.text for p in said(pieces) if p.role == "user" and isinstance(p.block, Text)), "")


def _holds(turn: Turn) -> bool:
    """Whether a turn has content that a harness knows once it was delivered."""
    return turn.kind in ("content", "unknown") and speaks(turn)


def _first(plain: Request, pieces: Sequence[Piece], summaries: tuple[str, ...]) -> Request:
    """The first request of a conversation: what the user says beside the prompt, a summary aside."""
    texts = [piece.block.text for piece in pieces if piece.role == "user" and isinstance(piece.block, Text)]
    summed = [text for text in texts[1:] if text in summaries]
    words = "\n".join(text for text in texts[1:] if text not in summaries) or None
    request = msgspec.structs.replace(plain, text=words)
    if not summed:
        return request
    return msgspec.structs.replace(request, shortened=True, history=sum(map(count_tokens, summed)))


def _longest(turns: Sequence[Held], start: Point, pieces: Sequence[Piece]) -> tuple[int, int]:
    """The answered request that pieces equal or extend, the longest, and its length here.

    Of several with the same words it is the newest, unless an older one's turn is what follows.
    """
    known: dict[bytes, list[int]] = {}
    for number, held in enumerate(turns, 1):
        known.setdefault(held.point.chain, []).append(number)
    found, length, chain = known.get(start.chain, []) if start.chain else [], 0, start.chain
    for place, key in enumerate(_keys(pieces), 1):
        chain = _step(chain, key)
        if key and chain in known:
            found, length = known[chain], place
    tail = pieces[length:]
    going_on = [number for number in found if _goes_on(turns[number - 1].sent.wire, tail)]
    return (going_on or found or [0])[-1], length


def _goes_on(turn: Turn, tail: Sequence[Piece]) -> bool:
    """Whether what follows an answered request begins with the turn that answered it."""
    end = 0
    while end < len(tail) and tail[end].role == "assistant":
        end += 1
    return bool(end) and _is(turn, tail[:end])


def _anew(
    memory: Memory, plain: Request, start: Point, pieces: Sequence[Piece], point: Point, parent: int
) -> Joined:
    """A request that was answered, made again: it goes on from the answered one before it."""
    if not parent:
        request = msgspec.structs.replace(_first(plain, pieces, memory.summaries), after=0)
        return Joined("back", request, point, tuple(pieces), True)
    at = memory.turns[parent - 1]
    held = start.chain == walk(at.point, _turn(at)).chain
    length = 0 if held else _longest(memory.turns[:parent], start, pieces)[1]
    tail = pieces[length:]
    request = msgspec.structs.replace(_request(at.sent, plain, tail, held=held), after=parent)
    return Joined("back", request, point, tuple(tail), False, at.sent, parent)


def _compacted(
    memory: Memory, plain: Request, pieces: Sequence[Piece]
) -> tuple[Request, Sequence[Piece]] | None:
    """A conversation that was shortened and ends in the last turn, or holds a summary that was given.

    The last turn may have been left out where it was cut off or refused.
    """
    sent = memory.sent
    assert sent is not None
    place = _stands(memory, pieces)[1]
    if place is None:
        summed = [
            number
            for number, piece in enumerate(pieces, 1)
            if isinstance(piece.block, Text) and any(text in piece.block.text for text in memory.summaries)
        ]
        if not summed:
            return None
        place = summed[-1]
    tail = pieces[place:]
    history = sum(map(_tokens, pieces[1:place]))
    request = _request(sent, plain, tail, held=False)
    return msgspec.structs.replace(request, shortened=True, history=history), tail


def _rewritten(memory: Memory, pieces: Sequence[Piece], number: int, length: int) -> bool:
    """Whether what extends an earlier request differs behind it, and ends where the harness stands."""
    stands, place = _stands(memory, pieces)
    if place is None:
        return False
    end = length
    while end < len(pieces) and pieces[end].role == "assistant":
        end += 1
    return place >= end if stands == len(memory.turns) else stands >= number


def _stands(memory: Memory, pieces: Sequence[Piece]) -> tuple[int, int | None]:
    """The newest turn that a harness may stand at, and where what follows it begins; None where it is gone.

    That is the last one or, where it was cut off or refused and left out, the one before it, its answers too.
    """
    number = len(memory.turns)
    assert memory.sent is not None
    place = _find(memory.sent.wire, pieces)
    while place is None and number > 1 and memory.turns[number - 1].sent.turn.kind in ("cut_off", "refusal"):
        number -= 1
        place = _find(memory.turns[number - 1].sent.wire, pieces)
        if place is not None:
            while place < len(pieces) and not _is_users(pieces[place]):
                place += 1
    return number, place


def _is_users(piece: Piece) -> bool:
    return piece.role == "user" and isinstance(piece.block, Text)


def _tokens(piece: Piece) -> int:
    """Tokens of a piece, by the stated counter."""
    block = piece.block
    if isinstance(block, Call):
        return count_tokens(block.tool) + count_tokens(block.arguments)
    if isinstance(block, ServerCall):
        return count_tokens(block.name) + count_tokens(block.result or "")
    return count_tokens(block.text)


def _turn(held: Held) -> list[Piece]:
    """An answer's turn as a request sends it back."""
    return said([Piece("assistant", block, 0) for block in held.sent.wire.content])


def beginning(memory: Memory, continues: str | None) -> Point:
    """Where a request begins: at the beginning, or behind the answer that it goes on from."""
    if continues is None:
        return Point()
    number = memory.number(continues)
    if number:
        held = memory.turns[number - 1]
        return walk(held.point, _turn(held))
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
