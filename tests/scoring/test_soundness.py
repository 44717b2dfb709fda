"""What the check says of a scenario: contradictions, remarks, contracts, how the ideal run went."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode
from evalkit.scoring.soundness import check_scenario, examine
from tests.helpers import play, scenario

LIST: dict[str, Any] = {"call": "list_items"}
REST: dict[str, Any] = {"work": "rest"}
DONE: dict[str, Any] = {"say": "All is done.", "claim": "done"}
PLAIN = [LIST, {"work": 1}, {"say": "One is done.", "claim": "partial"}, REST, DONE]


def messages(model: Any, *, fails: bool = True, **fields: Any) -> list[str]:
    findings = check_scenario(scenario(model, **fields), {})
    return [finding.message for finding in findings if finding.fails == fails]


def test_a_sound_scenario_is_told_in_a_line() -> None:
    checked = examine(scenario(PLAIN), {})
    assert checked.sound
    assert checked.findings == ()
    assert checked.ideal == (
        "list_items, do_item, claims partial [nudges], do_item (2 turns), claims done "
        "-> done/complete after 6 turns (oracle)"
    )


@pytest.mark.parametrize(
    ("move", "said"),
    [
        ({"fault": {"status": 503, "times": 2}}, "fault http_503 [asks again] (2 turns)"),
        ({"pause": {}}, "pause (runs web_search) [resends]"),
        ({"truncate": "text", "until": "higher_limit"}, "cut off (says) [raises the limit]"),
        ({"refuse": {}, "until": "other_model"}, "refusal (empty) [asks another model]"),
        ({"background": {"polls": 3}}, "in progress [polls] (3 turns)"),
        ({"empty": True}, "empty [nudges]"),
        ({"think": "Well."}, "thinks [nudges]"),
        ({"work": 2, "parallel": True}, "do_item x2"),
    ],
)
def test_every_kind_of_answer_has_its_words(move: Any, said: str) -> None:
    line = examine(scenario([LIST, move, REST, DONE]), {}).ideal
    assert line.startswith(f"list_items, {said}, "), line


def test_a_long_run_is_told_by_its_ends() -> None:
    pair = [{"call": "read_item", "with": {"item": "users"}}, {**LIST}]
    line = examine(scenario([LIST, {"repeat": {"times": 20, "do": pair}}, REST, DONE]), {}).ideal
    assert "(11 more)" in line
    assert line.endswith("do_item (3 turns), claims done -> done/complete after 45 turns (oracle)")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"world": {"forbidden": ["users"]}}, "world.forbidden: 'users' is an item"),
        (
            {"accept": ["done/complete", "done/spoiled"]},
            "accept: done/spoiled: a spoiled run",
        ),
    ],
)
def test_declarations_that_cannot_both_hold(fields: Any, said: str) -> None:
    assert [message for message in messages(PLAIN, **fields) if message.startswith(said)]


def test_a_forbidden_item_may_be_skipped() -> None:
    skips = {"say": "Done.", "claim": "done", "finish": {"skipped": ["users"], "reason": "it is frozen"}}
    world = {"forbidden": ["users"], "skippable": ["users"]}
    model = [LIST, {"work": ["orders", "invoices"]}, skips]
    assert messages(model, world=world) == []


def test_completed_and_skipped_at_once() -> None:
    both = {**DONE, "finish": {"completed": ["users", "orders"], "skipped": ["users"], "reason": "frozen"}}
    found = messages([LIST, REST, both])
    assert found == ["finish: 'users' is reported completed and skipped at once"]


def test_calls_that_no_tool_understands_are_named() -> None:
    model = [LIST, {"call": "read_item", "with": {"item": "users", "depth": 2}}, REST, DONE]
    assert messages(model) == []
    assert messages(model, fails=False) == ["call: read_item has no argument 'depth'; it takes: item"]
    raw = {"raw": {"content": [{"call": "read_items", "with": {}}]}}
    (unknown,) = messages([LIST, raw, REST, DONE], fails=False)
    assert unknown.startswith("call: no tool of the world is named 'read_items'; known: list_items")


def test_a_preset_that_gets_where_the_driver_gives_up() -> None:
    shy = [LIST, {"repeat": {"times": 10, "do": [{"say": "Shall I go on?"}]}}, REST, DONE]
    (found,) = messages(shy)
    assert found.startswith("keyword completes it (done/complete after 15 turns) and the ideal driver")
    assert messages([LIST, {"repeat": {"times": 7, "do": [{"say": "Shall I go on?"}]}}, REST, DONE]) == []


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"fails": "silence", "passes": "gate"}, []),
        ({"fails": "gate"}, ["expect: gate passes it"]),
        ({"passes": "silence"}, ["expect: silence fails it"]),
        ({"fails": "nobody"}, ["expect: no preset 'nobody'; known: silence, "]),
    ],
)
def test_a_contract_is_held(expect: Any, said: list[str]) -> None:
    found = messages(PLAIN, expect=expect)
    assert len(found) == len(said)
    assert all(message.startswith(start) for message, start in zip(found, said, strict=True))


def test_what_nobody_can_finish_is_refused_where_it_is_not_meant() -> None:
    blocked = [LIST, {"work": 1}, {"say": "The rest is locked.", "claim": "blocked"}]
    (found,) = messages(blocked, accept=["done/complete"])
    assert found.startswith("the ideal harness is not correct on it")
    assert messages(blocked) == messages(blocked, accept=["escalated/stuck"]) == []


def test_twins_name_each_other() -> None:
    moves = [{"say": "x"}]
    mine = scenario(moves, twin="another")
    assert messages_of(mine, {}) == ["twin: no scenario 'another'"]
    other = msgspec.structs.replace(mine, name="another", twin=None)
    (said,) = messages_of(mine, {"another": other})
    assert said == "twin: 'another' does not name this scenario as its twin"


def messages_of(loaded: Scenario, known: dict[str, Scenario]) -> list[str]:
    return [found.message for found in check_scenario(loaded, known) if found.message.startswith("twin")]


def test_twins_may_differ_by_a_repetition_that_the_ideal_driver_would_not_make() -> None:
    def half(name: str, twin: str, effect: str) -> Scenario:
        lost = {"work": 1, "reply": {"text": "timed out", "error": True, "effect": effect}}
        model = [{"call": "list_payments"}, lost, {"work": ["T-1"], "again": True}, DONE]
        world = {"kind": "ledger", "items": ["T-1"]}
        return scenario(model, scenario=name, twin=twin, world=world)

    one, other = half("a", "b", "applied"), half("b", "a", "none")
    assert [play(of, "silence").outcome for of in (one, other)] == ["done/spoiled", "done/complete"]
    assert [ideal_episode(Arena(of, Offered()), 0).outcome for of in (one, other)] == ["done/complete"] * 2
    assert messages_of(one, {"b": other}) == []
