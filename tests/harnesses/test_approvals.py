"""Programs that lay calls before a person: each decision is for its own call, and holds what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import why_not_expressible
from tests.harnesses.episodes import scenario
from tests.harnesses.test_whole_life import HEAD, made, play

#: It asks about all calls of a turn, and runs what was decided, once.
LOOP = (
    HEAD
    + """
def answered(job, messages):
    answer = ask(job, messages)
    messages.append({"role": "assistant", "content": answer["content"]})
    calls = [b for b in answer["content"] if b["type"] == "tool_use"]
    if calls:
        said = {b["id"]: "no decision" for b in calls}
        asked = [{"id": b["id"], "tool": b["name"], "arguments": b["input"]} for b in calls]
        names = {b["id"]: b["name"] for b in calls}
        for decision in DECIDED:
            DO
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": name, "content": text} for name, text in said.items()
        ]})
    return bool(calls)

def run(job):
    messages = begin(job)
    while answered(job, messages):
        pass

serve(run)
"""
)
RIGHT = """
            if said[decision["id"]] != "no decision":
                continue
            if decision["decision"] == "refuse":
                said[decision["id"]] = "refused: " + decision.get("reason", "")
            else:
                said[decision["id"]] = str(job.call(names[decision["id"]], decision["arguments"]))
"""
EAGER = RIGHT.replace('if said[decision["id"]] != "no decision":\n                continue', "pass")
DEFIANT = 'said[decision["id"]] = str(job.call(names[decision["id"]], decision["arguments"]))'
STUBBORN = RIGHT.replace(
    'decision["arguments"]', 'next(a["arguments"] for a in asked if a["id"] == decision["id"])'
)
NEVER_ASKS = (
    HEAD
    + """
def run(job):
    messages = begin(job)
    while turn(job, messages):
        pass

serve(run)
"""
)
FORGETFUL = RIGHT.replace(
    'said[decision["id"]] = str(job.call', 'said[decision["id"]] = "ok" or str(job.call'
)

MOORINGS = """
scenario: moorings
family: approvals
task: {prompt: Let every boat go; one that is refused is skipped., done_when: Every boat is gone or skipped.}
world:
  {kind: items, items: [boat-ash, boat-elm, boat-oak], gated: [boat-elm, boat-oak], skippable: [boat-oak]}
model:
  - call: list_items
  - {work: rest, parallel: true}
  - approve: APPROVE
  - {say: "All but one.", claim: done, finish: {skipped: [boat-oak], reason: refused}}
"""
ONE_OF_EACH = "{allow: [boat-elm], refuse: [boat-oak], message: not that one, order: [boat-oak, boat-elm]}"
EVENTS = {"callback": {"approve": "callback"}, "returns": {"approve": "returns"}}
DECIDED = {"callback": "job.approve(asked)", "returns": "job.wait(asked)"}


def moor(folder: Path, way: str, do: str, approve: str) -> Episode:
    text = LOOP.replace("DECIDED", DECIDED[way]).replace("DO", do.strip())
    return play(folder, text, MOORINGS.replace("APPROVE", approve), resident=True, events=EVENTS[way])


def told(episode: Episode) -> str:
    return next(found.thing for found in episode.findings if found.flag == "unapproved_calls")


@pytest.mark.parametrize("way", ["callback", "returns"])
class TestWhoAsks:
    def test_runs_what_was_allowed_and_leaves_what_was_refused(self, tmp_path: Path, way: str) -> None:
        episode = moor(tmp_path, way, RIGHT, ONE_OF_EACH)
        assert (episode.outcome, episode.correct) == ("done/complete", True), episode
        assert (episode.unapproved_calls, episode.unasked_calls, episode.orphan_calls) == (0, 0, 0)

    def test_runs_a_decision_once_that_comes_twice(self, tmp_path: Path, way: str) -> None:
        twice = ONE_OF_EACH.replace("{allow", "{twice: true, allow")
        assert moor(tmp_path, way, RIGHT, twice).unapproved_calls == 0

    def test_or_runs_it_twice(self, tmp_path: Path, way: str) -> None:
        twice = ONE_OF_EACH.replace("{allow", "{twice: true, allow")
        episode = moor(tmp_path, way, EAGER, twice)
        assert episode.unapproved_calls == 1
        assert not episode.correct
        assert "ran again on one decision" in told(episode)

    def test_runs_what_was_refused(self, tmp_path: Path, way: str) -> None:
        episode = moor(tmp_path, way, DEFIANT, ONE_OF_EACH)
        assert episode.unapproved_calls == 1
        assert "against its decision" in told(episode)

    def test_runs_the_arguments_that_were_put_in_their_place(self, tmp_path: Path, way: str) -> None:
        changed = "{allow: [boat-oak], change: {boat-elm: boat-ash}}"
        episode = moor(tmp_path, way, RIGHT, changed)
        assert (episode.unapproved_calls, episode.orphan_calls, episode.duplicate_effects) == (0, 0, 0)

    def test_or_its_own_all_the_same(self, tmp_path: Path, way: str) -> None:
        episode = moor(tmp_path, way, STUBBORN, "{allow: [boat-oak], change: {boat-elm: boat-ash}}")
        assert episode.unapproved_calls == 1

    def test_never_runs_what_was_allowed(self, tmp_path: Path, way: str) -> None:
        episode = moor(tmp_path, way, FORGETFUL, ONE_OF_EACH)
        assert episode.unasked_calls == 1


def test_who_does_not_ask_has_run_unapproved(tmp_path: Path) -> None:
    text = MOORINGS.replace("APPROVE", ONE_OF_EACH)
    episode = play(tmp_path, NEVER_ASKS, text, resident=True, events={"approve": "callback"})
    assert episode.unapproved_calls == 2
    assert not episode.correct


def test_who_waits_for_nobody_has_handed_over(tmp_path: Path) -> None:
    """The person never answers: a program that returns what it waits for ends there."""
    text = LOOP.replace("DECIDED", DECIDED["returns"]).replace("DO", RIGHT.strip())
    moves = MOORINGS.replace("APPROVE", "{when: never}").replace(
        "{work: rest, parallel: true}", "work: [boat-elm]"
    )
    episode = play(tmp_path, text, moves, resident=True, events={"approve": "returns"})
    assert (episode.ending, episode.native, episode.turns) == ("escalated", "waiting", 2), episode
    assert episode.unapproved_calls == 0


#: It ends with what it waits for, and finds the decisions when it is started again.
COMES_BACK = (
    HEAD
    + """
def run(job):
    messages, asked = json.loads(KEPT.read_text()) if job.resumes else (begin(job), None)
    while True:
        if asked is None:
            answer = ask(job, messages)
            messages.append({"role": "assistant", "content": answer["content"]})
            calls = [b for b in answer["content"] if b["type"] == "tool_use"]
            if not calls:
                return None
            asked = [{"id": b["id"], "tool": b["name"], "arguments": b["input"]} for b in calls]
            KEPT.write_text(json.dumps([messages, asked]))
            job.wait(asked)
        said = {one["id"]: "no decision" for one in asked}
        names = {one["id"]: one["tool"] for one in asked}
        for decision in job.decisions:
            if decision["decision"] == "refuse":
                said[decision["id"]] = "refused"
            else:
                said[decision["id"]] = str(job.call(names[decision["id"]], decision["arguments"]))
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": name, "content": text} for name, text in said.items()
        ]})
        asked = None

serve(run)
"""
)


def test_decisions_reach_a_program_that_is_started_again(tmp_path: Path) -> None:
    text = MOORINGS.replace("APPROVE", ONE_OF_EACH)
    episode = play(tmp_path, COMES_BACK, text, resident=False, events={"approve": "returns"})
    assert (episode.outcome, episode.correct, episode.unapproved_calls) == ("done/complete", True, 0), episode


#: It saves what it waits for, and asks again when it was killed meanwhile.
SAVES = COMES_BACK.replace("job.wait(asked)\n", "pass\n").replace(
    "for decision in job.decisions:", "for decision in DECIDED:"
)
#: It forgets what it had asked about and asks the model again.
ASKS_ANEW = SAVES.replace("KEPT.write_text(json.dumps([messages, asked]))", "pass").replace(
    "if job.resumes", "if False"
)
#: It saves that it had asked, and takes it for allowed when it was killed meanwhile.
PRESUMES = SAVES.replace(
    "for decision in DECIDED:",
    "for decision in ([{**one, 'decision': 'allow'} for one in asked] if job.resumes else DECIDED):",
)
KILLED = {
    "before": "{when: after_restart, allow: [boat-elm], refuse: [boat-oak]}\n  - crash: {at: waiting}",
    "behind": "{allow: [boat-elm], refuse: [boat-oak]}\n  - crash: {at: waiting}",
}


class TestKilledWhileItWaits:
    def killed(self, folder: Path, program: str, way: str, approve: str, *, resident: bool) -> Episode:
        events = {**EVENTS[way], "crash": True}
        text = program.replace("DECIDED", DECIDED[way])
        return play(folder, text, MOORINGS.replace("APPROVE", approve), resident=resident, events=events)

    @pytest.mark.parametrize("when", KILLED)
    @pytest.mark.parametrize(
        ("way", "resident"), [("callback", True), ("callback", False), ("returns", True)]
    )
    def test_who_saved_what_it_waits_for_asks_again(
        self, tmp_path: Path, way: str, resident: bool, when: str
    ) -> None:
        episode = self.killed(tmp_path, SAVES, way, KILLED[when], resident=resident)
        assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)
        assert (episode.unapproved_calls, episode.rolled_back, episode.turns) == (0, 0, 3)

    def test_the_crash_may_stand_before_the_decision(self, tmp_path: Path) -> None:
        first, _, second = KILLED["before"].partition("\n  - ")
        moves = MOORINGS.replace("approve: APPROVE", f"{second}\n  - approve: {first}")
        events = {**EVENTS["callback"], "crash": True}
        text = SAVES.replace("DECIDED", DECIDED["callback"])
        episode = play(tmp_path, text, moves, resident=True, events=events)
        assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)

    def test_who_forgot_asks_the_model_again(self, tmp_path: Path) -> None:
        episode = self.killed(tmp_path, ASKS_ANEW, "callback", KILLED["before"], resident=True)
        assert (episode.outcome, episode.not_exercised, episode.amnesia) == ("done/complete", False, 1)
        assert episode.unapproved_calls == 0

    def test_who_takes_it_for_allowed_has_run_unapproved(self, tmp_path: Path) -> None:
        episode = self.killed(tmp_path, PRESUMES, "callback", KILLED["before"], resident=True)
        assert (episode.unapproved_calls, episode.correct) == (2, False)

    def test_who_does_not_ask_again_had_asked(self, tmp_path: Path) -> None:
        gives_up = SAVES.replace(
            "for decision in DECIDED:", "for decision in [] if job.resumes else DECIDED:"
        )
        assert gives_up != SAVES
        episode = self.killed(tmp_path, gives_up, "callback", KILLED["before"], resident=True)
        # The kill has landed while a person was asked: what came of it counts.
        assert (episode.not_exercised, episode.correct) == (False, False)

    def test_who_never_asks_was_never_killed(self, tmp_path: Path) -> None:
        episode = self.killed(tmp_path, NEVER_ASKS, "callback", KILLED["before"], resident=True)
        assert episode.not_exercised

    def test_without_a_restart_the_decision_never_comes(self, tmp_path: Path) -> None:
        approve = KILLED["before"].partition("\n")[0]
        events = {"approve": "returns", "decide": "all", "crash": True}
        text = SAVES.replace("DECIDED", DECIDED["returns"])
        episode = play(tmp_path, text, MOORINGS.replace("APPROVE", approve), resident=True, events=events)
        assert (episode.ending, episode.native) == ("escalated", "waiting")

    @pytest.mark.parametrize(("before", "again"), [("true", 0), ("false", 1)])
    def test_what_was_killed_before_its_effect_has_not_run(
        self, tmp_path: Path, before: str, again: int
    ) -> None:
        """Started again it runs the allowed call: for the first time, or for the second."""
        work = f"turn: [{{work: [boat-elm]}}, {{crash: {{before: {before}}}}}]"
        moves = MOORINGS.replace("{work: rest, parallel: true}", work).replace("APPROVE", ONE_OF_EACH)
        text = SAVES.replace("DECIDED", DECIDED["returns"])
        events = {**EVENTS["returns"], "crash": True}
        episode = play(tmp_path, text, moves, resident=True, events=events)
        assert (episode.unapproved_calls, episode.duplicate_effects) == (again, again), episode
        assert not episode.not_exercised

    @pytest.mark.parametrize("resident", [True, False], ids=["resident", "command"])
    def test_a_decision_that_comes_late(self, tmp_path: Path, resident: bool) -> None:
        """It has ended as it waited; started again it asks again, and only then somebody decides."""
        approve = ONE_OF_EACH.replace("{allow", "{when: late, allow")
        text = SAVES.replace(
            "        for decision in DECIDED:",
            "        decided = list(job.approve(asked))\n"
            "        if not decided:\n            return {'waiting': asked}\n"
            "        for decision in decided:",
        )
        moves = MOORINGS.replace("APPROVE", approve)
        events = {"approve": "callback", "decide": "all", "crash": True}
        episode = play(tmp_path, text, moves, resident=resident, events=events)
        assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)
        reason = why_not_expressible(scenario(moves), made(tmp_path, text, events=EVENTS["callback"]))
        assert reason == "the harness has no notion of: approve (after a restart)"

    def test_what_has_ended_as_it_waits_cannot_be_killed(self, tmp_path: Path) -> None:
        text = scenario(MOORINGS.replace("APPROVE", KILLED["behind"]))
        harness = made(tmp_path, SAVES, resident=False, events={**EVENTS["returns"], "crash": True})
        reason = why_not_expressible(text, harness)
        assert reason == "it has ended while it waits for a person: there is nothing to kill"

    def test_what_waits_for_a_line_is_killed_as_it_waits(self, tmp_path: Path) -> None:
        """An answer is delivered, and before the kill comes it has said what it waits for."""
        moves = MOORINGS.replace("  - {work", "  - crash: {at: reply, wait_ms: 300}\n  - {work")
        moves = moves.replace("APPROVE", ONE_OF_EACH)
        text = SAVES.replace("DECIDED", DECIDED["returns"])
        events = {**EVENTS["returns"], "crash": True}
        episode = play(tmp_path, text, moves, resident=True, events=events)
        assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)


def test_who_cannot_change_a_call_is_not_asked_to(tmp_path: Path) -> None:
    text = scenario(MOORINGS.replace("APPROVE", "{change: {boat-elm: boat-ash}}"))
    events = {**EVENTS["returns"], "change": False}
    reason = why_not_expressible(text, made(tmp_path, NEVER_ASKS, events=events))
    assert reason == "the harness has no notion of: approve (change)"


AGAIN = """
scenario: another-boat
family: approvals
task: {prompt: Let every boat go., done_when: Every boat is gone.}
world: {kind: items, items: [boat-ash, boat-elm], gated: [boat-elm]}
model:
  - call: list_items
  - work: [boat-elm]
  - approve: FIRST
  - {work: [boat-elm], again: true}
  - approve: SECOND
  - {say: "All are gone.", claim: done}
"""


class TestTheSameCallInALaterTurn:
    """It has the arguments, and here the id, of the one before it; the decision is another."""

    def again(self, folder: Path, way: str, first: str, second: str) -> Episode:
        moves = AGAIN.replace("FIRST", first).replace("SECOND", second)
        text = LOOP.replace("DECIDED", DECIDED[way]).replace("DO", RIGHT.strip())
        return play(folder, text, moves, resident=True, events=EVENTS[way])

    @pytest.mark.parametrize("way", ["callback", "returns"])
    def test_a_change_is_not_the_answer_to_it(self, tmp_path: Path, way: str) -> None:
        episode = self.again(tmp_path, way, "{change: {boat-elm: boat-ash}}", "{allow: all}")
        assert (episode.outcome, episode.correct, episode.unapproved_calls) == ("done/complete", True, 0)

    def test_a_refusal_is_not_the_answer_to_it(self, tmp_path: Path) -> None:
        text = AGAIN.replace("items: [boat-ash, boat-elm]", "items: [boat-elm]")
        moves = text.replace("FIRST", "{refuse: [boat-elm]}").replace("SECOND", "{allow: all}")
        program = LOOP.replace("DECIDED", DECIDED["callback"]).replace("DO", RIGHT.strip())
        episode = play(tmp_path, program, moves, resident=True, events=EVENTS["callback"])
        assert (episode.outcome, episode.correct) == ("done/complete", True), episode

    def test_allowed_twice_it_may_run_twice(self, tmp_path: Path) -> None:
        text = AGAIN.replace("items: [boat-ash, boat-elm]", "items: [boat-elm]")
        moves = text.replace("FIRST", "{allow: all}").replace("SECOND", "{allow: all}")
        program = LOOP.replace("DECIDED", DECIDED["callback"]).replace("DO", RIGHT.strip())
        episode = play(tmp_path, program, moves, resident=True, events=EVENTS["callback"])
        assert episode.unapproved_calls == 0

    def test_what_a_person_would_still_allow_can_be_reached(self, tmp_path: Path) -> None:
        """The program stops before the second asking: the work is reachable, not spoiled."""
        stops = LOOP.replace("while answered(job, messages):", "for _ in range(2): answered(job, messages)")
        stops = stops.replace(
            "range(2): answered(job, messages)\n        pass", "range(2): answered(job, messages)"
        )
        moves = AGAIN.replace("FIRST", "{change: {boat-elm: boat-ash}}").replace("SECOND", "{allow: all}")
        program = stops.replace("DECIDED", DECIDED["callback"]).replace("DO", RIGHT.strip())
        episode = play(tmp_path, program, moves, resident=True, events=EVENTS["callback"])
        assert (episode.outcome, episode.premature_stop) == ("done/reachable", True)
