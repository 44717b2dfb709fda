"""What msgspec refuses in a value that somebody wrote: the field, what is wrong with it, what is allowed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from evalkit.core.names import among, did_you_mean

_PATH = re.compile(r" - at `(?:key in )?\$(?P<path>.*)`$")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")
_CHOICE = re.compile(r"Invalid enum value (?P<value>.*)")
_TYPES = re.compile(r"Expected `(?P<wanted>[\w| ]+)`, got `(?P<got>\w+)`")
#: msgspec's names of types, as whoever writes YAML or TOML knows them.
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "text",
}
#: In a path: some value of a mapping, or its key. Which one msgspec does not say.
SOME = "..."


class Refusal(NamedTuple):
    """The field's path from the value down, and what is said of it.

    ``missing`` is the field that the value at ``path`` lacks; empty elsewhere.
    """

    path: tuple[str | int, ...]
    message: str
    missing: str = ""

    @property
    def place(self) -> str:
        """The path as it is written in messages: ``endings[0].ending``."""
        text = "".join(
            f"[{step}]" if isinstance(step, int) or step == SOME else f".{step}" for step in self.path
        )
        return text.removeprefix(".")

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.path else self.message


def refusal(error: msgspec.ValidationError, kind: Any) -> Refusal:
    """What ``error`` says of a value that was to be of the type ``kind``, with what is allowed there."""
    said = str(error)
    found = _PATH.search(said)
    path: list[str | int] = []
    if found is not None:
        said = said[: found.start()]
        path = [
            name or (int(place) if place.isdigit() else SOME) for name, place in _STEP.findall(found["path"])
        ]
    there = _types_at(inspect.type_info(kind), path)
    if wrong := _UNKNOWN.match(said):
        fields = [field.encode_name for one in there for field in getattr(one, "fields", ())]
        return Refusal((*path, wrong["field"]), f"unknown field{among(wrong['field'], fields, 'allowed')}")
    if wrong := _MISSING.match(said):
        return Refusal(tuple(path), f"field {wrong['field']!r} is missing", wrong["field"])
    if wrong := _CHOICE.match(said):
        values = [str(value) for one in there if isinstance(one, inspect.LiteralType) for value in one.values]
        guess = did_you_mean(wrong["value"].strip("'"), values)
        if values:
            return Refusal(tuple(path), f"expected one of {', '.join(values)}; got {wrong['value']}{guess}")
    if wrong := _TYPES.match(said):
        wanted = " or ".join(_WORDS.get(word, word) for word in wrong["wanted"].split(" | "))
        return Refusal(tuple(path), f"expected {wanted}, got {_WORDS.get(wrong['got'], wrong['got'])}")
    return Refusal(tuple(path), said[:1].lower() + said[1:].replace("`", ""))


def _types_at(kind: inspect.Type, path: list[str | int]) -> list[inspect.Type]:
    """The types that a value at a path may have; empty where the path leads out of what is known."""
    kinds = _alternatives(kind)
    for step in path:
        inner: list[inspect.Type] = []
        for one in kinds:
            if isinstance(one, inspect.DictType):
                inner.append(one.value_type)
            elif isinstance(step, int):
                items = getattr(one, "item_types", None)
                item = items[step] if items and step < len(items) else getattr(one, "item_type", None)
                inner += [item] if item is not None else []
            else:
                inner += [field.type for field in getattr(one, "fields", ()) if field.encode_name == step]
        kinds = [alternative for one in inner for alternative in _alternatives(one)]
    return kinds


def _alternatives(kind: inspect.Type) -> list[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    return list(kind.types) if isinstance(kind, inspect.UnionType) else [kind]
