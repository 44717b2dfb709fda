"""One small declaration of each world, for tests that hold for all of them."""

from __future__ import annotations

from typing import Any

from evalkit.worlds import World, WorldSpec, make_world

THREE_FILES = {
    "first": {"exists": "out/first.txt"},
    "second": {"contains": {"path": "out/second.txt", "text": "two"}},
    "third": {"exists": "out/third.txt", "run": "test -s out/third.txt"},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "items": {},
    "ledger": {},
    "inbox": {"replies": ["second"]},
    "files": {"checks": THREE_FILES, "work": {"third": [{"run": "mkdir -p out && echo 3 > out/third.txt"}]}},
    "repo": {},
}
NAMES = {"repo": ("test_first", "test_second", "test_third")}
KINDS = tuple(OPTIONS)


def names(kind: str) -> tuple[str, ...]:
    """The three items of a kind's declaration."""
    return NAMES.get(kind, ("first", "second", "third"))


def declared(kind: str, **fields: Any) -> WorldSpec:
    """A declaration with three items; ``options`` come on top of the kind's own."""
    options = {**OPTIONS[kind], **fields.pop("options", {})}
    return WorldSpec(kind, **{"items": names(kind), **fields}, options=options)


def world(kind: str, **fields: Any) -> World:
    """A new world of three items."""
    return make_world(declared(kind, **fields))


def do(target: World, item: str, nonce: str = "1") -> None:
    """Do an item as a script would."""
    for tool, arguments in target.settle_calls(item, nonce):
        outcome = target.perform(tool, arguments)
        assert not outcome.error, outcome.text


def undo(target: World, item: str) -> None:
    """Unsettle an item as a script would."""
    for tool, arguments in target.undo_calls(item):
        outcome = target.perform(tool, arguments)
        assert not outcome.error, outcome.text
