"""Bad input: one line with file, line, field, what was found, what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.scenarios.loader import load_file, load_text
from evalkit.scenarios.suites import load_suites
from evalkit.scenarios.yaml_source import ScenarioError

GOOD = """\
scenario: good
family: tests
task:
  prompt: Do it.
  done_when: It is done.
world:
  kind: items
  items: [users, orders]
model:
  - call: list_items
  - work: rest
  - say: Done.
    claim: done
"""

BAD = [
    (
        "- work: rest",
        "- wrok: rest",
        "bad.yaml:11: model[1]: unknown move: 'wrok' (did you mean 'work'?); allowed: say, call,",
    ),
    ("work: rest", "work: -1", "bad.yaml:11: model[1]"),
    ("work: rest", "work: [nobody]", "model[1].work[0]: unknown item 'nobody'; known: users, orders"),
    ("claim: done", "claim: finished", "bad.yaml:13: model[2].claim: expected one of blocked"),
    (
        "claim: done",
        "clam: done",
        "bad.yaml:13: model[2].clam: unknown field (did you mean 'claim'?); allowed: ",
    ),
    ("call: list_items", "call: list_item", "unknown tool 'list_item'; known: list_items, read_item"),
    (
        "kind: items",
        "kind: itmes",
        "bad.yaml:7: world.kind: unknown world 'itmes' (did you mean 'items'?); known: items, ledger",
    ),
    ("[users, orders]", "[users, users]", "world.items[1]: 'users' stands here twice"),
    ("[users, orders]", "[users, 7]", "world.items[1]: expected text, got a whole number"),
    ("[users, orders]", "[users, no]", "world.items[1]: YAML reads no as true or false; quote it"),
    ("[users, orders]", "[]", "world.items: a world needs at least one item"),
    ("family: tests", "family: tests\nfamily: again", "bad.yaml:3: family: stands here twice"),
    (
        "family: tests",
        "famly: tests",
        "bad.yaml:2: famly: unknown field (did you mean 'family'?); allowed: scenario, family",
    ),
    ("family: tests\n", "", "bad.yaml:1: field 'family' is missing"),
    ("scenario: good", "scenario: Good One", "'Good One' is not a name"),
    ("world:", "limits: {turns: 0}\nworld:", "limits.turns: expected a number above 0, found 0"),
    ("world:", "limits: {turns: []}\nworld:", "limits.turns: is an empty list"),
    ("world:", "accept: [done/finished]\nworld:", "'done/finished' is not an outcome; allowed: ENDING/TRUTH"),
    ("- work: rest", "- turn: [{fault: {status: 500}}]", "model[1].turn[0]: not allowed here: 'fault'"),
    ("- work: rest", "- fault: {}", "model[1].fault: expected exactly one of status, cut, body, stall_s"),
    ("- work: rest", "- either: [{p: 0.8, do: []}, {p: 0.7, do: []}]", "probabilities add up to 1.5"),
    ("- work: rest", "- raw: {content: [{txt: hi}]}", "unknown block 'txt'; allowed: text, thinking"),
    (
        "prompt: Do it.",
        "prompt: Do it.\n  check: full",
        "task.check: unknown field (did you mean 'checks'?); allowed: prompt",
    ),
    ("model:", "model: [", "not YAML"),
    ("scenario: good", "scenario: !!python/object:os.system x", "the tag tag:yaml.org,2002:python/object"),
    ("- say: Done.", "- say: &a [*a]", "model[2].say"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_an_error_is_one_line_and_says_where(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        load_text(GOOD.replace(old, new, 1), "bad.yaml")
    text = str(caught.value)
    assert message in text
    assert text.startswith("bad.yaml")
    assert "\n" not in text


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.yaml: cannot be read: No such file"):
        load_file(tmp_path / "gone.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        load_file(tmp_path / "binary.yaml")


def test_a_name_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(ScenarioError, match=r"the name 'good' is also in .*a\.yaml"):
        load_suites((str(tmp_path),))
    with pytest.raises(ScenarioError, match=r"is also in .*a\.yaml"):
        load_suites((str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")))


def test_an_unknown_suite_names_the_families() -> None:
    with pytest.raises(
        ScenarioError, match=r"no such file, folder or family; families: .*partial_completion"
    ):
        load_suites(("partial",))


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ScenarioError, match="more than 50,000 values"):
        load_text("\n".join(lines))


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ScenarioError):
        load_text("model: " + "[" * 500 + "]" * 500)
    with pytest.raises(ScenarioError):
        load_text("model: " + "{a: " * 5000)


def test_a_list_names_one_variant_for_each_value() -> None:
    text = GOOD.replace("world:", "limits: {turns: [3, 4]}\nworld:").replace(
        "    claim: done", "    claim: done\n    stop: [end_turn, null, brand_new]"
    )
    loaded = load_text(text)
    assert len(loaded) == 6
    assert loaded[0].name == "good[turns=3,stop=end_turn]"
    assert loaded[-1].name == "good[turns=4,stop=brand_new]"
    assert loaded[-1].limits.turns == 4


def refusal(text: str) -> str:
    """Why a text is refused; empty where it is taken. Any other exception fails the test."""
    try:
        load_text(text)
    except ScenarioError as error:
        return str(error)
    return ""


@given(st.text(max_size=200))
def test_no_text_makes_the_loader_raise_anything_else(text: str) -> None:
    assert "\n" not in refusal(text)


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["work", "say", "turn", "repeat", "do", "times", "p"]), inner)
        ),
        max_leaves=12,
    )
)
def test_no_move_makes_the_loader_raise_anything_else(move: object) -> None:
    import yaml

    text = GOOD.replace("- work: rest", "- " + yaml.safe_dump(move, default_flow_style=True, width=9999))
    assert "\n" not in refusal(text.replace("\n...\n", "\n"))
