"""Bodies: JSON, streams and text; nothing secret is left in them, and nothing else is changed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.secrets.bodies import clean_body
from evalkit.secrets.cleaning import clean_value
from evalkit.secrets.rules import REDACTED
from tests.secrets.plants import PLANTS

KNOWN = ('pass "word"', "Žluťoučký")
#: Texts in which a key stands at an edge, behind an escape, or not at all.
TEXTS = (
    "sk-ant-api03-abcdefghijkl",
    "see\nsk-ant-api03-abcdefghijkl",
    '"req_0123456789abcdef"',
    "AKIAABCDEFGHIJKLMNOP",
    "Bearer\nabcdefgh1",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    "task-list and user_message_of_the_day",
    'my pass "word"',
    "Žluťoučký",
    "cGFzc3dvcmQ9aHVudGVyMg==",
    "plain",
)
KEYS = ("user", "User", "api_key", "x-request-id", "id", "name", "user\n", "organisation", 'a "user":', "JWT")

texts = st.sampled_from(TEXTS) | st.text(max_size=8)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_a_look_at_the_text_gives_what_the_walk_gives(value: Any) -> None:
    want = clean_value(value, KNOWN, identities=True)
    assert json.loads(clean_body(json.dumps(value), KNOWN)) == want
    canonical = json.dumps(want, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert clean_body(json.dumps(value), KNOWN, canonical=True) == re.sub("REDACTEDx*", "REDACTED", canonical)


@given(values)
def test_what_is_clean_is_left_as_it_is(value: Any) -> None:
    once = clean_body(json.dumps(value), KNOWN)
    assert clean_body(once, KNOWN) == once


def events(pieces: list[str], dialect: str) -> str:
    """A stream that brings a text in pieces, between other events."""
    if dialect == "anthropic":
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        made = [{"type": "content_block_delta", "index": 1, "delta": delta} for delta in deltas]
        made.insert(len(made) // 2, {"type": "ping"})
    elif dialect == "arguments":
        made = [
            {
                "choices": [
                    {"index": 0, "delta": {"tool_calls": [{"index": 2, "function": {"arguments": piece}}]}}
                ]
            }
            for piece in pieces
        ]
    elif dialect == "responses":
        made = [
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece}
            for piece in pieces
        ]
    else:
        made = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    if dialect == "lines":
        return "".join(json.dumps(event) + "\n" for event in made)
    return "".join(f"data: {json.dumps(event)}\n\n" for event in made) + "data: [DONE]\n\n"


def said(stream: str) -> str:
    """The text that a stream's pieces make up."""
    found = re.findall(r'"(?:text|arguments|delta|content)": ("(?:[^"\\]|\\.)*")', stream)
    return "".join(json.loads(piece) for piece in found)


@pytest.mark.parametrize(
    ("dialect", "size"), [("anthropic", 1), ("responses", 7), ("chat", 11), ("arguments", 4), ("lines", 23)]
)
@pytest.mark.parametrize("kind", PLANTS)
def test_a_secret_in_pieces_goes_and_the_pieces_stay(kind: str, dialect: str, size: int) -> None:
    text, secret = PLANTS[kind]
    text = f"Here it is:\n{text}\nthat was it."
    stream = events([text[at : at + size] for at in range(0, len(text), size)], dialect)
    cleaned = clean_body(stream)
    assert said(stream) == text
    assert secret not in said(cleaned)
    assert said(cleaned).startswith("Here it is:\n")
    assert said(cleaned).endswith("that was it.")
    assert [len(line) for line in cleaned.splitlines()] == pytest.approx(
        [len(line) for line in stream.splitlines()], abs=8
    )
    assert clean_body(cleaned) == cleaned


def test_tokens_that_spell_a_secret_go_with_it() -> None:
    key = PLANTS["github personal"].secret
    tokens = [{"token": key[at : at + 4], "bytes": list(key[at : at + 4].encode())} for at in range(0, 40, 4)]
    body = {"choices": [{"message": {"content": key}, "logprobs": {"content": tokens}}]}
    cleaned = clean_body(json.dumps(body))
    assert json.loads(cleaned)["choices"][0]["logprobs"] is None
    kept = {"choices": [{"message": {"content": "plain"}, "logprobs": {"content": [{"token": "plain"}]}}]}
    assert json.loads(clean_body(json.dumps(kept))) == kept


def test_names_and_values_of_a_list_of_headers_go() -> None:
    body = {"headers": [{"name": "Cookie", "value": "a=b1"}, {"name": "Accept", "value": "text/html"}]}
    cleaned = json.loads(clean_body(json.dumps(body)))
    assert [header["value"] for header in cleaned["headers"]] == [REDACTED, "text/html"]


def test_what_is_asked_does_not_say_how_long_a_secret_was() -> None:
    bodies = {clean_body(json.dumps({"text": "sk-ant-" + "a1" * n}), canonical=True) for n in (10, 20)}
    assert bodies == {'{"text":"REDACTED"}'}
