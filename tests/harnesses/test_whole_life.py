"""What happens to programs from outside: the user's words, kills; command and resident, Python and Node."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from evalkit.harnesses.manifest import Harness, parse_manifest
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import why_not_expressible
from evalkit.wire import server
from tests.harnesses.episodes import played, scenario

#: A loop over the standard library alone that keeps its conversation in a file of its folder.
HEAD = """
import json, os, pathlib, urllib.request
from evalkit_harness import serve

KEPT = pathlib.Path("conversation.json")

def ask(job, messages):
    body = {"model": job.model, "max_tokens": 4096, "messages": messages}
    request = urllib.request.Request(job.anthropic_url + "/v1/messages", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))

def turn(job, messages):
    answer = ask(job, messages)
    messages.append({"role": "assistant", "content": answer["content"]})
    results = [
        {"type": "tool_result", "tool_use_id": b["id"], "content": str(job.call(b["name"], b["input"]))}
        for b in answer["content"] if b["type"] == "tool_use"
    ]
    if results:
        messages.append({"role": "user", "content": results})
    return bool(results)

def begin(job):
    return [{"role": "user", "content": job.prompt}]
"""
#: It takes the user's next message, and goes on.
TALKS = (
    HEAD
    + """
def run(job):
    messages = begin(job)
    while True:
        while turn(job, messages):
            pass
        said = job.next_message()
        if said is None:
            return None
        messages.append({"role": "user", "content": said})

serve(run)
"""
)
#: The same for a program that is started again for each message.
COMES_BACK = (
    HEAD
    + """
def run(job):
    messages = json.loads(KEPT.read_text()) if job.resumes else begin(job)
    if job.message:
        messages.append({"role": "user", "content": job.message})
    while turn(job, messages):
        pass
    KEPT.write_text(json.dumps(messages))
    job.next_message()

serve(run)
"""
)
#: It forgets to put the message into its conversation.
DEAF = TALKS.replace('messages.append({"role": "user", "content": said})', "messages.append(begin(job)[0])")
#: It puts it there once, and throws it away with the next request.
FORGETS = TALKS.replace(
    'messages.append({"role": "user", "content": said})',
    'kept = list(messages); messages.append({"role": "user", "content": said}); turn(job, messages); '
    'messages = kept + [{"role": "user", "content": "Continue."}]',
)
#: It saves its conversation before each request and when a tool was answered, and goes on where it was.
SAVES = (
    HEAD
    + """
def run(job):
    messages = json.loads(KEPT.read_text()) if job.resumes and KEPT.exists() else begin(job)
    while True:
        KEPT.write_text(json.dumps(messages))
        if not turn(job, messages):
            return None

serve(run)
"""
)
#: It begins again from the prompt.
STARTS_OVER = SAVES.replace("if job.resumes and KEPT.exists()", "if False")
#: It looks for the user's words before each request.
LISTENS = (
    HEAD
    + """
def run(job):
    messages = begin(job)
    while True:
        for said in job.messages():
            messages.append({"role": "user", "content": said})
        if not turn(job, messages):
            return None

serve(run)
"""
)
#: It goes on from what it saved before its last request, and says so to the model.
SAYS_GO_ON = SAVES.replace(
    "    while True:",
    '    if job.resumes:\n        messages.append({"role": "user", "content": "Continue."})\n    while True:',
)
#: The same, and it puts words in the model's mouth where the turn is missing, as Claude Code does.
FILLS_IN = SAYS_GO_ON.replace(
    "    if job.resumes:\n",
    '    if job.resumes:\n        messages.append({"role": "assistant", "content": "Nothing requested."})\n',
)
NODE = """
const { serve } = await import(process.env.EVALKIT_CLIENT);
const turn = async (job, messages) => {
  const body = JSON.stringify({ model: job.model, max_tokens: 4096, messages });
  const answer = await (await fetch(`${job.anthropicUrl}/v1/messages`, { method: "POST", body })).json();
  messages.push({ role: "assistant", content: answer.content });
  const results = [];
  for (const { type, id, name, input } of answer.content) {
    if (type !== "tool_use") continue;
    results.push({ type: "tool_result", tool_use_id: id, content: (await job.call(name, input)).text });
  }
  if (results.length) messages.push({ role: "user", content: results });
  return results.length > 0;
};
await serve(async (job) => {
  const messages = [{ role: "user", content: job.prompt }];
  for (;;) {
    while (await turn(job, messages));
    const said = await job.nextMessage();
    if (said === undefined) return undefined;
    messages.push({ role: "user", content: said });
  }
});
"""

LATER = """
scenario: second-bell
family: user_turns
task: {prompt: Ring every bell that is asked for., done_when: Every bell asked for has rung.}
world: {kind: items, items: [bell-low, bell-high]}
model:
  - call: list_items
  - work: [bell-low]
  - {say: "The low bell has rung.", claim: done}
  - user: {text: "And now ring bell-high, please.", asks: [bell-high]}
  - work: [bell-high]
  - {say: "Both have rung.", claim: done}
"""
WORDS = """
scenario: words-on-the-way
family: user_turns
task: {prompt: Ring every bell., done_when: Every bell has rung.}
world: {kind: items, items: [bell-low, bell-high]}
model:
  - call: list_items
  - work: 1
  - user: {text: "Mind the neighbours.", when: WHEN}
  - work: rest
  - {say: "Both have rung.", claim: done}
"""
CRASH = """
scenario: power-cut
family: resume_effects
task: {prompt: Ring every bell., done_when: Every bell has rung.}
world: {kind: items, items: [bell-low, bell-high]}
model:
  - call: list_items
  - work: 1
  - crash: {at: MOMENT}
  - work: rest
  - {say: "Both have rung.", claim: done}
"""


def made(folder: Path, text: str, **manifest: Any) -> Harness:
    name = "agent.mjs" if text is NODE else "agent.py"
    (folder / name).write_text(text)
    runs = "{node}" if text is NODE else "{python}"
    document = {"name": "made-up", "summary": "", "run": [runs, name], "dialect": "anthropic", **manifest}
    return Harness(parse_manifest(document, "harness.toml"), folder)


def play(folder: Path, program: str, text: str, **manifest: Any) -> Episode:
    harness = made(folder, program, **manifest)
    assert why_not_expressible(scenario(text), harness) is None
    return played(harness, 20.0, text)[0]


class TestAMessageAfterAnEnding:
    @pytest.mark.parametrize(
        ("program", "resident"), [(TALKS, True), (COMES_BACK, False), (NODE, True)], ids=["py", "cmd", "node"]
    )
    def test_the_next_message_is_taken_up(self, tmp_path: Path, program: str, resident: bool) -> None:
        if program is NODE and shutil.which("node") is None:
            pytest.fail("Node.js is needed: .ci/run brings it")
        episode = play(tmp_path, program, LATER, resident=resident, events={"user": ["ended"]})
        assert (episode.outcome, episode.turns, episode.correct) == ("done/complete", 5, True), episode
        assert episode.decisions == (2, 0, 0, 0)
        assert (episode.undelivered_words, episode.forgotten_words) == (0, 0)

    def test_one_that_cannot_go_on_is_not_played(self, tmp_path: Path) -> None:
        reason = why_not_expressible(scenario(LATER), made(tmp_path, TALKS))
        assert reason == "the harness has no notion of: user (ended)"

    def test_words_that_no_request_holds_are_undelivered(self, tmp_path: Path) -> None:
        episode = play(tmp_path, DEAF, LATER, resident=True, events={"user": ["ended"]})
        assert episode.undelivered_words == 1
        assert not episode.correct
        assert "And now ring bell-high, please." in [one.thing for one in episode.findings]

    @pytest.mark.parametrize(("turns", "undelivered"), [(3, 0), (9, 1)])
    def test_words_behind_the_last_turn_of_the_limit_have_no_request(
        self, tmp_path: Path, turns: int, undelivered: int
    ) -> None:
        leaves = TALKS.replace(
            "if said is None:\n            return None", 'if said:\n            return {"ending": "limit"}'
        )
        text = LATER.replace("world:", f"limits: {{turns: {turns}}}\nworld:")
        episode = play(tmp_path, leaves, text, resident=True, events={"user": ["ended"]})
        assert (episode.ending, episode.undelivered_words) == ("limit", undelivered), episode

    def test_words_that_the_last_request_has_lost_are_forgotten(self, tmp_path: Path) -> None:
        episode = play(tmp_path, FORGETS, LATER, resident=True, events={"user": ["ended"]})
        assert (episode.undelivered_words, episode.forgotten_words) == (0, 1)
        assert not episode.correct


class TestWordsWhileItWorks:
    @pytest.mark.long
    @pytest.mark.parametrize("when", ["between_turns", "in_tool", "in_turn"])
    def test_they_are_fetched_and_stand_in_a_request(self, tmp_path: Path, when: str) -> None:
        text = WORDS.replace("WHEN", when)
        episode = play(tmp_path, LISTENS, text, resident=True, events={"user": [when]})
        assert (episode.outcome, episode.correct) == ("done/complete", True), episode
        assert (episode.undelivered_words, episode.forgotten_words) == (0, 0)

    @pytest.mark.long
    @pytest.mark.parametrize("when", ["between_turns", "in_tool", "in_turn"])
    def test_who_never_looks_has_not_delivered_them(self, tmp_path: Path, when: str) -> None:
        text = WORDS.replace("WHEN", when)
        episode = play(tmp_path, TALKS, text, resident=True, events={"user": [when, "ended"]})
        assert (episode.undelivered_words, episode.correct) == (1, False)


class TestKilledAndResumed:
    @pytest.mark.long
    @pytest.mark.parametrize("program", [SAYS_GO_ON, FILLS_IN], ids=["user", "assistant"])
    @pytest.mark.parametrize("moment", ["tool, before: true", "reply"])
    def test_a_turn_that_was_never_kept_is_said_anew(self, tmp_path: Path, moment: str, program: str) -> None:
        """What it says at its restart is no answer to a call that the request does not hold."""
        text = CRASH.replace("MOMENT", moment)
        episode = play(tmp_path, program, text, resident=True, events={"crash": True})
        assert (episode.outcome, episode.correct) == ("done/complete", True), episode
        assert (episode.rolled_back, episode.closed_calls, episode.not_exercised) == (1, 0, False)

    @pytest.mark.long
    @pytest.mark.parametrize("resident", [True, False], ids=["resident", "command"])
    @pytest.mark.parametrize(
        "moment", ["tool", "tool, before: true", "answered", "request", "reply", "ended"]
    )
    def test_who_saves_goes_on(self, tmp_path: Path, moment: str, resident: bool) -> None:
        text = CRASH.replace("MOMENT", moment)
        if moment == "ended":
            lines = text.splitlines()
            crash = next(line for line in lines if "crash:" in line)
            text = "\n".join([*(line for line in lines if line != crash), crash]) + "\n"
        episode = play(tmp_path, SAVES, text, resident=resident, events={"crash": True})
        assert not episode.not_exercised
        assert episode.outcome == "done/complete", episode
        assert episode.lost_work is False

    def test_a_call_whose_answer_was_lost_is_made_again(self, tmp_path: Path) -> None:
        """It was saved before the turn: the model is asked again, and the work is done twice."""
        episode = play(tmp_path, SAVES, CRASH.replace("MOMENT", "tool"), events={"crash": True})
        assert episode.rolled_back == 1
        assert episode.outcome == "done/complete"

    @pytest.mark.parametrize(("times", "again"), [(1, 1), (2, 2)])
    def test_a_kill_within_a_turn_comes_once_each_time_that_the_script_has_it(
        self, tmp_path: Path, times: int, again: int
    ) -> None:
        """The turn is not kept, so it is said anew: without a second kill, or the run would never end."""
        turn = f"repeat: {{times: {times}, do: [{{turn: [{{work: 1}}, {{crash: true}}]}}]}}"
        text = CRASH.replace("  - work: 1\n  - crash: {at: MOMENT}\n", f"  - {turn}\n")
        assert turn in text
        episode = play(tmp_path, SAVES, text, resident=True, events={"crash": True})
        assert (episode.outcome, episode.duplicate_effects, episode.rolled_back) == (
            "done/complete",
            again,
            again,
        )
        assert not episode.not_exercised

    def test_who_starts_over_has_forgotten(self, tmp_path: Path) -> None:
        episode = play(tmp_path, STARTS_OVER, CRASH.replace("MOMENT", "answered"), events={"crash": True})
        assert episode.amnesia == 1
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 1)
        assert not episode.correct

    def test_a_call_that_was_under_way_when_it_was_killed_has_no_effect(self, tmp_path: Path) -> None:
        """Of two calls made side by side the first is killed; the second had come, and its sender is dead."""
        at_once = SAVES.replace(
            "    results = [\n",
            "    from concurrent.futures import ThreadPoolExecutor\n"
            "    calls = [b for b in answer['content'] if b['type'] == 'tool_use']\n"
            "    run = lambda b: str(job.call(b['name'], b['input']))\n"
            "    said = list(ThreadPoolExecutor(4).map(run, calls))\n"
            "    results = [\n",
        ).replace('str(job.call(b["name"], b["input"]))', "said.pop(0)")
        assert "said.pop(0)" in at_once
        turn = "  - turn: [{crash: true}, {work: 2, parallel: true}]\n"
        text = CRASH.replace("  - work: 1\n  - crash: {at: MOMENT}\n  - work: rest\n", turn)
        episode = play(tmp_path, at_once, text, resident=True, events={"crash": True})
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 0), episode
        assert not episode.not_exercised

    def test_a_crash_that_never_came_is_not_exercised(self, tmp_path: Path) -> None:
        """The program ends before the moment of the kill."""
        quits = SAVES.replace("if not turn(job, messages):", "turn(job, messages)\n        if True:")
        episode = play(tmp_path, quits, CRASH.replace("MOMENT", "answered"), events={"crash": True})
        assert episode.not_exercised

    def test_the_kill_finds_nobody(self, tmp_path: Path) -> None:
        """It has ended by itself when the kill comes: no evidence that it was killed."""
        text = CRASH.replace("MOMENT", "reply, wait_ms: 3000")
        leaves = SAVES.replace("answer = ask(job, messages)", "answer = ask(job, messages)").replace(
            "    return bool(results)",
            "    return bool(results) and not KEPT.read_text().count('bell-low\": ')",
        )
        quits = leaves.replace(
            "if not turn(job, messages):", "if not turn(job, messages) or len(messages) > 4:"
        )
        episode = play(tmp_path, quits, text, events={"crash": True})
        assert episode.not_exercised


class TestResumedBySeveralAtOnce:
    TEXT = (
        CRASH.replace("MOMENT", "tool, before: true, resumers: 3")
        .replace("bell-low, bell-high", "bell-low")
        .replace("  - work: rest\n", "")
    )

    def test_each_that_goes_on_by_itself_makes_the_call(self, tmp_path: Path) -> None:
        # Nobody reads what another is about to write.
        whole = (
            "(new := pathlib.Path(f'new-{os.getpid()}')).write_text(json.dumps(messages)); new.rename(KEPT)"
        )
        alone = SAVES.replace("KEPT.write_text(json.dumps(messages))", whole)
        episode = play(tmp_path, alone, self.TEXT, resident=True, events={"crash": True})
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 2), episode
        assert not episode.not_exercised

    def test_one_that_takes_the_work_for_itself_makes_it_once(self, tmp_path: Path) -> None:
        claims = SAVES.replace(
            "    while True:",
            "    job.tools\n    if job.resumes:\n        try:\n            os.mkdir('taken')\n"
            "        except FileExistsError:\n            return {'ending': 'partial'}\n    while True:",
            1,
        )
        episode = play(tmp_path, claims, self.TEXT, resident=True, events={"crash": True})
        assert (episode.duplicate_effects, episode.not_exercised) == (0, False), episode

    #: All but the first end before they ask for anything.
    LEAVES = SAVES.replace(
        "    messages = ",
        "    if job.resumes:\n        try:\n            os.mkdir('taken')\n"
        "        except FileExistsError:\n            os._exit(1)\n    messages = ",
        1,
    )

    def test_those_that_did_not_all_come_are_not_exercised(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "_GATHERED_S", 3.0)
        assert self.LEAVES != SAVES
        assert play(tmp_path, self.LEAVES, self.TEXT, resident=True, events={"crash": True}).not_exercised

    def test_who_ends_before_it_asks_is_not_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        heard: list[float] = []
        gathers = server._gathered

        async def timed(entry: server.Entry) -> None:
            began = time.monotonic()
            await gathers(entry)
            heard.append(time.monotonic() - began)

        monkeypatch.setattr(server, "_gathered", timed)
        episode = play(tmp_path, self.LEAVES, self.TEXT, resident=True, events={"crash": True})
        # The one that stayed has gone on as soon as the others were dead, and not when the wait was over.
        assert (episode.outcome, episode.not_exercised) == ("done/complete", True)
        assert heard
        assert max(heard) < 15

    def test_a_program_that_is_no_resident_one_is_not_played(self, tmp_path: Path) -> None:
        harness = made(tmp_path, SAVES, resident=False, events={"crash": True})
        reason = why_not_expressible(scenario(self.TEXT), harness)
        assert reason == "several can resume it at once only where it is a resident process"
