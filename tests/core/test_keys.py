"""Logical actions and their keys: how a call is written, and with which key, does not matter."""

from __future__ import annotations

from evalkit.core.keys import logical_action, own_key, said_but_key, takes_key, undoes, with_key
from evalkit.core.tasks import Tool
from evalkit.core.turns import Call, parse_arguments

POST = Tool("post", "", ("payment", "key"), item="payment", does=True)
REFUND = Tool("refund", "", ("payment",), item="payment")
READ = Tool("read", "", ("payment",), read_only=True, item="payment")


def post(arguments: str) -> Call:
    return Call("c", "post", arguments)


def test_the_key_is_no_part_of_the_action() -> None:
    first, second = post('{"payment": "a", "key": "1"}'), post('{"key":"2","payment":"a"}')
    assert own_key("task", first, 0) == own_key("task", second, 0)
    assert logical_action(first, 0) == logical_action(second, 0)
    assert own_key("task", first, 0) != own_key("other", first, 0)
    assert own_key("task", first, 0) != own_key("task", first, 1)
    assert own_key("task", first, 0) != own_key("task", post('{"payment": "b"}'), 0)


def test_what_an_item_is_about_names_the_action() -> None:
    assert logical_action(post('{"payment": "a", "memo": "x"}'), 2) == "post 2"


def test_broken_arguments_stay() -> None:
    assert said_but_key('{"pay') == '{"pay'
    assert with_key('{"pay', "k") == '{"pay'
    assert parse_arguments(with_key('{"payment": "a", "key": "1"}', "k")) == {"payment": "a", "key": "k"}
    assert own_key("task", post('{"payment": "\\ud800"}'), 0)


def test_what_undoes() -> None:
    assert undoes(REFUND, "post")
    assert not undoes(REFUND, "refund")
    assert not undoes(READ, "post")
    assert not undoes(Tool("capture", "", ("payment",), item="payment", does=True), "post")
    assert takes_key(POST)
    assert not takes_key(REFUND)
