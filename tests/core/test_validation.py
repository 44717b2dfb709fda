"""What msgspec refuses, told with the field and what is allowed there."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from evalkit.core.validation import refusal


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    word: Literal["one", "two"]
    often: int = 1


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    plain: Inner | None = None
    listed: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    pair: tuple[int, Inner] | None = None
    either: bool | Inner = False


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"plan": 1},
            "plan: unknown field (did you mean 'plain'?); allowed: plain, listed, named, pair, either",
        ),
        ({"plain": {"word": "on"}}, "plain.word: expected one of one, two; got 'on' (did you mean 'one'?)"),
        (
            {"listed": [{"word": "one"}, {"wrd": 1}]},
            "listed[1].wrd: unknown field (did you mean 'word'?); allowed: word, often",
        ),
        ({"listed": [{}]}, "listed[0]: field 'word' is missing"),
        ({"named": {"a": {"word": "three"}}}, "named[...].word: expected one of one, two; got 'three'"),
        ({"pair": [1, {"word": 3}]}, "pair[1].word: expected text, got a whole number"),
        ({"either": {"word": "one", "of": 1}}, "either.of: unknown field; allowed: word, often"),
        ({"either": "x"}, "either: expected true or false or a mapping, got text"),
        ([], "expected a mapping, got a list"),
    ],
)
def test_the_field_the_difference_and_what_is_allowed(value: object, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, Outer)
    assert str(refusal(raised.value, Outer)) == said
