"""Scenario files meant to hurt: refused in one line and at once, or they run like any other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.core.decisions import ENDINGS, TRUTHS
from evalkit.scenarios.loader import load_file, load_text
from evalkit.scenarios.output_schema import matches, schema_problem
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS
from tests.hostile import RAW, mutated
from tests.scenarios.generated import documents
from tests.scenarios.test_loader import GOOD

MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def loads(text: str) -> list[Scenario]:
    """The scenarios of a text, none where it is refused: in one line, whatever is wrong."""
    try:
        return load_text(text, "hostile.yaml")
    except ScenarioError as error:
        told = str(error)
    assert len(told.splitlines()) == 1
    assert len(told) <= 1_000
    return []


def runs(scenario: Scenario) -> None:
    """A scenario that loads ends under every preset."""
    for preset in PRESETS.values():
        episode = run_episode(Arena(scenario, preset.strategy.offers), preset.strategy, 0)
        assert episode.ending in ENDINGS
        assert episode.truth in TRUTHS


@pytest.mark.long
@MANY
@given(mutated(documents(events=True)))
def test_a_spoilt_document_is_refused_in_one_line_or_runs(text: str) -> None:
    for scenario in loads(text)[:3]:
        runs(scenario)


HUGE = [
    ("- work: rest", "- work: 9000000000000000000"),
    ("- work: rest", "- repeat: {times: 1000000000000000000, do: [{work: 1}]}"),
    ("- work: rest", "- repeat: {times: 1000000000000000000, do: [{work: rest}]}"),
    ("- work: rest", "- repeat: {times: forever, do: [{repeat: {times: forever, do: [{work: rest}]}}]}"),
    ("- work: rest", "- repeat: {times: forever, do: [{either: [{p: 0.0, do: [{work: rest}]}]}]}"),
    ("- work: rest", "- wait: {item: users, polls: 9000000000000000000}"),
    ("- work: rest", "- background: {polls: 9000000000000000000}"),
    ("- work: rest", "- fault: {status: 529, times: 9000000000000000000}"),
    ("- work: rest", "- fault: {stall_s: 3600}"),
    ("- work: rest", "- finish: {completed: 9000000000000000000}"),
    ("- work: rest", "- call: do_item\n    with: {item: 9223372036854775807}"),
    ("world:", "limits: {turns: 999999999999, tokens: 999999999999, usd: 999999999}\nworld:"),
]


@pytest.mark.parametrize(("old", "new"), HUGE)
def test_a_huge_number_takes_no_longer_than_a_small_one(old: str, new: str) -> None:
    (scenario,) = load_text(GOOD.replace(old, new, 1))
    runs(scenario)


REFUSED = [
    ("- work: rest", "- work: 1000000000000000000000000000000", "out of range: from -2^63 to 2^63 - 1"),
    ("- work: rest", "- repeat: {times: 1.0e+999, do: [{work: 1}]}", "out of range"),
    ("- work: rest", "- fault: {stall_s: 1.0e+300}", "out of range"),
    ("- work: rest", "- either: [{p: .nan, do: [{work: 1}]}]", "YAML reads .nan as a number"),
    ("[users, orders]", '["a\\nb", orders]', "world.items[0]: an item id is one line"),
    ("[users, orders]", '["a\\x1b[31mb", orders]', "holds the character U+001B"),
    ("[users, orders]", '["a\\ud800b", orders]', "bad.yaml"),
    ("[users, orders]", f"[{'x' * 201}, orders]", "an item id is one line of at most 200 characters"),
    ("[users, orders]", f"[{', '.join(f'i{n}' for n in range(1001))}]", "1001 items; at most 1000"),
    ("items: [users", f"noise: {'x' * 10_001}\n  items: [users", "world.noise: 10,001 characters; at most"),
    ("claim: done", f"claim: done\n    stop: {'x' * 101}", "stop: a label has at most 100 characters"),
    ("- work: rest", f"- raw: {{stop: {'x' * 101}}}", "raw.stop: a label has at most 100 characters"),
    ("- work: rest", "- raw: {extra: {category: [1]}}", "extra.category: expected text, found a list"),
    ("- work: rest", '- "wo\\nrk": rest', "unknown move"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_is_out_of_bounds_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD.replace(old, new, 1), "bad.yaml")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("value", RAW)
def test_no_odd_scalar_makes_the_loader_raise_anything_else(value: str) -> None:
    for old in ("rest", "Done.", "tests", "[users, orders]", "users", "items\n"):
        loads(GOOD.replace(old, value + ("\n" if old.endswith("\n") else ""), 1))


def test_lists_that_name_a_million_variants_are_refused_at_once() -> None:
    moves = "\n".join("  - {say: Hello., stop: [end_turn, tool_use]}" for _ in range(20))
    with pytest.raises(ScenarioError, match="the lists name 1,048,576 variants together; at most 500"):
        load_text(GOOD.replace("model:", f"model:\n{moves}"))


def test_a_name_that_leads_out_of_the_folder_is_only_a_name(tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    for kind in ("items", "ledger", "inbox"):
        text = GOOD.replace("kind: items", f"kind: {kind}").replace("users", '"../../escaped"')
        text = text.replace("call: list_items", "say: Listing.")
        (scenario,) = load_text(text)
        runs(scenario)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "checks",
    [
        '{"../../escaped": {exists: "../../escaped"}}',
        '{a: {exists: "/tmp/escaped"}}',
        '{a: {contains: {path: "x/../../y", text: hi}}}',
        "{a: {exists: 7}}",
        "{a: {run: [1]}}",
    ],
)
def test_a_check_of_the_files_world_stays_within_the_folder(checks: str) -> None:
    item = '"../../escaped"' if "escaped:" in checks.replace('"', "") and "{a:" not in checks else "a"
    world = f"  kind: files\n  items: [{item}]\n  checks: {checks}\n"
    text = GOOD.replace("  kind: items\n  items: [users, orders]\n", world).replace(
        "list_items", "list_files"
    )
    with pytest.raises(ScenarioError):
        load_text(text)


def test_only_regular_files_of_a_bearable_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ScenarioError, match="is not a file"):
        load_file(tmp_path / "pipe.yaml")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(5_000_000)
    with pytest.raises(ScenarioError, match="is larger than"):
        load_file(tmp_path / "large.yaml")
    with pytest.raises(ScenarioError, match="is not a file"):
        load_file(Path("/dev/zero"))


SCHEMA_WORDS = (
    *("type", "properties", "required", "items", "$ref", "$defs", "a", "allOf", "anyOf", "not", "const"),
    *("enum", "if", "then", "additionalProperties", "prefixItems", "minimum", "uniqueItems"),
)


class TestSchemas:
    """Typed output: a schema may be anything, and nothing may be fetched or take for ever."""

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"type": "objekt"}, "is not valid under any"),
            ({"$ref": "http://127.0.0.1:1/x"}, "leads out of the schema"),
            ({"$ref": "#"}, "leads round in a circle"),
            ({"$ref": "#/$defs/none"}, "leads nowhere"),
            ({"$dynamicRef": "#a"}, "is not supported"),
            ({"type": "string", "pattern": "(a+)+$"}, "a pattern can take for ever"),
            ({"patternProperties": {"(a+)+$": {}}}, "a pattern can take for ever"),
            (
                {
                    "$ref": "#/$defs/d0",
                    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
                    | {"d40": {}},
                },
                "has more than 10,000 parts",
            ),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, schema: Any, message: str) -> None:
        assert message in schema_problem(schema)

    def test_names_of_properties_are_not_taken_for_keywords(self) -> None:
        names = ("pattern", "$id", "id", "$ref")
        assert schema_problem({"properties": {name: {"type": "string"} for name in names[:3]}}) == ""

    def test_references_within_the_schema_are_followed(self) -> None:
        schema = {"$defs": {"a/b": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/a~1b"}}}
        assert schema_problem(schema) == ""
        assert matches('{"n": 1}', schema) == ""
        assert matches('{"n": "x"}', schema) != ""

    @given(
        st.recursive(
            st.sampled_from(["object", "string", "#", "#/$defs/a", 1, True, None, 2.5, "x"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(SCHEMA_WORDS),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=14,
        ).filter(lambda value: isinstance(value, dict)),
        st.sampled_from(['{"a": [1, {"b": null}]}', "[]", '"x"', "3", "{", ""]),
    )
    def test_any_schema_is_refused_or_judges_any_text(self, schema: dict[str, Any], text: str) -> None:
        if not schema_problem(schema):
            assert isinstance(matches(text, schema), str)
