"""The reader as the model: a game decides what a run decides, and what it knows is so."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.reports.transcript import Recorder, Step, replay
from evalkit.scenarios.loader import load_text
from evalkit.search.interactive import Game
from evalkit.search.proofs.environment import Setting
from evalkit.strategies.presets import PRESETS

PLAYS = 1_000


class Watched:
    """A game whose steps are kept as they are shown: of each move only what is new."""

    def __init__(self, name: str, setting: Setting | None = None) -> None:
        self.recorder = Recorder()
        self.game = Game(PRESETS[name].strategy, setting, attach=self._begin, watch=self._tell)
        self.shown: list[Step] = []

    def _begin(self, stage: object) -> None:
        self.recorder = Recorder()
        self.recorder.attach(stage)

    def _tell(self, *told: object) -> None:
        self.recorder(*told)  # type: ignore[arg-type]

    def play(self, name: str) -> None:
        self.game.play(next(move for move in self.game.moves if move.name == name))
        self.shown += self.recorder.steps[len(self.shown) :]


@pytest.mark.long
def test_a_thousand_plays_decide_what_runs_decide() -> None:
    names = sorted(PRESETS)
    by_name = {name: Watched(name, Setting(2)) for name in names}
    choose = random.Random(20)
    ended = 0
    for number in range(PLAYS):
        name = names[number % len(names)]
        watched = by_name[name]
        watched.game.restart()
        watched.shown = []
        for _ in range(choose.randint(1, 6)):
            watched.play(choose.choice(watched.game.moves).name)
            if watched.game.position.episode is not None:
                ended += 1
                break
        (scenario,) = load_text(watched.game.text("played"))
        run = replay(scenario, PRESETS[name].strategy, 0)
        assert run.steps[: len(watched.shown)] == tuple(watched.shown), watched.game.text("played")
        if watched.game.position.episode is not None:
            assert watched.game.position.episode.outcome == run.episode.outcome
            assert len(run.steps) == len(watched.shown)
    assert 200 < ended < PLAYS


def test_what_is_known_comes_true() -> None:
    watched = Watched("stop_hook")
    watched.play("lists the items")
    known = watched.game.knows()
    assert known.moves is not None
    for move in known.moves:
        assert watched.game.position.episode is None
        watched.play(move)
    episode = watched.game.position.episode
    assert episode is not None
    assert episode.false_done


def test_a_checklist_is_ticked_through() -> None:
    assert Watched("checklist").game.knows().moves is not None


@pytest.mark.long
@pytest.mark.parametrize("name", ["gate", "acceptance"])
def test_what_is_proved_stays_impossible_on_the_way(name: str) -> None:
    watched = Watched(name)
    for move in ("lists the items", "reports progress", "does alpha", "says nothing"):
        known = watched.game.knows()
        assert known.moves is None
        assert known.sure
        watched.play(move)


def test_nothing_is_known_of_an_end() -> None:
    watched = Watched("silence")
    watched.play("reports progress")
    assert watched.game.knows().moves is None
    with pytest.raises(ValueError, match="has ended"):
        watched.game.play(watched.game.moves[0])


@pytest.mark.long
def test_a_false_done_can_be_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = "l\nw\nr\nu\nw\nnonsense\ns\nq\n"
    said = CliRunner().invoke(main, ["play", "silence"], input=keys, catch_exceptions=False)
    assert said.exit_code == 0
    assert "a false done is 1 move away" in said.output
    assert "done? yes: " in said.output
    assert "ended: done/reachable after 3 turns; a false done" in said.output
    assert "taken back" in said.output
    assert "'nonsense' is no move here" in said.output
    assert "evalkit run played.yaml -s silence" in said.output
    run = CliRunner().invoke(main, ["run", "played.yaml", "-s", "silence", "--out", "r", "--no-charts"])
    assert run.exit_code == 0, run.output


def test_an_unknown_strategy_is_told(tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["play", "gaet"])
    assert said.exit_code == 2
