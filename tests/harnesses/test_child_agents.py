"""Child agents of programs: within the call of a tool, or in a conversation that the program holds itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.manifest import Harness
from evalkit.scenarios.moves import DelegateMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses
from evalkit.strategies.presets import PRESETS
from tests.harnesses.episodes import PLAIN, played, program

pytestmark = pytest.mark.long

#: A program over the Messages API by hand, which runs the tool like any other.
WITHIN = """
import json, urllib.request
from evalkit_harness import serve

def ask(job, messages, tools):
    body = {"model": job.model, "max_tokens": 4096, "messages": messages, "tools": tools}
    request = urllib.request.Request(job.anthropic_url + "/v1/messages", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))

def converse(job, prompt):
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = ask(job, messages, job.tools)
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return "".join(b["text"] for b in answer["content"] if b["type"] == "text")
        said = zip(calls, answered(job, calls))
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": text} for call, text in said]
        messages.append({"role": "user", "content": results})

def answered(job, calls):
    return [called(job, call) for call in calls]

def called(job, call):
    return job.call(call["name"], call["input"])

def run(job):
    converse(job, job.prompt)

serve(run)
"""
#: The same with child agents of its own.
ITSELF = WITHIN.replace(
    """    return job.call(call["name"], call["input"])""",
    """    if call["name"] != "delegate":
        return job.call(call["name"], call["input"])
    return converse(job, f"You are the helper {call['input']['name']}. {job.prompt}")""",
)
#: And all of a turn at once.
AT_ONCE = ITSELF.replace(
    """    return [called(job, call) for call in calls]""",
    """    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda call: called(job, call), calls))""",
)
#: The last call of a turn first.
BACKWARDS = ITSELF.replace(
    "    return [called(job, call) for call in calls]",
    "    return [called(job, call) for call in calls[::-1]][::-1]",
)
SIDE = [{"name": "helper", "kind": "child", "contains": "You are the helper"}]
MANIFEST: dict[str, Any] = {"dialect": "anthropic", "resident": True, "side": SIDE, "events": {"crash": True}}
DELEGATES = [s for s in load_suites() if any(isinstance(move, DelegateMove) for move in walk(s.moves))]
EVENTLESS = [s for s in DELEGATES if not s.events]
#: In these the child's script ends without last words: what its parent is told is the program's own wording.
NO_WORDS = (
    "helper-cut-off-in-its-share",
    "helper-dies-after-a-tool-result",
    "helper-words-taken-for-its-answer",
)
SPENT = ("tokens", "helper_turns", "helper_tokens")

TWO = """
scenario: two-helpers
family: background_work
task: {prompt: Paint every fence., done_when: Every fence is painted.}
world: {kind: items, items: [north, south, east]}
model:
  - call: list_items
  - turn:
      - delegate: {name: anna, do: [{work: [north]}, {say: "The north is painted."}]}
      - delegate: {name: bert, do: [{work: [south]}, {say: "The south is painted."}]}
  - work: rest
  - {say: All are painted., claim: done}
"""


def all_of(harness: Harness, scenarios: list[Scenario]) -> list[tuple[Episode, Kept]]:
    contract, runner = contract_of(harness), runner_of(harness, seconds=20.0)
    with server_for_harnesses() as server:
        try:
            return [
                run_foreign(Arena(each, contract.offered), 0, contract, runner, server) for each in scenarios
            ]
        finally:
            runner.close()


def figures(episode: Episode) -> tuple[object, ...]:
    shown = (episode.outcome, episode.correct, episode.turns, episode.tokens, episode.helper_turns)
    return (*shown, episode.helper_tokens, episode.duplicate_effects, episode.causes)


@pytest.mark.parametrize("text", [WITHIN, ITSELF], ids=["within the call", "itself"])
def test_the_library_comes_out_as_with_the_reference_loop(tmp_path: Path, text: str) -> None:
    episodes = all_of(program(tmp_path, text, **MANIFEST), EVENTLESS)
    silence = PRESETS["silence"].strategy
    own = [run_episode(Arena(each, silence.offers), silence, 0) for each in EVENTLESS]
    assert len(EVENTLESS) == 15
    assert sum(episode.helper_turns for episode in own) > 30
    for (episode, kept), expected, each in zip(episodes, own, EVENTLESS, strict=True):
        if text is ITSELF and each.name in NO_WORDS:
            expected = msgspec.structs.replace(expected, **{name: getattr(episode, name) for name in SPENT})
        assert figures(episode) == figures(expected), each.name
        assert "tools that were never offered" not in kept.seen
        assert ("child agents' requests" in kept.seen) == (text is ITSELF and episode.helper_turns > 0)


@pytest.mark.parametrize(
    "text", [WITHIN, ITSELF, BACKWARDS, AT_ONCE], ids=["within the call", "itself", "backwards", "at once"]
)
def test_several_children_are_told_apart(tmp_path: Path, text: str) -> None:
    episode, kept = played(program(tmp_path, text, **MANIFEST), text=TWO)
    assert (episode.outcome, episode.correct, episode.helper_turns) == ("done/complete", True, 4)
    if text is WITHIN:
        return
    assert kept.seen["child agents' requests"] == {"anna": 2, "bert": 2}
    anna = [step for step in kept.exchanges if step.by == "anna"]
    assert [step.number for step in anna] == [1, 2]
    assert [result["text"] for step in anna for result in step.results] == ["north: done"]


@pytest.mark.parametrize(("text", "offered"), [(TWO, True), (PLAIN, False)])
def test_the_tool_is_offered_where_the_model_uses_it(tmp_path: Path, text: str, offered: bool) -> None:
    names = WITHIN.replace(
        "    converse(job", "    print([tool['name'] for tool in job.tools])\n    converse(job"
    )
    _, kept = played(program(tmp_path, names, **MANIFEST), text=text)
    assert ("'delegate'" in kept.output) == offered


AGAIN = ITSELF.replace(
    '    return converse(job, f"You',
    "    converse(job, f\"You are the helper {call['input']['name']}. {job.prompt}\")\n"
    '    return converse(job, f"ONCE MORE: You',
)


def test_a_child_that_is_asked_in_another_conversation_says_its_answer_again(tmp_path: Path) -> None:
    episode, kept = played(program(tmp_path, AGAIN.replace("ONCE MORE", "Once more"), **MANIFEST), text=TWO)
    # In words of its own it has forgotten all, and is told what came of it.
    said = [block["text"] for step in kept.exchanges if step.by == "anna" for block in step.blocks]
    assert said[1:] == ["The north is painted."] * 2
    assert (episode.outcome, episode.correct, episode.helper_turns) == ("done/complete", True, 6)


def test_a_child_that_is_asked_the_same_again_does_it_twice(tmp_path: Path) -> None:
    episode, _ = played(program(tmp_path, AGAIN.replace("ONCE MORE: ", ""), **MANIFEST), text=TWO)
    assert (episode.outcome, episode.helper_turns, episode.duplicate_effects) == ("done/complete", 8, 2)


def test_two_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (twins,) = (each for each in DELEGATES if each.name == "twins-in-one-batch")
    ((_, kept),) = all_of(program(tmp_path, AT_ONCE, **MANIFEST), [twins])
    assert kept.seen["child agents' requests"] == {"painter": 2, "painter (2)": 2}
    for name in kept.seen["child agents' requests"]:
        own = [step for step in kept.exchanges if step.by == name]
        (called,), (answered,) = own[0].blocks, own[0].results
        assert answered["text"].removesuffix(": done") in called["text"]


def test_a_child_whose_words_are_lost_is_an_altered_result(tmp_path: Path) -> None:
    drops = ITSELF.replace('return converse(job, f"You', 'converse(job, f"You').replace(
        '{job.prompt}")', '{job.prompt}")\n    return ""'
    )
    episode, _ = played(program(tmp_path, drops, **MANIFEST), text=TWO)
    assert (episode.outcome, episode.altered_results) == ("done/complete", 2)


def test_a_child_that_begins_again_is_asked_anew(tmp_path: Path) -> None:
    # It gives each child up behind its first request, and begins its conversation again.
    forgets = ITSELF.replace(
        "def called(job, call):",
        "def called(job, call):\n"
        "    if call['name'] == 'delegate':\n"
        "        prompt = f\"You are the helper {call['input']['name']}. {job.prompt}\"\n"
        "        ask(job, [{'role': 'user', 'content': prompt}], job.tools)",
    )
    episode, kept = played(program(tmp_path, forgets, **MANIFEST), text=TWO)
    assert kept.seen["child agents' requests"] == {"anna": 3, "bert": 3}
    # As in the parent's conversation, the same request finds the script where it stood at it.
    assert (episode.outcome, episode.helper_turns, episode.duplicate_effects) == ("done/complete", 6, 0)


def test_a_cut_off_call_of_a_child_is_no_call(tmp_path: Path) -> None:
    text = TWO.replace("{work: [north]}", "{truncate: {work: north}, parses: true}")
    episode, _ = played(program(tmp_path, ITSELF, **MANIFEST), text=text)
    assert episode.ran_cut_off_call


def test_a_child_beyond_a_limit_of_tokens(tmp_path: Path) -> None:
    text = TWO.replace("model:", "limits: {tokens: 80}\nmodel:")
    itself, _ = played(program(tmp_path, ITSELF, **MANIFEST), text=text)
    within, _ = played(program(tmp_path, WITHIN, **MANIFEST), text=text)
    # Behind a tool the child is stopped at the limit; in its own conversation it is the program's to stop it.
    assert (within.helper_turns, within.over_limit) == (3, 2)
    assert (itself.helper_turns, itself.over_limit) == (4, 3)


def test_a_kill_behind_a_child_comes_out_the_same(tmp_path: Path) -> None:
    (killed,) = (each for each in DELEGATES if each.events)
    shown = []
    for text in (WITHIN, ITSELF):
        (played_once,) = all_of(program(tmp_path, text, **MANIFEST), [killed])
        shown.append(figures(played_once[0])[:-1])
        assert not played_once[0].not_exercised
    assert shown[0] == shown[1]


def test_a_child_that_nobody_called_is_beside_the_task(tmp_path: Path) -> None:
    invents = ITSELF.replace(
        "    converse(job, job.prompt)\n\nserve",
        "    ask(job, [{'role': 'user', 'content': 'You are the helper nobody.'}], [])\n"
        "    converse(job, job.prompt)\n\nserve",
    )
    episode, kept = played(program(tmp_path, invents, **MANIFEST))
    assert kept.seen["side requests"] == {"child agent without a call": 1}
    assert (episode.outcome, episode.turns) == ("done/reachable", 3)
