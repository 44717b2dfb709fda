"""Over the wire, on recordings, and live: the scripted server stands in for the provider."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.tasks import Offered
from evalkit.media.medium import Medium, MediumError, check_medium
from evalkit.media.players import player_of
from evalkit.media.recordings import note_recording, replay_medium
from evalkit.models.cassettes import Missed
from evalkit.models.spending import LimitReached, price_of, price_table
from evalkit.runs.plan import PlanError, make_plan
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from tests.helpers import document, scenario

MODEL: list[Any] = [
    {"call": "list_items"},
    {"work": 1},
    {"say": "1 of 3 is done; two remain.", "claim": "partial"},
    {"fault": {"status": 529}},
    {"work": "rest"},
    {"say": "All items have been done.", "claim": "done"},
]
STRATEGIES = ("silence", "gate", "finish_tool", "keyword")


def play(medium: Medium, loaded: Scenario, strategy: str, seed: int = 0) -> Episode:
    chosen = PRESETS[strategy].strategy
    return player_of(medium)(Arena(loaded, chosen.offers), chosen, seed)


def flags(episode: Episode) -> dict[str, Any]:
    """What must not depend on the medium: all but the tokens, which are the provider's own count there."""
    names = set(episode.__struct_fields__) - {"tokens", "excess_tokens", "output_tokens", "stops", "note"}
    return {name: getattr(episode, name) for name in sorted(names)}


@pytest.mark.parametrize("dialect", ["anthropic", "responses", "chat"])
@pytest.mark.parametrize("streamed", [False, True])
def test_recorded_and_replayed_like_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, streamed: bool
) -> None:
    loaded = scenario(MODEL)
    wanted = {name: flags(play(Medium(), loaded, name)) for name in STRATEGIES}
    record = Medium(dialect=dialect, streamed=streamed, record=str(tmp_path))
    note_recording(record, (loaded,), STRATEGIES, 1)
    assert {name: flags(play(record, loaded, name)) for name in STRATEGIES} == wanted
    replay, origin = replay_medium(tmp_path)
    assert (origin.scripted, origin.strategies, replay.dialect) == (True, STRATEGIES, dialect)

    def refuse(*args: Any, **fields: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert {name: flags(play(replay, loaded, name)) for name in STRATEGIES} == wanted


def test_strategies_share_the_recorded_prefix(tmp_path: Path) -> None:
    loaded = scenario(MODEL)
    record = Medium(dialect="anthropic", record=str(tmp_path))
    counts = []
    for name in ("silence", "acceptance", "verifier_claim"):
        play(record, loaded, name)
        (file,) = tmp_path.glob("a-scenario.json")
        counts.append(len(json.loads(file.read_text())["interactions"]))
    # silence stops at the report; acceptance names the open item, the reader of the claim only says go on.
    assert counts == [3, 7, 11]


def test_a_changed_scenario_is_a_miss_or_stale_and_never_a_result(tmp_path: Path) -> None:
    loaded = scenario(MODEL)
    record = Medium(dialect="anthropic", record=str(tmp_path))
    note_recording(record, (loaded,), STRATEGIES, 1)
    play(record, loaded, "gate")
    replay, _ = replay_medium(tmp_path)
    asked = scenario(MODEL, task={"prompt": "Do every item twice."})
    with pytest.raises(Missed, match=r"recorded .*Do every item\..*asked .*Do every item twice\."):
        play(replay, asked, "gate")
    says = scenario([*MODEL[:-1], {"say": "Finished.", "claim": "done"}])
    with pytest.raises(Missed, match="stale cassette"):
        play(replay, says, "gate")


class Provider:
    """The scripted server in the part of a provider, for one episode after the other."""

    def __init__(self, loaded: Scenario) -> None:
        self.loaded = loaded
        self.server = Server().__enter__()

    def url(self) -> str:
        # The model is scripted, the world of the run is the harness's own: the server's stage only talks.
        stage = Arena(self.loaded, Offered()).stage(0, trace=False)
        return self.server.url(self.server.add(WireEpisode(stage)))


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy-key-for-tests")


@pytest.mark.usefixtures("key")
class TestLive:
    def live(self, loaded: Scenario, **fields: Any) -> Medium:
        provider = Provider(loaded)
        settings = {"model": "anthropic:some-model", "base_url": provider.url(), "max_tokens": 1_000_000}
        return Medium(**{**settings, **fields})

    @pytest.mark.long
    def test_truth_is_complete_or_incomplete(self) -> None:
        loaded = scenario(MODEL)
        stopped = play(self.live(loaded), loaded, "silence")
        assert (stopped.outcome, stopped.premature_stop) == ("done/incomplete", None)
        assert stopped.false_done
        finished = play(self.live(loaded), loaded, "acceptance")
        assert finished.outcome == "done/complete"
        assert finished.correct

    @pytest.mark.long
    def test_a_probe_asks_the_counterfactual(self) -> None:
        loaded = scenario(MODEL)
        probed = play(self.live(loaded, probe=10), loaded, "silence")
        assert (probed.outcome, probed.premature_stop, probed.silent) == ("done/reachable", True, True)
        short = play(self.live(loaded, probe=1), loaded, "silence")
        assert short.outcome == "done/not_reached_in_1"
        assert short.premature_stop is None

    @pytest.mark.long
    def test_a_claim_is_read_by_rules(self) -> None:
        loaded = scenario(MODEL)
        read = play(self.live(loaded), loaded, "verifier_claim")
        assert read.outcome == "done/complete"
        assert read.decisions == (1, 0, 1, 0)

    @pytest.mark.long
    def test_recorded_live_runs_replay_without_a_key(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded = scenario(MODEL)
        live = self.live(loaded, record=str(tmp_path))
        note_recording(live, (loaded,), ("acceptance",), 1)
        wanted = play(live, loaded, "acceptance")
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        replay, origin = replay_medium(tmp_path)
        check_medium(replay)
        assert origin.scripted is False
        assert play(replay, loaded, "acceptance") == wanted
        assert "dummy-key-for-tests" not in "".join(file.read_text() for file in tmp_path.iterdir())

    def test_the_spending_limit_comes_before_the_call(self) -> None:
        loaded = scenario(MODEL)
        with pytest.raises(LimitReached, match="--max-tokens 5,000"):
            play(self.live(loaded, max_tokens=5_000), loaded, "acceptance")


def test_prices_are_dated_and_found_by_the_longest_name() -> None:
    assert price_table().as_of == "2026-11-30"
    assert price_of("gpt-5-mini-2026") == price_table().prices["gpt-5-mini"]
    assert price_of("openai/gpt-5-mini") == price_table().prices["gpt-5-mini"]
    assert price_of("no-such-model") is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"record": "a", "replay": "b"}, "exclude each other"),
        ({"record": "a"}, "--record needs a model on the wire"),
        ({"probe": 3}, "--probe is for live models"),
        ({"model": "claude"}, "expected scripted or PROVIDER:NAME of anthropic, openai, openai-chat"),
        ({"model": "anthropic:x", "max_tokens": 1}, "ANTHROPIC_API_KEY is not set"),
    ],
)
def test_a_medium_that_cannot_work(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], message: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(MediumError, match=message):
        check_medium(Medium(**fields))


@pytest.mark.usefixtures("key")
def test_a_live_run_needs_a_limit_and_a_known_price() -> None:
    with pytest.raises(MediumError, match="needs a spending limit"):
        check_medium(Medium(model="anthropic:claude-sonnet-x"))
    with pytest.raises(MediumError, match="no price for 'mystery'"):
        check_medium(Medium(model="anthropic:mystery", max_usd=1.0))
    check_medium(Medium(model="anthropic:claude-sonnet-x", max_usd=1.0))


def test_what_a_dialect_cannot_say_is_reported_and_not_run() -> None:
    text = yaml.safe_dump(document([{"pause": {}}, *MODEL], scenario="paused"))
    loaded = load_text(text, "s.yaml")
    plan = make_plan(loaded, {"s.yaml": text}, ("gate",), 1, medium=Medium(dialect="chat"))
    assert plan.episodes() == 0
    assert "paused" in plan.recipe.not_expressible
    with pytest.raises(PlanError, match="exclude"):
        make_plan(loaded, {}, ("gate",), 1, medium=Medium(record="a", replay="b"))


def test_in_process_is_the_loop_itself() -> None:
    assert player_of(Medium()) is run_episode
