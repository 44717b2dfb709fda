"""The larger alphabet: several calls in a turn, effects that come late, and what happens from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from evalkit.core.tasks import Offered
from evalkit.search.proofs.alphabet import BATCH, Document, Move, item_names


def larger_moves(offers: Offered, items: int, *, worker: bool = False) -> tuple[Move, ...]:
    """What the larger alphabet adds for a harness that offers these channels; the plainest come first.

    Each item waits for an approval. ``worker``: the harness can be killed and resumed.
    """
    names = item_names(items)
    plain: Document = {"ticks": False} if offers.checklist else {}
    return (
        *_batches(names, plain),
        *_late(names, plain),
        *(_two_finishes(names) if offers.finish else ()),
        *_unapproved(names, plain),
        *_outside(names),
        *(_crashes(names, plain) if worker else ()),
    )


def _each(names: tuple[str, ...], name: str, make: Callable[[str], Document]) -> Iterator[Move]:
    for place, item in enumerate(names):
        yield Move(name.replace("ITEM", item), make(item), place, kind=name)


def _batches(names: tuple[str, ...], plain: Document) -> Iterator[Move]:
    """Several calls in one turn: of which one fails, of which one is cut off, beside a refusal."""

    def work(item: str) -> Document:
        return {"work": [item], **plain}

    yield Move("does everything in one turn", {"work": list(names), "parallel": True, **plain})
    for first, second in permutations(names, 2):
        fails = {**work(second), "reply": {"error": True}}
        both: Document = {"turn": [work(first), fails]}
        yield Move(f"does {first} and fails at {second} in one turn", both, kind=BATCH)
    yield from _each(
        names,
        "is cut off in a batch after a call for ITEM",
        lambda item: {"turn": [work(item), {"truncate": "call"}]},
    )
    yield from _each(
        names,
        "reads ITEM and is cut off in a call for it that parses",
        lambda item: {
            "turn": [
                {"call": "read_item", "with": {"item": item}},
                {"truncate": {"work": item}, "parses": True},
            ]
        },
    )
    yield from _each(
        names, "refuses in a turn with a call for ITEM", lambda item: {"turn": [work(item), {"refuse": {}}]}
    )


def _late(names: tuple[str, ...], plain: Document) -> Iterator[Move]:
    yield from _each(
        names,
        "does ITEM, its effect comes late",
        lambda item: {"work": [item], **plain, "reply": {"effect": "late"}},
    )


def _two_finishes(names: tuple[str, ...]) -> Iterator[Move]:
    nothing: Document = {"finish": {"completed": []}}
    everything: Document = {"finish": {"completed": "all"}}
    yield Move("finishes with nothing and with everything in one turn", {"turn": [nothing, everything]})
    yield Move("finishes with everything and with nothing in one turn", {"turn": [everything, nothing]})


def _unapproved(names: tuple[str, ...], plain: Document) -> Iterator[Move]:
    name = "does ITEM, which nobody has approved"
    for place, item in enumerate(names):
        work: Document = {"work": [item], **plain}
        yield Move(name.replace("ITEM", item), work, place, kind=name, unapproved=True)


def _outside(names: tuple[str, ...]) -> Iterator[Move]:
    """What happens to a run between its turns, and a message when it has ended."""
    said: Document = {"text": "How far are you?"}
    yield Move("is written to by the user", {"user": {**said, "when": "between_turns"}}, happens="user")
    leaves: Document = {"user": {**said, "when": "between_turns", "closes": True}}
    yield Move("is written to by the user, who leaves", leaves, happens="leaves")
    yield Move("is written to by the user after the end", {"user": said}, happens="ended")
    yield Move("has its conversation compacted", {"compact": True}, happens="compact")
    for place, item in enumerate(names):
        yield Move(f"sees {item} approved", {"approve": [item]}, place, kind="approval", happens="approve")


def _crashes(names: tuple[str, ...], plain: Document) -> Iterator[Move]:
    """A kill and a resumption: between two requests, and between a call's effect and its answer."""
    between: Document = {"crash": {"at": "answered"}}
    yield Move("sees the worker killed before its next request", between, happens="crash")
    for name, reply in (
        ("does ITEM, the worker killed before the answer", {}),
        ("does ITEM, its effect to come late, the worker killed", {"reply": {"effect": "late"}}),
    ):
        for place, item in enumerate(names):
            yield Move(
                name.replace("ITEM", item),
                {"work": [item], **plain, **reply},
                place,
                kind=name,
                then={"crash": {"at": "tool"}},
            )


def decided(items: int) -> tuple[Move, ...]:
    """Work on gated items, with what a person decides about it."""
    found: list[Move] = []
    for name, decision in (
        ("does ITEM, which a person allows", "allow"),
        ("does ITEM, which a person refuses", "refuse"),
    ):
        for place, item in enumerate(item_names(items)):
            said = name.replace("ITEM", item)
            found.append(Move(said, {"work": [item]}, place, kind=name, then={"approve": {decision: [item]}}))
    return tuple(found)
