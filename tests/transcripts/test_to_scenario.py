"""From a recording to a scenario: sound, in order, and without personal details."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.moves import verb_of
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.incidents.to_scenario import skeleton
from evalkit.transcripts.incidents.to_suite import Suite
from evalkit.transcripts.privacy import Replacer
from evalkit.transcripts.read import read_file, read_paths
from evalkit.transcripts.recording import Recording, Unreadable
from tests.transcripts import files
from tests.transcripts.test_formats import CASES


def recordings(tmp_path: Path, value: Any, how: str = "doc") -> list[Recording]:
    path = (files.write_lines if how == "lines" else files.write)(tmp_path / "r.json", value)
    return [found for found in read_file(path) if isinstance(found, Recording) and not found.parent]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_skeleton_of_every_format_loads_and_is_sound(tmp_path: Path, case: Any) -> None:
    (recording,) = recordings(tmp_path, case[2], case[1])
    (scenario,) = load_text(skeleton(recording))
    assert not [finding for finding in check_scenario(scenario, {}) if finding.fails]


def test_the_moves_are_the_recordings_in_order(tmp_path: Path) -> None:
    (recording,) = recordings(tmp_path, files.claude_code(), "lines")
    (scenario,) = load_text(skeleton(recording, "beta-was-open"))
    assert scenario.name == "beta-was-open"
    assert scenario.world.items == ("edit-1", "edit-2")
    verbs = [verb_of(move) for move in scenario.moves]
    assert verbs == ["call", "work", "call", "say", "work", "call", "say", "work", "say"]


def test_an_incident_is_reproduced_and_can_still_be_completed(tmp_path: Path) -> None:
    (recording,) = recordings(tmp_path, [files.tau_bench(reward=0.0)])
    (scenario,) = load_text(skeleton(recording))
    assert scenario.world.items[-1] == "left-undone"
    arena = Arena(scenario, Offered())
    silent = run_episode(arena, PRESETS["silence"].strategy, 0)
    assert (silent.outcome, silent.false_done, silent.turns) == ("done/reachable", True, 4)
    checked = run_episode(arena, PRESETS["acceptance"].strategy, 0)
    assert checked.outcome == "done/complete"


def test_the_users_answers_are_events_and_silence_stops_at_the_recorded_claim(tmp_path: Path) -> None:
    question = {"role": "assistant", "content": "Which records?"}
    messages = [*files.chat()[:2], question, {"role": "user", "content": "Both of them."}, *files.chat()[2:]]
    (recording,) = recordings(tmp_path, {"messages": messages, "complete": False})
    text = skeleton(recording)
    assert '- user: {text: "Both of them."}' in text
    (scenario,) = load_text(text)
    silent = run_episode(Arena(scenario, Offered()), PRESETS["silence"].strategy, 0)
    assert (silent.outcome, silent.false_done) == ("done/reachable", True)
    assert silent.turns == 5
    assert (scenario.expect.fails, scenario.expect.passes) == ("silence", "acceptance")  # type: ignore[union-attr]


def test_what_only_ever_failed_is_no_item(tmp_path: Path) -> None:
    messages = [
        *files.chat()[:2],
        files.chat_call(1, "update_record", record="gamma"),
        files.chat_answer(1, "Error: no such record"),
        *files.chat()[4:],
    ]
    (recording,) = recordings(tmp_path, {"messages": messages, "complete": False})
    text = skeleton(recording)
    assert '{call: list_items, reply: {error: true, text: "Error: no such record"}}' in text
    (scenario,) = load_text(text)
    assert scenario.world.items == ("update-record-1", "update-record-2", "left-undone")
    checked = run_episode(Arena(scenario, Offered()), PRESETS["acceptance"].strategy, 0)
    assert checked.outcome == "done/complete"


@pytest.mark.parametrize(
    ("expected", "cause", "items", "forbidden", "passes"),
    [
        (
            (("update_record", "alpha"), ("update_record", "beta"), ("update_record", "gamma")),
            "undone",
            3,
            0,
            True,
        ),
        ((("update_record", "alpha"),), "wrong act", 1, 1, False),
        ((("update_record", "alpha"), ("update_record", "gamma")), "both", 2, 1, False),
    ],
)
def test_what_was_undone_and_what_was_wrong_are_told_apart(
    tmp_path: Path, expected: Any, cause: str, items: int, forbidden: int, passes: bool
) -> None:
    result = files.tau_bench(reward=0.0)
    actions = [{"name": tool, "kwargs": {"record": record}} for tool, record in expected]
    result["info"]["task"]["actions"] = actions
    (recording,) = recordings(tmp_path, [result])
    text = skeleton(recording)
    assert f"({cause})" in text
    (scenario,) = load_text(text)
    assert (len(scenario.world.items), len(scenario.world.forbidden)) == (items, forbidden)
    contract = scenario.expect
    assert contract is not None
    assert (contract.fails, contract.passes) == ("silence", "acceptance" if passes else None)
    assert ("cannot be mended" in text) is not passes


def test_a_run_that_ended_by_its_own_rule_fails_by_it(tmp_path: Path) -> None:
    (recording,) = recordings(tmp_path, {**files.group_chat(), "is_correct": False})
    (scenario,) = load_text(skeleton(recording))
    assert scenario.expect is not None
    assert scenario.expect.fails == "keyword"


def test_a_suite_is_of_the_most_different_incidents_in_any_order(tmp_path: Path) -> None:
    results = [files.tau_bench(number) for number in range(5)]
    path = files.write(tmp_path / "results.json", results)
    other = files.write(tmp_path / "chat.json", {"messages": files.chat(), "complete": False})
    chosen = []
    for order in ((path, other), (other, path)):
        suite = Suite()
        for found in read_paths(order):
            assert isinstance(found, Recording)
            suite.add(found)
        chosen.append(list(suite.chosen(3)))
    assert chosen[0] == chosen[1]
    assert (suite.incidents, suite.runs) == (6, 6)
    # One of each kind first.
    assert [name.split("-")[1] for name, _ in chosen[0][:2]] == ["openai", "tau"]
    assert len({name for name, _ in chosen[0]}) == 3


def test_long_stretches_without_progress_are_cut_and_said_to_be(tmp_path: Path) -> None:
    asking = [{"role": "assistant", "content": "Which one?"}, {"role": "user", "content": "Any."}]
    reading: list[dict[str, Any]] = []
    for number in range(40):
        reading += [files.chat_call(number, "get_record", record=str(number)), files.chat_answer(number, "x")]
    messages = [*files.chat()[:2], *(asking * 22), *reading, *files.chat()[4:]]
    (recording,) = recordings(tmp_path, messages)
    text = skeleton(recording)
    assert "# 10 turns without progress left out" in text
    assert "# 36 turns without progress left out" in text
    (scenario,) = load_text(text)
    assert len(scenario.moves) < 40


def test_errors_repetitions_and_several_calls_in_a_turn_are_kept(tmp_path: Path) -> None:
    two = files.chat_call(5, "update_record", record="gamma")
    two["tool_calls"] += files.chat_call(6, "update_record", record="delta")["tool_calls"]
    messages = [
        *files.chat()[:2],
        files.chat_call(1, "update_record", record="alpha"),
        files.chat_answer(1, "Error: locked"),
        files.chat_call(2, "update_record", record="alpha"),
        files.chat_answer(2, "ok"),
        files.chat_call(3, "update_record", record="alpha"),
        files.chat_answer(3, "ok"),
        two,
        files.chat_answer(5, "ok"),
        files.chat_answer(6, "ok"),
        {"role": "assistant", "content": "Everything is done."},
    ]
    (recording,) = recordings(tmp_path, messages)
    text = skeleton(recording)
    assert '- {work: [update-record-1], again: true, reply: {error: true, text: "Error: locked"}}' in text
    assert "- {work: [update-record-1]}\n  - {work: [update-record-1], again: true}" in text
    assert "- turn:\n        - {work: [update-record-2]}\n        - {work: [update-record-3]}" in text


def test_nothing_to_script_is_refused(tmp_path: Path) -> None:
    result = files.tau_bench()
    result["traj"], result["info"]["error"] = [], "boom"
    (recording,) = recordings(tmp_path, [result])
    with pytest.raises(Unreadable, match="holds no model turn"):
        skeleton(recording)


def test_personal_details_are_replaced_wherever_they_stand(tmp_path: Path) -> None:
    name = {"first_name": "Ada", "last_name": "Lovelace"}
    profile = {"user_id": "ada_lovelace_1815", "name": name, "dob": "1815-12-10"}
    claim = (
        "Ada Lovelace (ada_lovelace_1815, born 1815-12-10): the key sk-proj-abcdefghijklmnop1234 "
        "and card 4111 1111 1111 1111 have been updated for Grace Hopper."
    )
    messages = [
        {"role": "user", "content": "My name is Grace Hopper, grace@navy.example or +1 202 555 0143."},
        files.chat_call(1, "get_profile", user_id="ada_lovelace_1815"),
        files.chat_answer(1, json.dumps(profile)),
        files.chat_call(2, "update_record", record="alpha"),
        files.chat_answer(2, "ok"),
        {"role": "assistant", "content": claim},
    ]
    (recording,) = recordings(tmp_path, messages)
    text = skeleton(recording)
    secrets = "Ada Lovelace lovelace 1815 Grace Hopper navy.example 555 sk-proj 4111"
    for secret in secrets.split():
        assert secret not in text
    assert "[NAME-1]" in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("write to a.b+c@mail.example.org now", "write to [EMAIL-1] now"),
        ("a@x.org, b@x.org, a@x.org", "[EMAIL-1], [EMAIL-2], [EMAIL-1]"),
        ("call (202) 555-0143", "call [PHONE-1]"),
        ("call +49 30 1234567", "call [PHONE-1]"),
        ("card 4111-1111-1111-1111", "card [CARD-1]"),
        ("order 1234567890123", "order 1234567890123"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: [SECRET-1]"),
        ("AKIAABCDEFGHIJKLMNOP", "[SECRET-1]"),
        ("ghp_abcdefghij0123456789", "[SECRET-1]"),
        ("postgres://bob:hunter22@db/x", "postgres://[SECRET-1]@db/x"),
        ("password: hunter22", "password: [SECRET-1]"),
        ("/home/bob/work and /Users/eve/x", "/home/[USER-1]/work and /Users/[USER-2]/x"),
        ("from 10.20.30.40", "from [IP-1]"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "[SECRET-1]"),
        ("flight on 2024-05-20 at 11:00 for $1,194", "flight on 2024-05-20 at 11:00 for $1,194"),
        ("commit and version 1.2.3 in src/main.py", "commit and version 1.2.3 in src/main.py"),
    ],
)
def test_forms_of_personal_details(text: str, kept: str) -> None:
    assert Replacer()(text) == kept


@given(st.text(max_size=200))
def test_replacing_twice_changes_nothing_more(text: str) -> None:
    replace = Replacer([("NAME", "Ada")])
    once = replace(text)
    assert replace(once) == once
