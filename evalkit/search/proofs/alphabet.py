"""What the model may do in a turn: moves of the scenario language, picked from the channels offered.

The model of the exploration is a free chooser over these moves. Each is a document of the scenario language,
so that what the exploration delivers is what a saved counterexample delivers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Literal

import msgspec

from evalkit.core.tasks import DEFAULT_OUTPUT, Offered, occurs_whole
from evalkit.core.turns import Finish
from evalkit.scenarios.output_schema import matches, typed_output
from evalkit.search.proofs.symmetry import all_shipped
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition, parts_of
from evalkit.strategies.strategy import Strategy

#: Item ids, in the order in which worlds get them; none occurs in the words of a preset.
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
MAX_ITEMS = len(NAMES)
#: The kind of moves that are about two items, in every order.
BATCH = "does one and fails at another"
#: So many keywords are said in every combination.
MAX_KEYWORDS = 4

Document = dict[str, Any]


class Move(msgspec.Struct, frozen=True):
    """One thing that the model may do. Moves of one ``kind`` differ in the item that they are about.

    ``item`` is the place of the only item it is about, -1 where it is about none or several. ``blocks`` says
    that it states a blocker: in so many words, or as a skip with a reason. ``undoes`` that it undoes work.
    ``happens``: it is no turn of the model's but something from outside, ``ended`` a message when the run has
    ended. ``unapproved``: its item waits for an approval. ``then`` is an event that belongs to the turn.
    """

    name: str
    document: Document
    item: int = -1
    blocks: bool = False
    undoes: bool = False
    kind: str = ""
    happens: Literal["", "user", "ended", "leaves", "compact", "approve", "crash"] = ""
    unapproved: bool = False
    then: Document | None = None

    @property
    def script(self) -> list[Document]:
        """The move as a script."""
        return [self.document] if self.then is None else [self.document, self.then]


def item_names(items: int) -> tuple[str, ...]:
    """The ids of a world of so many items. ValueError beyond what there are names for."""
    if not 1 <= items <= MAX_ITEMS:
        raise ValueError(f"items must be from 1 to {MAX_ITEMS}; got {items}")
    return NAMES[:items]


def is_closed(moves: tuple[Move, ...], items: int) -> bool:
    """Whether the moves treat all items alike: each kind that is about items is there for every item."""
    places: dict[str, set[int]] = {}
    for move in moves:
        if move.item >= 0:
            places.setdefault(move.kind, set()).add(move.item)
    batches = sum(move.kind == BATCH for move in moves)
    return all(len(found) == items for found in places.values()) and batches in (0, items * (items - 1))


def alphabet(strategy: Strategy, items: int) -> tuple[Move, ...]:
    """Every move against a strategy in a world of ``items`` items; the plainest come first.

    What only an unusual channel makes different is there where the strategy offers that channel, and each
    keyword and schema that a condition reads is said and filled, whatever the order of the operands.
    """
    folds = {fold.name for fold in strategy.folds}
    own = not all_shipped(strategy)
    moves = moves_for(
        strategy.offers, items, fails="failed" in folds or own, bare_skips="skipped" in folds or own
    )
    return (*moves, *_sayings(strategy, item_names(items)))


def not_covered(strategy: Strategy) -> str:
    """What conditions of a strategy read that no move says, in words; empty where all is said."""
    words, schemas = words_and_schemas(strategy)
    if len(words) > MAX_KEYWORDS:
        return f"it reads {len(words)} keywords, at most {MAX_KEYWORDS} are said in every combination"
    said = {place for _, text in _texts(strategy, NAMES[:1]) for place in _fills(text, schemas)}
    missing = [place for place in range(len(schemas)) if place not in said]
    return f"no value was found of the schema {json.dumps(schemas[missing[0]])[:200]}" if missing else ""


def words_and_schemas(strategy: Strategy) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The keywords and the schemas that conditions read, each once."""
    parts = [part for condition in strategy.conditions for part in parts_of(condition)]
    words = dict.fromkeys(part.word for part in parts if isinstance(part, c.keyword))
    first = output_schema(strategy.done_when) or DEFAULT_OUTPUT
    schemas: list[Any] = []
    for part in parts:
        if isinstance(part, c.typed_output) and (part.schema or first) not in schemas:
            schemas.append(part.schema or first)
    return tuple(words), tuple(schemas)


def output_schema(condition: Condition) -> Any:
    """The schema of the first typed output in a condition; None where there is none of its own."""
    found = (part.schema for part in parts_of(condition) if isinstance(part, c.typed_output))
    return next((schema for schema in found if schema is not None), None)


def _fills(text: str, schemas: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(place for place, schema in enumerate(schemas) if not matches(text, schema))


def _texts(strategy: Strategy, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Texts with every combination of the keywords, plain and as a value of each schema and of all."""
    words, schemas = words_and_schemas(strategy)
    chosen = [some for count in range(len(words[:MAX_KEYWORDS]) + 1) for some in combinations(words, count)]
    for some in chosen:
        said = " ".join(("All is done.", *some))
        beside = f" and {' and '.join(some)}" if some else ""
        if some:
            yield f"with {' and '.join(some)}", said
        values = [typed_output(schema, said, Finish(names)) for schema in schemas]
        objects = [value for value in values if isinstance(value, dict)]
        together = {name: value for found in reversed(objects) for name, value in found.items()}
        for place, value in enumerate([*values, together] if len(objects) > 1 else values):
            which = f"schema {place + 1}" if place < len(values) else "all schemas"
            yield f"with an output of {which}{beside}", json.dumps(value)
            if some and isinstance(value, dict):
                # Where a schema has no place for words, another field may have them.
                yield f"with an output of {which}{beside} in a note", json.dumps({**value, "note": said})


def _sayings(strategy: Strategy, names: tuple[str, ...]) -> Iterator[Move]:
    """What has to be said so that each keyword and schema is met, alone and together, claim or not."""
    words, schemas = words_and_schemas(strategy)
    offered = strategy.offers
    # Said by the moves of the offered channels already.
    known: set[tuple[bool, tuple[str, ...], tuple[int, ...]]] = set()
    if offered.keyword:
        known = {(True, (offered.keyword,), ()), (False, (offered.keyword,), ())}
    if schemas:
        known.add((True, (), _fills(json.dumps(typed_output(schemas[0], "x", Finish(names))), schemas)))
    for name, text in _texts(strategy, names):
        said = tuple(word for word in words if occurs_whole(word, text))
        for claim in ("done", "partial"):
            meets = (claim == "done", said, _fills(text, schemas))
            if meets in known or not (meets[1] or meets[2]):
                continue
            known.add(meets)
            speech: Document = {"say": text, "claim": claim, "channel": "text"}
            yield Move(f"{'claims done' if claim == 'done' else 'speaks'} {name}", speech)
            if claim == "partial" and said and not meets[2]:
                yield Move(f"calls beside words {name}", {"turn": [speech, {"call": "list_items"}]})


def moves_for(
    offers: Offered, items: int, *, fails: bool = True, bare_skips: bool = True
) -> tuple[Move, ...]:
    """Every move against a harness that offers these channels; the plainest come first.

    ``fails`` has the moves that only who looks at failures tells from others, ``bare_skips`` skips without a
    reason.
    """
    names = item_names(items)
    return (*_words(), *_labels(), *_channels(offers), *_items(offers, names, fails, bare_skips))


def witness(names: tuple[str, ...]) -> list[Document]:
    """Moves that show that the work could still be done: the model does all of it and says so."""
    done = {"say": "Every item is done now.", "claim": "done"}
    return [{"call": "list_items"}, {"work": list(names)}, done]


def scripted(moves: Sequence[Move], names: tuple[str, ...], gated: int) -> list[Document]:
    """Moves as a script. Each of the first ``gated`` items is approved once no move wants it unapproved."""
    last = {move.item: at for at, move in enumerate(moves) if move.unapproved}
    script: list[Document] = []
    for at in range(-1, len(moves)):
        if at >= 0:
            script.extend(moves[at].script)
        approved = [name for place, name in enumerate(names[:gated]) if last.get(place, -1) == at]
        if approved:
            script.append({"approve": approved})
    return script


def _words() -> Iterator[Move]:
    """Words, silence, and the protocol states."""
    yield Move("reports progress", {"say": "Some of the items are done.", "claim": "partial"})
    yield Move("lists the items", {"call": "list_items"})
    yield Move("says something", {"say": "Looking into it."})
    yield Move("claims done in words", {"say": "Everything is done.", "claim": "done", "channel": "text"})
    yield Move("states a blocker", {"say": "Access is denied.", "claim": "blocked"}, blocks=True)
    yield Move("only thinks", {"think": "What comes next?"})
    yield Move("thinks, then speaks", {"turn": [{"think": "What comes next?"}, {"say": "Looking into it."}]})
    yield Move("says nothing", {"empty": True})
    yield Move("is paused", {"pause": {}})
    yield Move("is cut off in its words", {"truncate": "text"})
    yield Move("is cut off in a claim of done", {"truncate": "text", "claim": "done"})
    yield Move("is cut off by the context window", {"truncate": "text", "limit": "context_window"})
    yield Move("is cut off in a call", {"truncate": "call"})
    yield Move("refuses", {"refuse": {}})
    yield Move("refuses to show its reasoning", {"refuse": {"category": "reasoning_extraction"}})


def _labels() -> Iterator[Move]:
    """Stop labels that contradict the content, and ones that nobody knows."""
    yield Move("speaks under the label tool_use", {"say": "Looking into it.", "stop": "tool_use"})
    yield Move("calls under the label end_turn", {"call": "list_items", "stop": "end_turn"})
    yield Move("calls under the label pause_turn", {"call": "list_items", "stop": "pause_turn"})
    yield Move("speaks under an unknown label", {"say": "Looking into it.", "stop": "mystery"})
    yield Move("calls under an unknown label", {"call": "list_items", "stop": "mystery"})
    claim: Document = {"say": "All is done.", "claim": "done", "channel": "text"}
    yield Move("claims done under no label", {**claim, "stop": None})


def _channels(offers: Offered) -> Iterator[Move]:
    """What the offered channels add and is about no single item."""
    if offers.keyword:
        yield Move(
            "claims done with the keyword", {"say": "All is done.", "claim": "done", "channel": "keyword"}
        )
        report = "I will write {keyword} when all is done."
        yield Move("reports with the keyword in it", {"say": report, "claim": "partial"})
        yield Move(
            "calls beside the keyword",
            {"turn": [{"say": "{keyword} comes later.", "claim": "partial"}, {"call": "list_items"}]},
        )
    if offers.output:
        yield Move("gives the typed output", {"say": "All is done.", "claim": "done", "channel": "output"})
        yield Move("gives an output of another shape", {"output": {"note": 1}, "claim": "partial"})
    if offers.checklist:
        yield Move("ticks everything", {"tick": "all"})
    if offers.finish:
        yield Move("finishes with everything", {"finish": {"completed": "all"}})
        yield Move("finishes with nothing", {"finish": {"completed": []}})


def _items(offers: Offered, names: tuple[str, ...], fails: bool, bare_skips: bool) -> Iterator[Move]:
    """What can be done about each item; one kind of move after the other."""
    plain: Document = {"ticks": False} if offers.checklist else {}

    def each(name: str, make: Callable[[str], Document], **marks: Any) -> Iterator[Move]:
        for place, item in enumerate(names):
            yield Move(name.replace("ITEM", item), make(item), place, kind=name, **marks)

    yield from each("does ITEM", lambda item: {"work": [item], **plain})
    if offers.checklist:
        yield from each("does and ticks ITEM", lambda item: {"work": [item]})
        yield from each("ticks ITEM", lambda item: {"tick": [item]})
    yield from each(
        "does ITEM wrongly, success reported", lambda item: {"work": [item], "reply": {"effect": "none"}}
    )
    yield from each(
        "does ITEM, an error reported",
        lambda item: {"work": [item], **plain, "reply": {"error": True, "effect": "applied"}},
    )
    if fails:
        yield from each("fails to do ITEM", lambda item: {"work": [item], **plain, "reply": {"error": True}})
        yield from each("reads ITEM", lambda item: {"call": "read_item", "with": {"item": item}})
    yield from each("undoes ITEM", lambda item: {"undo": [item]}, undoes=True)
    yield from each(
        "is cut off in a call for ITEM that parses",
        lambda item: {"truncate": {"work": item}, "parses": True},
    )
    yield from each("skips ITEM in words", lambda item: _skip(item, "It is not there."), blocks=True)
    if bare_skips:
        yield from each("skips ITEM in words without a reason", lambda item: _skip(item, ""))
    if offers.finish:
        yield from _finishes(names)
        yield from each(
            "does ITEM and finishes in one turn",
            lambda item: {"turn": [{"work": [item], **plain}, {"finish": {"completed": "all"}}]},
        )


def _skip(item: str, reason: str) -> Document:
    finish: Document = {"skipped": [item], "reason": reason} if reason else {"skipped": [item]}
    return {"say": "Leaving one out.", "claim": "partial", "finish": finish}


def _finishes(names: tuple[str, ...]) -> Iterator[Move]:
    for place, item in enumerate(names):
        rest = [name for name in names if name != item]
        skips: Document = {"completed": rest, "skipped": [item]}
        excused: Document = {**skips, "reason": "It is not there."}
        yield Move(f"finishes without {item}", {"finish": {"completed": rest}}, place, kind="finish without")
        yield Move(f"finishes, {item} skipped, no reason", {"finish": skips}, place, kind="finish, skip")
        yield Move(
            f"finishes, {item} skipped with a reason",
            {"finish": excused},
            place,
            blocks=True,
            kind="finish, excuse",
        )
