"""Programs that compact their conversation: by usage, length, error and endpoint, and what they then know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.harnesses.manifest import ManifestError, parse_manifest
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import why_not_expressible
from tests.harnesses.episodes import played, scenario
from tests.harnesses.test_whole_life import HEAD, made, play

#: It compacts when an answer has cost too much: prompt, summary and the last turn are what it keeps.
COMPACTS = (
    HEAD
    + """
used, plainly = [], ask

def ask(job, messages):
    answer = plainly(job, messages)
    used.append(answer["usage"]["input_tokens"])
    return answer

def summed(job, messages):
    asked = [*messages, {"role": "user", "content": "Summarise what was done, for yourself."}]
    return "".join(block["text"] for block in ask(job, asked)["content"])

def shorter(job, messages):
    said = [*messages[-2:]] if messages[-1]["role"] == "user" and len(messages) > 2 else []
    text = "Summary of before: " + summed(job, messages)
    return [messages[0], {"role": "user", "content": text}, *said]

def run(job):
    messages = begin(job)
    used.clear()
    while True:
        more = turn(job, messages)
        if not more:
            return None
        if used[-1] >= 50_000:
            messages = shorter(job, messages)
            used.clear()

serve(run)
"""
)
#: It keeps nothing but the summary.
KEEPS_NOTHING = COMPACTS.replace(", *said]", "]")
#: It asks with its history put into words, in a conversation of its own.
AS_TEXT = COMPACTS.replace("asked = [*messages, {", "asked = [{").replace(
    '"Summarise what was done, for yourself."', '"Summarise what was done: " + json.dumps(messages)'
)
#: It looks for the user's words, and leaves them out when it compacts.
LOSES_WORDS = COMPACTS.replace(
    "        more = turn(job, messages)",
    '        messages += [{"role": "user", "content": said} for said in job.messages()]\n'
    "        more = turn(job, messages)",
).replace("asked = [*messages,", "asked = [*messages[:1],")
#: It never compacts.
STAYS = COMPACTS.replace("50_000", "50_000_000")
#: It compacts when a request is refused because it does not fit.
REACTS = COMPACTS.replace("if used[-1] >= 50_000:", "if False:").replace(
    "        more = turn(job, messages)",
    """        try:
            more = turn(job, messages)
        except urllib.error.HTTPError as error:
            assert b"too long" in error.read()
            messages = shorter(job, messages)
            continue""",
)
#: It compacts of itself when it has seven messages.
COUNTS = COMPACTS.replace("used[-1] >= 50_000", "len(messages) >= 7")
#: The same over Responses, by the endpoint of that API.
ENDPOINT = """
import json, os, urllib.request
from evalkit_harness import serve

def post(job, path, body):
    request = urllib.request.Request(job.openai_url + path, json.dumps({"model": job.model, **body}).encode())
    return json.load(urllib.request.urlopen(request))

def run(job):
    given = [{"role": "user", "content": job.prompt}]
    while True:
        answer = post(job, "/responses", {"input": given})
        given += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if not calls:
            return None
        for item in calls:
            said = str(job.call(item["name"], json.loads(item["arguments"])))
            given.append({"type": "function_call_output", "call_id": item["call_id"], "output": said})
        if len(given) >= 7:
            given = post(job, "/responses/compact", {"input": given})["output"]

serve(run)
"""

SEALS = """
scenario: seals
family: compaction
task: {prompt: Check every seal., done_when: Every seal is checked.}
world: {kind: items, items: [seal-ash, seal-elm, seal-fir, seal-oak], once: true}
model:
  - call: list_items
  - work: 2
  - compact: WHAT
  - work: unseen
  - {say: "All are checked.", claim: done}
"""
WORDS = SEALS.replace(
    "  - work: 2\n",
    '  - work: 1\n  - user: {text: "Mind the wax.", when: between_turns}\n  - work: 1\n',
)
SIDE = [{"name": "summary", "contains": "Summarise what was done", "kind": "compact"}]
USAGE = {"compact": "usage:60000"}


def sealed(folder: Path, program: str, what: str, text: str = SEALS, **more: Any) -> Episode:
    events = more.pop("events", USAGE)
    loaded = text.replace("WHAT", what)
    return play(folder, program, loaded, resident=True, events=events, side=SIDE, **more)


class TestWhatTheModelKnows:
    """A model that goes by its request repeats what the summary does not show."""

    @pytest.mark.parametrize("program", [COMPACTS, KEEPS_NOTHING], ids=["keeps a turn", "keeps nothing"])
    @pytest.mark.parametrize(
        ("what", "twice"),
        [
            ("true", 0),
            ("{forgets: [seal-ash]}", 1),
            ('{summary: "Some of it is done."}', 2),
            ("{summary: empty}", 2),
        ],
    )
    def test_it_repeats_what_it_does_not_see(
        self, tmp_path: Path, program: str, what: str, twice: int
    ) -> None:
        episode = sealed(tmp_path, program, what)
        seen = program is COMPACTS and twice == 2
        assert not episode.not_exercised
        assert episode.duplicate_effects == twice - seen, episode
        assert (episode.amnesia, episode.rolled_back, episode.protocol_faults) == (0, 0, 0)

    @pytest.mark.parametrize("program", [COMPACTS, AS_TEXT], ids=["going on", "as text"])
    def test_a_faithful_one_is_correct(self, tmp_path: Path, program: str) -> None:
        episode = sealed(tmp_path, program, "true")
        assert (episode.outcome, episode.correct, episode.turns) == ("done/complete", True, 6), episode

    def test_what_a_tool_answered_is_found_in_a_history_put_into_words(self, tmp_path: Path) -> None:
        """A ledger's answer does not say that its payment is done."""
        ledger = SEALS.replace("kind: items", "kind: ledger").replace(", once: true", "")
        episode = sealed(tmp_path, AS_TEXT, "true", ledger.replace("list_items", "list_payments"))
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 0), episode

    def test_twice_in_a_row(self, tmp_path: Path) -> None:
        episode = sealed(tmp_path, COMPACTS, "{times: 2}")
        assert (episode.outcome, episode.not_exercised) == ("done/complete", False)

    def test_words_that_are_neither_in_it_nor_summed_up_are_lost(self, tmp_path: Path) -> None:
        events = {**USAGE, "user": ["between_turns"]}
        episode = sealed(tmp_path, LOSES_WORDS, "true", WORDS, events=events)
        assert (episode.lost_words, episode.undelivered_words, episode.correct) == (1, 0, False), episode
        kept = LOSES_WORDS.replace("asked = [*messages[:1],", "asked = [*messages,")
        episode = sealed(tmp_path, kept, "true", WORDS, events=events)
        assert (episode.lost_words, episode.forgotten_words, episode.correct) == (0, 0, True), episode


class TestByWhat:
    def test_an_error_is_answered_until_less_is_asked(self, tmp_path: Path) -> None:
        for what in ("true", "{times: 2}"):
            episode = sealed(tmp_path, REACTS, what, events={"compact": "error"})
            assert (episode.outcome, episode.correct) == ("done/complete", True), episode
            assert not episode.not_exercised

    def test_who_does_not_know_the_error_ends_with_it(self, tmp_path: Path) -> None:
        episode = sealed(tmp_path, COMPACTS, "true", events={"compact": "error"})
        assert (episode.ending, episode.not_exercised) == ("error", True)

    def test_a_length_of_its_own(self, tmp_path: Path) -> None:
        episode = sealed(tmp_path, COUNTS, "{forgets: [seal-ash]}", events={"compact": "length:7"})
        assert (episode.not_exercised, episode.duplicate_effects) == (False, 1), episode

    def test_a_script_that_is_too_short_for_it_is_not_played(self, tmp_path: Path) -> None:
        harness = made(tmp_path, COUNTS, resident=True, events={"compact": "length:40"}, side=SIDE)
        reason = why_not_expressible(scenario(SEALS.replace("WHAT", "true")), harness)
        assert reason == "it compacts at 40 messages, and the script has 7 by then"

    @pytest.mark.parametrize(("what", "twice"), [("true", 0), ("{forgets: [seal-ash]}", 1)])
    def test_the_endpoint(self, tmp_path: Path, what: str, twice: int) -> None:
        events = {"compact": "endpoint"}
        episode = sealed(tmp_path, ENDPOINT, what, events=events, dialect="responses")
        assert (episode.not_exercised, episode.duplicate_effects) == (False, twice), episode
        assert (episode.ending, episode.amnesia, episode.protocol_faults) == ("done", 0, 0)


class TestWitnessed:
    def test_who_never_compacts_is_not_exercised(self, tmp_path: Path) -> None:
        episode = sealed(tmp_path, STAYS, "true")
        assert (episode.ending, episode.not_exercised) == ("done", True)

    def test_who_asks_for_a_summary_and_goes_on_as_before_is_not(self, tmp_path: Path) -> None:
        asks = COMPACTS.replace("messages = shorter(job, messages)", "shorter(job, messages)")
        assert sealed(tmp_path, asks, "true").not_exercised

    def test_who_has_no_notion_of_it_is_not_played(self, tmp_path: Path) -> None:
        reason = why_not_expressible(scenario(SEALS.replace("WHAT", "true")), made(tmp_path, COMPACTS))
        assert reason == "the harness has no notion of: compact"

    def test_a_summary_that_nobody_planned_is_faithful(self, tmp_path: Path) -> None:
        text = SEALS.replace("  - compact: WHAT\n", "")
        always = COMPACTS.replace("used[-1] >= 50_000", "len(messages) == 7")
        harness = made(tmp_path, always, resident=True, side=SIDE)
        episode, kept = played(harness, 20.0, text)
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 0)
        assert kept.seen["side requests"] == {"compaction": 1}


@pytest.mark.parametrize("by", ["usage", "usage:0", "length:x", "tokens:9"])
def test_a_wrong_means_is_said_in_a_line(by: str) -> None:
    with pytest.raises(ManifestError, match=r"events.compact: .*; expected usage:N, length:N, error or"):
        parse_manifest({"name": "a", "summary": "", "run": ["x"], "events": {"compact": by}}, "harness.toml")
