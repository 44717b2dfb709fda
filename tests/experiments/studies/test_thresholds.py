"""How far the constants carry: what is recounted is what playing with other constants gives."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evalkit.core import thresholds
from evalkit.experiments.studies.episodes import played, played_by_programs
from evalkit.experiments.studies.thresholds import (
    NAMED,
    TURNS,
    correct_at,
    places,
    settings,
    standings,
    thresholds_study,
)
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS
from tests.helpers import play, scenario

SUITES = ("infinite_nudging", "over_verification", "pause_turn", "user_turns")
STRATEGIES = [
    PRESETS[name].strategy for name in ("silence", "keyword", "infinite_nudge", "acceptance", "gate")
]


def test_each_threshold_is_halved_and_doubled() -> None:
    found = settings()
    assert len(found) == 1 + 2 * len(thresholds.GOING_ON)
    assert found[0].limits == (3, 12, 3, 12, 40, 12, 30)
    assert [each.value for each in found[1:3]] == [1.5, 6]
    assert found[2].limits == (6, 12, 3, 12, 40, 12, 30)


@pytest.mark.long
def test_as_they_are_the_flag_is_what_the_score_says() -> None:
    now = settings()[0].limits
    scenarios = [s for s in load_suites(SUITES) if not {"crash"} & set(s.events)]
    episodes = [e for each in played(scenarios, STRATEGIES, 1).values() for e in each.values()]
    assert any(episode.over_continuation for episode in episodes)
    for episode in episodes:
        assert correct_at(episode, now) == episode.correct, episode.why


@pytest.mark.parametrize("name", ["TURNS_AFTER_COMPLETION", "FRUITLESS_NUDGES", "TURNS_SINCE_DECISION"])
def test_what_is_recounted_is_what_is_played(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settled = scenario(
        [
            {"work": "rest"},
            {"say": "So far.", "claim": "partial"},
            {"repeat": {"times": 8, "do": [{"call": "list_items"}]}},
        ],
        limits={"turns": 20},
    )
    talks = scenario([{"work": 1}, {"say": "Hm.", "claim": "none"}])
    limits = {each.name: each for each in settings() if each.value < getattr(thresholds, each.name or name)}
    before = [play(of, "keyword") for of in (settled, talks)]
    recounted = [correct_at(episode, limits[name].limits) for episode in before]
    monkeypatch.setattr(thresholds, name, limits[name].value)
    after = [play(of, "keyword") for of in (settled, talks)]
    # The ideal harness may be another one then; the flag is what is recounted.
    assert [e.over_continuation for e in after] == [
        not correct_at(msgspec.structs.replace(e, but_for_going_on=True), limits[name].limits) for e in before
    ]
    assert not all(recounted)


def test_a_repetition_counts_only_where_the_work_cannot_be_finished() -> None:
    episode = play(scenario([{"work": 1}, {"say": "Hm.", "claim": "done"}]), "silence")
    stretches = episode.stretches._replace(repeating=13)
    of = msgspec.structs.replace(episode, stretches=stretches, but_for_going_on=True, truth="reachable")
    assert correct_at(of, settings()[0].limits)
    assert not correct_at(msgspec.structs.replace(of, truth="stuck"), settings()[0].limits)


def test_questions_of_the_user_keep_their_longest_stretches() -> None:
    of = scenario(
        [
            {"say": "Hm.", "claim": "none"},
            {"say": "Hm.", "claim": "none"},
            {"user": {"text": "And orders, please.", "asks": ["orders"]}},
            {"work": "rest"},
            {"say": "Done.", "claim": "done"},
        ]
    )
    episode = play(of, PRESETS["acceptance"].strategy.but(nudges=None))
    assert episode.stretches.fruitless_nudges >= 1


def test_who_never_ended_is_correct_by_no_thresholds() -> None:
    episode = play(scenario([{"work": "rest"}, {"say": "Done.", "claim": "done"}]), "silence")
    assert correct_at(episode, settings()[0].limits)
    assert not correct_at(msgspec.structs.replace(episode, ending="never"), settings()[0].limits)


def test_programs_are_in_an_order_of_their_own_on_what_they_play() -> None:
    suite = load_suites(("infinite_nudging",))
    study = thresholds_study(suite, STRATEGIES[:1], ("gated-loop",), suite[:1])
    table = study.tables[-1]
    assert (table.title, len(table.rows)) == ("The harnesses", 1)
    assert table.rows[0][1:3] in {("gated-loop", "0 of 1"), ("gated-loop", "1 of 1")}


def test_places_share_ties() -> None:
    assert places({"a": (-0.5, 0, 0), "b": (-0.9, 0, 0), "c": (-0.5, 0, 0)}) == {"a": 2, "b": 1, "c": 2}


def test_a_place_that_turns_is_marked() -> None:
    study = thresholds_study(load_suites(("infinite_nudging",)), STRATEGIES)
    table = next(table for table in study.tables if table.title.endswith("full checks"))
    marked = {row[1] for row in table.rows if TURNS in row[0]}
    turned = {who for each in study.figures["settings"] for who in each["turned"]["full"]}
    assert marked == turned
    assert marked
    assert all(
        -1 <= tau <= 1
        for each in study.figures["settings"]
        for tau in each["tau"].values()
        if tau is not None
    )
    assert len(STRATEGIES) > NAMED


def test_standings_are_shares_of_what_was_played() -> None:
    good = play(scenario([{"work": "rest"}, {"say": "Done.", "claim": "done"}]), "silence")
    bad: Episode = play(
        scenario(
            [{"say": "So far.", "claim": "partial"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]
        ),
        "silence",
    )
    found = standings({"x": [good, good, bad, bad]}, settings()[0].limits)
    assert found["x"] == (-0.5, 0.5, 0.5)


def test_a_program_is_played_as_a_run_plays_it(tmp_path: Any) -> None:
    program = tmp_path / "mine.py"
    program.write_text(
        "from evalkit_harness import serve\n\n"
        "serve(lambda job: {'ending': 'escalated', 'native': 'at once'})\n"
    )
    (first, *_) = load_suites(("infinite_nudging::five-reports-in-a-row",))
    found = played_by_programs([first], [str(program)])
    (episode,) = found[0].values()
    assert (episode.ending, episode.native, episode.no_requests) == ("escalated", "at once", True)
