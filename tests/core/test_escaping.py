"""Text of others where it is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.core.escaping import (
    for_csv,
    for_markdown,
    for_styled_terminal,
    for_terminal,
    from_csv,
)

#: What may reach a terminal beside what is printable.
KEPT = "\n\t"


@given(st.text())
def test_nothing_steers_a_terminal_and_json_stays_what_it_was(text: str) -> None:
    shown = for_terminal(text)
    assert not [sign for sign in shown if ord(sign) < 32 and sign not in KEPT]
    assert not set(shown) & {*map(chr, range(127, 160)), *"\u200e\u200f\u202a\u202e\u2066\u2069\u2028"}
    shown.encode()
    document = json.dumps([text], ensure_ascii=False)
    assert json.loads(for_terminal(document)) == [text]


def test_own_styles_pass_and_no_others() -> None:
    assert for_styled_terminal("\x1b[1mbold\x1b[0m") == "\x1b[1mbold\x1b[0m"
    for code in ("\x1b[8m", "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "\r", "\x08"):
        assert "\x1b" not in for_styled_terminal(f"a{code}b")
        assert code not in for_styled_terminal(f"a{code}b")


@given(st.text())
def test_no_cell_is_a_formula_and_all_can_be_read_back(text: str) -> None:
    cell = for_csv(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    if not text.startswith("'"):
        assert from_csv(cell) == text
    assert for_csv(-3) == -3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("two\nlines", "two lines"),
        ("[x](http://e)", "\\[x](http://e)"),
        ("verifier_claim", "verifier_claim"),
        ("\x1b[2J", "\\u001b\\[2J"),
    ],
)
def test_a_cell_of_markdown_is_a_cell(text: str, shown: str) -> None:
    assert for_markdown(text) == shown
