"""Strategy files meant to hurt: refused in one line, or a strategy that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.core.decisions import ENDINGS
from evalkit.runs.plan import fingerprint
from evalkit.strategies.registry import StrategyError, find_strategy, read_strategy
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario
from tests.hostile import RAW, mutated

LEAVES = st.one_of(
    st.sampled_from(
        ["silence", "acceptance", "checklist", "finish", "typed_output", "artifact", "certificate"]
    ),
    st.builds(
        lambda sees: {"verifier": {"sees": sees}}, st.sampled_from(["claim", "evidence", "transcript"])
    ),
    st.builds(lambda misses: {"verifier": {"misses": misses}}, st.floats(0, 1)),
    st.builds(lambda word: {"keyword": {"word": word}}, st.sampled_from(["DONE", "users", "."])),
    st.just({"finish": {"validate": True}}),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part: {"not": part}, inner)
    ),
    max_leaves=5,
)
DOCUMENTS = st.fixed_dictionaries(
    {"done_when": CONDITIONS},
    optional={
        "name": st.just("mine"),
        "pause": st.sampled_from(["resend", "as_content", "stop"]),
        "cut_off": st.sampled_from(["raise_limit", "continue", "fail_calls", "as_content", "stop"]),
        "refusal": st.sampled_from(["escalate", "fallback", "retry", "as_content", "stop"]),
        "unknown": st.sampled_from(["as_content", "nudge", "stop"]),
        "empty": st.sampled_from(["nudge", "stop"]),
        "check": st.sampled_from(["end_of_turn", "each_tool_turn"]),
        "limit_checked": st.sampled_from(["after_done", "before_done"]),
        "nudges": st.integers(1, 5) | st.none(),
        "then": st.sampled_from(["escalate", "done", "limit", "error"]),
        "max_turns": st.integers(1, 50) | st.none(),
        "max_usd": st.floats(0.001, 5) | st.none(),
        "loop_guard": st.booleans(),
    },
)
PLAYED: list[Any] = [
    {"call": "list_items"},
    {"truncate": "call", "until": "changed"},
    {"say": "On it.", "claim": "partial"},
    {"pause": {}},
    {"refuse": {"category": "cyber"}, "until": "other_model"},
    {"raw": {"stop": "brand_new", "content": [{"text": "users: done"}]}},
    {"work": "rest"},
    {"say": "Done.", "claim": "done"},
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strategies") / "hostile.yaml"


def read(file: Path, text: str) -> Strategy | None:
    """The strategy of a text, None where it is refused: in one line, whatever is wrong."""
    file.write_text(text, encoding="utf-8")
    try:
        return read_strategy(file)
    except StrategyError as error:
        told = str(error)
    assert len(told.splitlines()) == 1
    assert len(told) <= 1_000
    return None


@pytest.mark.long
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=mutated(DOCUMENTS))
def test_a_spoilt_strategy_is_refused_in_one_line_or_runs(file: Path, text: str) -> None:
    strategy = read(file, text)
    if strategy is not None:
        assert isinstance(fingerprint(strategy), str)
        episode = play(scenario(PLAYED), strategy)
        assert episode.ending in ENDINGS
        assert episode.note == ""


@pytest.mark.parametrize("value", RAW)
def test_no_odd_scalar_makes_anything_else_of_it(file: Path, value: str) -> None:
    for line in (f"done_when: {value}", f"done_when: silence\nmax_turns: {value}", f"{value}: 1", value):
        read(file, line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("done_when: {keyword: {word: 5}}", "word: expected text, got a whole number"),
        ("done_when: {finish: {validate: 'yes'}}", "validate: expected true or false, got text"),
        ("done_when: silence\nloop_guard: 'true'", "loop_guard: expected true or false"),
        ("done_when: silence\nname: [1]", "name: expected text, got a list"),
        ("done_when: silence\nmax_turns: 1.5", "max_turns: expected a whole number or nothing"),
        ("done_when: {typed_output: {schema: {type: string, pattern: '(a+)+$'}}}", "can take for ever"),
        ("done_when: {typed_output: {schema: {$ref: 'http://127.0.0.1:1/'}}}", "leads out of the schema"),
        ("done_when: silence\n---\ndone_when: silence", "a strategy is a mapping"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named(file: Path, text: str, message: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StrategyError) as caught:
        read_strategy(file)
    assert message in str(caught.value)


def test_a_bomb_of_aliases_is_refused_quickly(file: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    file.write_text("\n".join([*lines, "done_when: {all: *a11}"]), encoding="utf-8")
    with pytest.raises(StrategyError, match="more than 50,000 values"):
        read_strategy(file)


@pytest.mark.long
@given(st.text(max_size=40).filter(lambda name: not name.endswith((".yaml", ".yml"))))
def test_no_name_makes_anything_else_of_it(name: str) -> None:
    try:
        find_strategy(name)
    except StrategyError as error:
        told = str(error)
        assert told
