"""Cleaning a body by a look at its text gives what walking through its values gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.models.secrets import REDACTED, clean_body, clean_value

KNOWN = ('pass "word"', "Žluťoučký")
#: Texts in which a key stands at an edge, behind an escape, or not at all.
PLANTED = (
    "sk-ant-api03-abcdefghijkl",
    "see\nsk-ant-api03-abcdefghijkl",
    '"req_0123456789abcdef"',
    "AKIAABCDEFGHIJKLMNOP",
    "Bearer\nabcdefgh",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    "task-list and user_message_of_the_day",
    'my pass "word"',
    "Žluťoučký",
    "plain",
)
KEYS = ("user", "User", "api_key", "x-request-id", "id", "name", "user\n", "organisation", 'a "user":')

texts = st.sampled_from(PLANTED) | st.text(max_size=8)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_a_look_at_the_text_gives_what_the_walk_gives(value: Any) -> None:
    want = clean_value(value, KNOWN)
    assert json.loads(clean_body(json.dumps(value), KNOWN)) == want
    canonical = json.dumps(want, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert clean_body(json.dumps(value), KNOWN, canonical=True) == canonical
    stream = clean_body(f"event: x\ndata: {json.dumps(value)}\n\n", KNOWN)
    assert json.loads(stream.splitlines()[1].removeprefix("data: ")) == want


@pytest.mark.parametrize("text", [text for text in PLANTED if text not in ("plain", PLANTED[6])])
def test_each_planted_secret_goes(text: str) -> None:
    assert REDACTED in clean_body(json.dumps({"content": [text]}), KNOWN)
