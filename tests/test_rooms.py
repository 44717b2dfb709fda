"""What each room is for, in one test each, from the lowest room to the highest: a tour of the package.

One scenario goes through all of them: two of three letters are sent, the model reports, and goes on if asked.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit import judge
from evalkit.cli import main
from evalkit.containment.folders import temporary_folder
from evalkit.core.decisions import End
from evalkit.core.requests import Request
from evalkit.core.turns import Text, make_turn
from evalkit.drivers.in_process import LoopMind, StageInstruments, drive
from evalkit.experiments.claims.about_stopping import reports_end_the_run
from evalkit.experiments.claims.bench import Bench
from evalkit.experiments.coverage.cells import label_cells
from evalkit.experiments.studies.looks import expected
from evalkit.fit.bounds import sentence
from evalkit.fit.recorded_runs import Seen
from evalkit.loop.state import bind, start
from evalkit.loop.transitions import on_turn
from evalkit.media.medium import Medium, MediumError, check_medium, unplayable
from evalkit.models.spending import Usage, price_of
from evalkit.reports.markdown import report_markdown
from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.life import Act, Life, Part
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.worker_episode import run_worker_episode
from evalkit.search.proofs.prove import prove
from evalkit.secrets.cleaning import clean_text
from evalkit.stats.summary import summarize
from evalkit.strategies.condition import Condition
from evalkit.strategies.presets import PRESETS
from evalkit.wire.answers import Outgoing
from evalkit.wire.codecs import CODECS
from evalkit.worlds import make_world

TEXT = """
scenario: two-of-three-letters
family: partial_completion
summary: Two of three letters are sent, the model reports, and goes on if it is asked.
task: {prompt: Send every letter., done_when: Every letter is sent.}
world: {kind: items, items: [first, second, third]}
model:
  - call: list_items
  - work: 2
  - {say: Two of three are sent., claim: partial}
  - work: rest
  - {say: All three are sent., claim: done}
"""


def letters() -> Scenario:
    (scenario,) = load_text(TEXT)
    return scenario


def test_secrets_takes_out_of_a_text_what_nobody_may_read() -> None:
    assert "sk-ant-api03" not in clean_text(f"the key is sk-ant-api03-{'Ab9' * 20}")


def test_core_is_values_a_turn_has_a_kind_by_its_label_and_content() -> None:
    said = (Text("Two of three are sent."),)
    assert [make_turn(said, stop).kind for stop in ("end_turn", "pause_turn", "max_tokens", "refusal")] == [
        "content",
        "pause",
        "cut_off",
        "refusal",
    ]


def test_containment_holds_what_evalkit_starts_and_sweeps_it_away(tmp_path: Path) -> None:
    with temporary_folder("tour") as place:
        assert Path(place.folder).is_dir()
    assert not Path(place.folder).exists()


def test_worlds_have_items_tools_and_an_oracle() -> None:
    world = make_world(letters().world)
    assert not world.holds()
    for item in letters().world.items:
        world.perform("do_item", {"item": item})
    assert world.holds()


def test_scenarios_are_a_language_and_a_player_that_says_what_is_written() -> None:
    player = Arena(letters(), PRESETS["silence"].strategy.offers).player
    _, first = player.advance(player.start, None, 0)
    assert [call.tool for call in first.turn.calls] == ["list_items"]


def test_strategies_are_a_condition_and_a_policy_for_each_stop_reason() -> None:
    gate = PRESETS["gate"].strategy
    assert (gate.pause, gate.cut_off) == ("resend", "raise_limit")
    assert isinstance(gate.done_when, Condition)


def test_loop_is_a_strategy_as_functions_over_a_small_state() -> None:
    strategy = PRESETS["silence"].strategy
    stage = Arena(letters(), strategy.offers).stage(0)
    before, said = start(strategy, stage.task), make_turn((Text("Two are sent."),), "end_turn")
    _, action, verdict = on_turn(bind(strategy, stage.task), before, said, StageInstruments(stage))
    assert isinstance(action, End)
    assert verdict is not None
    assert verdict.met


def test_wire_says_a_turn_in_each_providers_shape_and_reads_it_back() -> None:
    turn = make_turn((Text("Two of three are sent."),), "end_turn")
    for spoken in CODECS.values():
        assert spoken.decode(spoken.body(Outgoing(turn, "msg_1"))).turn.text == turn.text


def test_stage_is_where_script_world_and_observer_meet() -> None:
    stage = Arena(letters(), PRESETS["silence"].strategy.offers).stage(0)
    assert stage.ask(Request()).calls[0].tool == "list_items"


def test_models_that_are_not_scripted_have_a_price() -> None:
    price = price_of("claude-sonnet-4-5")
    assert price is not None
    assert price.of(Usage(input=1_000_000)) == 3.0


def test_drivers_carry_out_what_the_loop_decides_until_it_ends() -> None:
    stage = Arena(letters(), PRESETS["silence"].strategy.offers).stage(0)
    ending = drive(LoopMind(PRESETS["silence"].strategy, stage.task, stage), stage)
    assert (ending.kind, stage.turns) == ("done", 4)


def test_worker_does_the_same_from_a_queue_and_a_record() -> None:
    silence = PRESETS["silence"].strategy
    assert run_worker_episode(Arena(letters(), silence.offers), silence, 0).outcome == "done/reachable"


def test_scoring_asks_the_world_what_was_true() -> None:
    silence, acceptance = (PRESETS[name].strategy for name in ("silence", "acceptance"))
    early = run_episode(Arena(letters(), silence.offers), silence, 0)
    assert (early.outcome, early.premature_stop, early.false_done) == ("done/reachable", True, True)
    assert run_episode(Arena(letters(), acceptance.offers), acceptance, 0).outcome == "done/complete"


def test_media_are_what_a_model_is_met_over() -> None:
    assert unplayable(Medium(), letters(), ()) == ""
    assert Medium(model="anthropic:claude-sonnet-4-5").live
    with pytest.raises(MediumError, match="scripted runs know their truth"):
        check_medium(Medium(probe=1))


def played(folder: Path) -> Store:
    plan = make_plan([letters()], {"<text>": TEXT}, ("silence", "acceptance"), 1, None)
    store = Store.create(folder, plan.recipe)
    run_plan(plan, store, 1)
    return store


def test_runs_keep_every_episode_of_a_plan_in_one_folder(tmp_path: Path) -> None:
    store = played(tmp_path / "run")
    rows = list(store.rows("select strategy, outcome from episodes order by cell"))
    assert rows == [("silence", "done/reachable"), ("acceptance", "done/complete")]


def test_stats_makes_rates_of_them_each_on_its_base(tmp_path: Path) -> None:
    rows = summarize(played(tmp_path / "run"))["rows"]
    silence = next(row for row in rows if row["strategy"] == "silence" and row["checks"] == "all")
    assert (silence["false_done"]["count"], silence["false_done"]["base"]) == (1, 1)


def test_coverage_says_which_stop_reasons_a_library_plays() -> None:
    assert "end_turn" in str(label_cells([letters()]))


def test_claims_are_checked_by_experiments_that_can_come_out_false() -> None:
    bench = Bench([letters()], load_suites(("populations",)), seeds=40)
    assert reports_end_the_run(bench).shown


def test_studies_ask_one_question_in_settings_made_for_it() -> None:
    (first, *_, tenth) = expected("independent", 0.1, 0.05, 10)
    assert (round(first, 4), round(tenth, 4)) == (0.1, 0.6513)


def test_transcripts_are_runs_of_other_tools_read_as_one_kind_of_thing(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "All three are sent."}
    run = {"messages": [{"role": "user", "content": "Send every letter."}, said], "complete": False}
    (tmp_path / "runs.jsonl").write_text(json.dumps(run))
    judged = judge(tmp_path / "runs.jsonl", "silence", out=tmp_path / "judged")
    assert [row["strategy"] for row in judged["rows"]] == ["recorded", "silence"]


def test_search_proves_what_no_script_can_do() -> None:
    found = {result.property: result.answer for result in prove(PRESETS["silence"].strategy).results}
    assert found["no_false_done"] == "refuted"


def test_fit_bounds_what_nobody_tried_on_recordings() -> None:
    parts = (Part((Act(changes=True),), "done"),)
    runs = [Seen(Life("letters", parts, "done", truth), ()) for truth in ("right", "undone", "wrong act")]
    assert "completes 33 to 67 % of the 3 recorded dones" in sentence(runs)


def test_reports_tell_it_to_a_reader(tmp_path: Path) -> None:
    assert "acceptance" in report_markdown(summarize(played(tmp_path / "run")), "")


def test_cli_is_words_in_words_out_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "letters.yaml").write_text(TEXT)
    words = ["run", str(tmp_path / "letters.yaml"), "-s", "silence", "--json", "--out", str(tmp_path / "run")]
    said = CliRunner().invoke(main, words)
    assert (said.exit_code, json.loads(said.stdout)["run"]["episodes"]) == (0, 1)
