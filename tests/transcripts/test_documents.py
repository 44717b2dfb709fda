"""Reading through a window gives what reading at once gives, wherever the window ends."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.transcripts import documents
from evalkit.transcripts.documents import Broken, elements, keys

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(st.lists(JSON, max_size=8), st.integers(1, 40), st.booleans(), st.booleans())
def test_a_list_is_read_the_same_through_any_window(
    values: list[Any], chunk: int, ascii_only: bool, indented: bool
) -> None:
    text = json.dumps(values, ensure_ascii=ascii_only, indent=1 if indented else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_CHUNK", chunk)
        assert list(elements(io.BytesIO(text.encode("utf-8", "surrogatepass")))) == values


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(JSON, max_size=4), st.integers(1, 40))
def test_a_list_within_a_document_is_found_behind_other_fields(
    before: dict[str, Any], values: list[Any], chunk: int
) -> None:
    before.pop("here", None)
    document = json.dumps({**before, "here": values, "after": 1}).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_CHUNK", chunk)
        assert list(elements(io.BytesIO(document), "here")) == values
        assert keys(io.BytesIO(document), frozenset(("here",))) == [*before, "here"]
        assert keys(io.BytesIO(document), frozenset()) == list(json.loads(document))


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(st.lists(JSON, min_size=1, max_size=6), st.data())
def test_a_list_that_breaks_off_gives_the_elements_before(values: list[Any], data: st.DataObject) -> None:
    text = json.dumps(values).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    read: list[Any] = []

    def take() -> None:
        read.extend(elements(io.BytesIO(text[:cut])))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_CHUNK", 7)
        with pytest.raises(Broken) as broken:
            take()
    if read and isinstance(read[-1], int | float):
        # A number may be cut where it still is one.
        read.pop()
    assert read == values[: len(read)]
    assert "\n" not in str(broken.value)


def test_a_record_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_RECORD", 1_000)
    monkeypatch.setattr(documents, "_CHUNK", 100)
    with pytest.raises(Broken, match="entry 1: is longer than 1,000 characters"):
        list(elements(io.BytesIO(b'["' + b"x" * 5_000 + b'"]')))
    with pytest.raises(Broken, match="line 1: is longer than 1,000 bytes"):
        list(documents.lines(io.BytesIO(b"x" * 5_000)))
    with pytest.raises(Broken, match="is one record of 5,000 bytes; at most 1,000"):
        documents.whole(io.BytesIO(b""), 5_000)
