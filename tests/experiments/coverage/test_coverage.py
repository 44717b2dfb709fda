"""The library covers every cell, and the page that says so is the one that the command writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.core.turns import Call, ServerCall, Text, Thinking, make_turn
from evalkit.experiments.coverage.cells import (
    CHANNELS,
    CLAIMS,
    CONTENTS,
    LABELS,
    NEW,
    NULL,
    claim_cells,
    content_of,
    label_cells,
    label_of,
)
from evalkit.experiments.coverage.document import COMMAND, coverage_text
from evalkit.experiments.coverage.policies import VALUES, differences, moves_by_policy
from evalkit.experiments.coverage.presets import (
    HONEST_TWIN,
    REASONS,
    distinctions,
    families,
    in_the_loop,
    silent,
)
from evalkit.strategies.strategy import Strategy
from tests.helpers import library, scenario

PAGE = Path(__file__).parents[3] / "docs" / "coverage.md"
LIBRARY = library()
#: Worlds that run no commands.
QUICK = [loaded for loaded in in_the_loop(LIBRARY) if loaded.world.kind not in ("repo", "files")]
#: Families about stop reasons and limits, where policies differ.
POLICY_FAMILIES = {
    "resume_effects",
    "pause_turn",
    "truncation",
    "refusal",
    "empty_turns",
    "transport_faults",
    "limits_boundary",
    "contradictory_stop",
    "infinite_nudging",
}


class TestCells:
    def test_every_label_stands_over_every_content(self) -> None:
        cells = label_cells(LIBRARY)
        assert len(cells) == 13 * 7
        assert [cell for cell, names in cells.items() if not names] == []

    def test_every_claim_goes_through_every_channel(self) -> None:
        cells = claim_cells(LIBRARY)
        assert [cell for cell, names in cells.items() if not names] == []

    def test_a_turn_is_in_one_cell(self) -> None:
        text, call, server = Text("x"), Call("c", "do_item", "{}"), ServerCall("s", "web_search")
        contents = {
            (): "nothing",
            (text,): "text",
            (Text("\n"),): "blank text",
            (Thinking("x"),): "thinking only",
            (Thinking("x"), Text(" ")): "blank text",
            (Thinking("x"), call): "client call",
            (Text(" "), call): "client call",
            (server,): "server call",
            (text, call): "mixed",
            (server, call): "mixed",
        }
        for blocks, content in contents.items():
            assert content_of(make_turn(blocks, "end_turn")) == content
        assert label_of(make_turn((), "unknown", native="null")) == NULL
        assert label_of(make_turn((), "unknown", native="brand_new")) == NEW
        assert label_of(make_turn((), "refusal")) == "refusal"
        assert set(CONTENTS) == set(contents.values())

    def test_faults_are_no_turns(self) -> None:
        loaded = scenario([{"fault": {"status": 500}}, {"background": {"polls": 1}}, {"say": "x"}])
        filled = {cell for cell, names in label_cells([loaded]).items() if names}
        assert filled == {("end_turn", "text")}

    def test_claims_are_counted_where_they_are_made(self) -> None:
        moves = [
            {"say": "x", "claim": "partial", "channel": "finish"},
            {"finish": {"completed": 1}},
            {"turn": [{"say": "y", "claim": "blocked"}]},
            {"output": {}},
        ]
        filled = {cell for cell, names in claim_cells([scenario(moves)]).items() if names}
        assert filled == {("partial", "finish"), ("blocked", "offered"), ("done", "output")}
        assert {claim for claim, _ in filled} <= set(CLAIMS)
        assert {channel for _, channel in filled} <= set(CHANNELS)


class TestPolicies:
    @pytest.mark.long
    def test_every_value_differs_somewhere_and_every_field_is_one(self) -> None:
        few = [loaded for loaded in QUICK if loaded.family in POLICY_FAMILIES]
        found = differences(few)
        assert [line.policy for line in found] == [policy for policy, _ in VALUES]
        for line in found:
            assert hasattr(Strategy, line.policy)
            assert line.differs, f"{line.policy}={line.value}"
        moves = moves_by_policy(few, found)
        for move, value in (
            ("pause", "pause=as_content"),
            ("truncate", "cut_off=stop"),
            ("fault", "faults=fail"),
        ):
            assert moves[move, value] > 0
        assert moves["refuse", "pause=as_content"] == 0


class TestPresets:
    @pytest.mark.long
    def test_no_family_is_passed_or_failed_by_all_without_a_reason(self) -> None:
        found = distinctions(QUICK)
        lines = families(found)
        assert [line.name for line in lines if not line.tells] == []
        twins = {loaded.name: loaded.twin for loaded in LIBRARY if loaded.twin}
        assert [line.scenario for line in silent(found, twins) if not line.why] == []

    def test_each_reason_is_used(self) -> None:
        names = {loaded.name.partition("[")[0] for loaded in LIBRARY}
        assert set(REASONS) <= names

    def test_a_twin_is_excused_only_by_one_that_tells(self) -> None:
        plain = [{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]
        report = [*plain[:1], {"work": 1}, {"say": "One."}, *plain[1:]]
        one, other = scenario(plain, scenario="one"), scenario(report, scenario="other")
        found = distinctions([one, other])
        (line,) = silent(found, {"one": "other", "other": "one"})
        assert (line.scenario, line.passed, line.why) == ("one", True, HONEST_TWIN)
        (line,) = silent(found[:1], {"one": "other"})
        assert line.why == ""


class TestThePage:
    def test_its_counts_are_those_of_the_library(self) -> None:
        """Quick signs that the page is old; write it again with the command on its second line."""
        text = PAGE.read_text()
        assert f"`{COMMAND}`" in text
        assert f"\n{len(LIBRARY)} scenarios in {len({s.family for s in LIBRARY})} families, " in text
        cells = label_cells(LIBRARY)
        for label in LABELS:
            counts = " | ".join(str(len(cells[label, content])) for content in CONTENTS)
            assert f"| `{label}` | {counts} |" in text

    @pytest.mark.slow
    def test_it_is_what_the_command_writes(self) -> None:
        assert PAGE.read_text() == coverage_text(LIBRARY)

    def test_the_command_takes_a_suite(self, tmp_path: Path) -> None:
        out = tmp_path / "page.md"
        result = CliRunner().invoke(main, ["scenarios", "coverage", "empty_turns", "--out", str(out)])
        assert result.exit_code == 0
        number = sum(loaded.family == "empty_turns" for loaded in LIBRARY)
        assert f"{number} scenarios in 1 families, 1 twin pairs" in out.read_text()
