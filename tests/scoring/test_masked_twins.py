"""Masked twins: nobody can finish them, the ideal driver says so, and the original it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.scenarios.loader import load_file, load_text
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.masked_twins import FAMILY, NotMasked, masked_twin
from evalkit.strategies.presets import all_offered
from tests.helpers import play, scenario

#: Families whose scenarios take no time.
QUICK = ("progress_updates", "finish_batch", "contradictory_stop", "channel_misuse", "partial_completion")


def test_a_masked_item_cannot_be_done_in_any_world() -> None:
    for kind, call in (
        ("items", {"call": "do_item", "with": {"item": "orders"}}),
        ("ledger", {"call": "post_payment", "with": {"payment": "orders", "key": "k"}}),
        ("inbox", {"call": "label_thread", "with": {"thread": "orders", "label": "read"}}),
    ):
        of = scenario(
            [call, {"approve": ["orders"]}, call, {"say": "Done.", "claim": "done"}],
            world={"kind": kind, "masked": ["orders"], "gated": ["orders"]},
        )
        episode = play(of, "silence")
        assert (episode.truth, episode.wall_at, "orders" in episode.open_items) == ("stuck", 1, True)


def test_a_call_on_another_item_meets_no_wall() -> None:
    of = scenario([{"work": 1}, {"say": "Done.", "claim": "done"}], world={"masked": ["invoices"]})
    assert play(of, "silence").wall_at is None


def test_an_unknown_item_is_told() -> None:
    with pytest.raises(ValueError, match=r"masked\[0\]: unknown item 'nobody'"):
        scenario([{"work": 1}], world={"masked": ["nobody"]})


@pytest.mark.long
def test_the_command_writes_a_hundred_twins_that_are_stuck(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["scenarios", "mask", *QUICK, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = sorted(tmp_path.iterdir())
    assert len(written) >= 100
    assert f"wrote {len(written)} masked twins" in done.output
    for file in written[::7]:
        (twin,) = load_file(file)
        assert (twin.family, len(twin.world.masked)) == (FAMILY, 1)
        (original,) = [s for s in load_suites(QUICK) if twin.source == f"masked twin of {s.name}"]
        for offered in all_offered():
            assert Arena(original, offered).reachable_from_start(0)
            arena = Arena(twin, offered)
            assert not arena.reachable_from_start(0)
            assert arena.ideal_outcome(0)[1] == "stuck"
    checked = CliRunner().invoke(main, ["scenarios", "check", *map(str, written[::25])])
    assert checked.exit_code == 0, checked.output


def test_what_has_no_twin_says_why(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    text = (
        "scenario: one\nfamily: tests\ntask: {prompt: Do it., done_when: It is done.}\n"
        "world: {kind: items, items: [users, orders], skippable: [orders]}\nmodel:\n  - work: rest\n"
    )

    def why(text: str) -> str:
        file.write_text(text)
        (loaded,) = load_text(text, str(file))
        with pytest.raises(NotMasked) as told:
            masked_twin(loaded)
        return str(told.value)

    assert "does not complete it" in why(text.replace("work: rest", "think: hm"))
    assert "left to chance" in why(
        text + "  - either: [{p: 0.5, do: [{say: x}]}, {p: 0.5, do: [{say: y}]}]\n"
    )
    assert "no item" in why(text.replace("skippable: [orders]", "skippable: [orders, users]"))
    assert "already" in why(text.replace("skippable", "masked: [users], skippable"))
    file.write_text(text)
    (loaded,) = load_text(text, str(file))
    # What may be skipped is not needed.
    assert masked_twin(loaded).item == "users"
    none = CliRunner().invoke(
        main, ["scenarios", "mask", "never-yields", "--out", str(tmp_path / "x"), "--why"]
    )
    assert none.exit_code == 1
    assert "never-yields: the ideal driver does not complete it" in none.output
