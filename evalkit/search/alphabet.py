"""What the model may do in a turn: moves of the scenario language, picked from the channels offered.

The model of the exploration is a free chooser over these moves. Each is a document of the scenario language,
so that what the exploration delivers is what a saved counterexample delivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from evalkit.core.tasks import Offered
from evalkit.strategies.strategy import Strategy

#: Item ids, in the order in which worlds get them; none occurs in the words of a preset.
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
MAX_ITEMS = len(NAMES)

Document = dict[str, Any]


class Move(msgspec.Struct, frozen=True):
    """One thing that the model may do. Moves of one ``kind`` differ in the item that they are about.

    ``item`` is the place of the only item it is about, -1 where it is about none or several. ``blocks`` says
    that it states a blocker: in so many words, or as a skip with a reason. ``undoes`` that it undoes work.
    """

    name: str
    document: Document
    item: int = -1
    blocks: bool = False
    undoes: bool = False
    kind: str = ""


def item_names(items: int) -> tuple[str, ...]:
    """The ids of a world of so many items. ValueError beyond what there are names for."""
    if not 1 <= items <= MAX_ITEMS:
        raise ValueError(f"items must be from 1 to {MAX_ITEMS}; got {items}")
    return NAMES[:items]


def is_closed(moves: tuple[Move, ...], items: int) -> bool:
    """Whether the moves treat all items alike: each kind that is about an item is there for every item."""
    places: dict[str, set[int]] = {}
    for move in moves:
        if move.item >= 0:
            places.setdefault(move.kind, set()).add(move.item)
    return all(len(found) == items for found in places.values())


def alphabet(strategy: Strategy, items: int) -> tuple[Move, ...]:
    """Every move against a strategy in a world of ``items`` items; the plainest come first.

    What only an unusual channel makes different is there where the strategy offers that channel.
    """
    folds = {fold.name for fold in strategy.folds}
    open_folds = any(getattr(fold, "holds", "open") == "open" for fold in strategy.folds)
    return moves_for(
        strategy.offers, items, fails="failed" in folds or open_folds, bare_skips="skipped" in folds
    )


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

    def each(name: str, make: Callable[[str], Document], **marks: bool) -> Iterator[Move]:
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
