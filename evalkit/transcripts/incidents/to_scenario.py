"""A scenario from a recording: its moves in order, personal details replaced, ready to edit.

The world is one of plain items (:mod:`~evalkit.transcripts.incidents.incident`). What a run that ended
incomplete left undone is done once a harness names it; what it did wrong is forbidden. The words of the
run's user are events after the model's turns. The contract (``expect``) is written where it was played and
holds.
"""

from __future__ import annotations

import json

from evalkit.core.requests import Result
from evalkit.core.tasks import KEYWORD, Offered, occurs_whole
from evalkit.core.turns import Call
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.incidents.incident import UNDONE, Incident, action_of, incident_of, slug_of
from evalkit.transcripts.privacy import Replacer
from evalkit.transcripts.recording import Recording, Unreadable, finishes
from evalkit.transcripts.replay import Moment, Replay

__all__ = ["UNDONE", "own_rule", "skeleton"]

#: Moves without progress that are kept in a row: nobody reads more, and a harness that nudged three times
#: gives up. Turns that the user answered are kept longer, since each answer starts the count anew.
_READS, _SAYS, _ANSWERED = 4, 2, 12
#: Characters of a prompt and of a say that are kept.
_PROMPT, _SAY = 2_000, 600
_HEADER = (
    "# A skeleton made from a recording by `evalkit transcripts to-scenario`. Edit what is marked EDIT,",
    "# read it for personal details, then: evalkit scenarios check THIS_FILE",
)


def skeleton(recording: Recording, name: str = "") -> str:
    """The YAML text. It loads and passes ``evalkit scenarios check``; Unreadable where none can be made."""
    replay = Replay(recording)
    if not replay.moments:
        raise Unreadable("holds no model turn, so there is nothing to script")
    script = _Script(recording, replay)
    called = name or slug_of(recording.id)
    text = script.text(called)
    scenario = _sound(text)
    contract = _contract(scenario, script)
    if contract:
        text = script.text(called, contract)
        _sound(text)
    return text


def _sound(text: str) -> Scenario:
    scenario: Scenario
    (scenario,) = load_text(text, "skeleton")
    for finding in check_scenario(scenario, {}):
        if finding.fails:
            raise Unreadable(f"the skeleton is not sound: {finding.message}")
    return scenario


def own_rule(replay: Replay) -> str:
    """The preset that ends a run as the recorded harness did: by its finish tool, its keyword, or silence."""
    last = replay.recording.steps[-1].turn
    if any(finishes(call) for call in last.calls):
        return "finish_tool"
    if occurs_whole(KEYWORD, last.text):
        return "keyword"
    return "silence"


def _contract(scenario: Scenario, script: _Script) -> list[str]:
    """``expect``: the run's own rule fails as it did, and checks pass where further work can mend it."""
    if not script.incomplete or script.recording.ending != "done":
        return []
    rule = own_rule(script.replay)
    failed = run_episode(Arena(scenario, Offered()), PRESETS[rule].strategy, 0)
    passed = run_episode(Arena(scenario, Offered()), PRESETS["acceptance"].strategy, 0)
    lines = []
    if failed.ending == "done" and not failed.correct:
        lines.append(f"  fails: {rule}")
    if passed.outcome == "done/complete" and passed.correct:
        lines.append("  passes: acceptance")
    return ["expect:", *lines] if lines else []


class _Script:
    def __init__(self, recording: Recording, replay: Replay) -> None:
        self.recording = recording
        self.replay = replay
        self.replace = Replacer.of(recording)
        self.incident: Incident = incident_of(recording, replay)
        self.rule = own_rule(replay)
        self.moves: list[str] = []
        self.done: set[str] = set()
        self.reads = self.says = self.nudges = self.left_out = 0
        self.incomplete = recording.label.complete is False
        self._agent = ""
        for place, moment in enumerate(replay.moments):
            self._moment(moment, last=place == len(replay.moments) - 1)
        self._end()

    # Moves

    def _moment(self, moment: Moment, *, last: bool) -> None:
        turn, step = moment.turn, moment.step
        self._comment_on(step.agent)
        results = {result.id: result for result in step.results}
        parts = [
            part
            for call in step.turn.calls
            if (part := self._work(call, results.get(call.id), moment)) is not None
        ]
        kept = True
        answered = step.said is not None and step.by == "user" and not last
        finish = any(finishes(call) for call in step.turn.calls)
        if finish or (turn.claim == "done" and (last or not step.turn.calls)):
            kept = self._claim(turn.text, finish=finish, parts=parts, last=last, answered=answered)
        elif len(parts) == 1:
            self._move(parts[0])
        elif parts:
            self._move("turn:", *(f"    - {part}" for part in parts))
        elif step.turn.calls:
            self._read()
        elif turn.kind == "pause":
            self._unproductive("pause: {}")
        elif turn.kind == "cut_off":
            limit = "context_window" if turn.stop == "context_window" else "max_tokens"
            self._unproductive("truncate: text", f"  limit: {limit}")
        elif turn.kind == "refusal" and not last:
            self._unproductive("refuse: {}")
        else:
            kept = self._say(turn.text, turn.claim, last=last, answered=answered)
        if step.said is None or last:
            return
        words = self._short(step.said, _SAY)
        if answered and moment.decision and words:
            if kept:
                self.nudges = 0
                # It comes after the model's turn, however the harness takes that.
                self._move(f"user: {{text: {_quoted(_free_of(words, self._items()))}}}")
        else:
            who = "the user" if step.by == "user" else "the harness"
            self.moves.append(f"  # {who} said: {_quoted(self._short(step.said, 200))}")

    def _work(self, call: Call, result: Result | None, moment: Moment) -> str | None:
        """The part of a move that a call is; None where it only read or planned."""
        ran = next((record for record in moment.ran if record.call.id == call.id), None)
        if ran is None or ran.tool is None or ran.tool.read_only:
            return None
        item = self.incident.items.get(action_of(call))
        if ran.result.error or item is None:
            said = _quoted(self._short(ran.result.text, 200) or "failed")
            reply = f"reply: {{error: true, text: {said}}}"
            # What only ever failed is no item: a call that was answered with an error.
            return f"{{work: [{item}], again: true, {reply}}}" if item else f"{{call: list_items, {reply}}}"
        again = ", again: true" if item in self.done else ""
        self.done.add(item)
        self.reads = self.says = self.nudges = 0
        return f"{{work: [{item}]{again}}}"

    def _many(self, *, last: bool, answered: bool) -> bool:
        """Whether too many ends of turn came in a row for another one to be kept."""
        self.says += 1
        self.nudges += not answered
        return not last and (self.says > _ANSWERED or self.nudges > _SAYS)

    def _claim(self, text: str, *, finish: bool, parts: list[str], last: bool, answered: bool) -> bool:
        """A claim of done; the last one of an incident is repeated until somebody names what is open."""
        if self._many(last=last, answered=answered) and not parts:
            self.left_out += 1
            return False
        self._left_out()
        until = ["until: named"] if self.incomplete and last else []
        said = self._short(text, _SAY)
        if finish and not parts:
            self._move("finish: {completed: all}", *until)
        elif finish:
            self._move(
                "turn:", *(f"    - {part}" for part in parts), "    - finish: {completed: all}", *until
            )
        elif parts:
            self._move(
                "turn:",
                *(f"    - {part}" for part in parts),
                f"    - say: {_quoted(said)}",
                "      claim: done",
                *until,
            )
        else:
            self._move(f"say: {_quoted(said)}", "claim: done", *self._channel(last=last), *until)
        return True

    def _channel(self, *, last: bool) -> list[str]:
        """The recorded model claimed in words before it took the channel that ended its run."""
        return [] if last or self.rule == "silence" else ["channel: text"]

    def _say(self, text: str, claim: str, *, last: bool, answered: bool) -> bool:
        """Whether the words are kept: of many in a row without work the first few are, and the last."""
        if self._many(last=last, answered=answered) or not text.strip():
            self.left_out += 1
            return False
        until = ["until: named"] if self.incomplete and last else []
        self._move(f"say: {_quoted(self._short(text, _SAY))}", f"claim: {claim}", *until)
        return True

    def _read(self) -> None:
        self._unproductive("call: list_items")

    def _unproductive(self, *lines: str) -> None:
        self.reads += 1
        if self.reads > _READS:
            self.left_out += 1
            return
        self._move(*lines)

    def _move(self, *lines: str) -> None:
        self._left_out()
        first, *rest = lines
        self.moves.append(f"  - {first}")
        self.moves += [f"    {line}" for line in rest]

    def _left_out(self) -> None:
        if self.left_out:
            self.moves.append(f"  # {self.left_out} turns without progress left out")
            self.left_out = 0

    def _comment_on(self, agent: str) -> None:
        if agent and agent != self._agent:
            self._agent = agent
            self._left_out()
            self.moves.append(f"  # {_quoted(self._short(agent, 60))} speaks")

    def _end(self) -> None:
        """Make the script completable: what is open is done once somebody names it, then it is claimed."""
        self._left_out()
        if self.incident.wrong:
            self.moves.append("  # After the recorded end. What was done wrong cannot be mended by going on.")
        elif self.incomplete:
            self.moves.append(
                "  # After the recorded end. EDIT: what the run had left undone, and the true last words."
            )
        elif self.replay.moments[-1].turn.claim != "done":
            self.moves.append("  # After the recorded end. EDIT: the true last words.")
        else:
            self.moves.append("  # After the recorded end.")
        self.moves += ["  - work: rest", '  - say: "Everything is done."', "    claim: done"]

    def _short(self, text: str, most: int) -> str:
        """The text, of a long one its beginning and its end, where the word stands that ends a run."""
        text = self.replace(text).strip()
        if len(text) <= most:
            return text
        return f"{text[: most - most // 4 - 1]}…{text[-(most // 4) :]}"

    # The document

    def _items(self) -> list[str]:
        wrong = set(self.incident.wrong)
        items = [item for item in self.incident.items.values() if item not in wrong]
        items += self.incident.undone
        return items or ["the-task"]

    def text(self, name: str, contract: list[str] | None = None) -> str:
        """The document."""
        recording, incident = self.recording, self.incident
        items = self._items()
        named = [*items, *incident.wrong]
        prompt = self._short(recording.prompt, _PROMPT) or "EDIT: what the harness was asked to do."
        label = {True: "complete", False: "incomplete", None: "without a label"}[recording.label.complete]
        cause = "" if incident.cause in ("none", "unknown") else f" ({incident.cause})"
        summary = f"EDIT: a recorded run that ended {recording.ending} and was {label}{cause}."
        forbidden = [
            "  # EDIT: actions of the run that no right run makes, as far as its author says.",
            f"  forbidden: [{', '.join(incident.wrong)}]",
        ]
        lines = [
            *_HEADER,
            f"scenario: {name}",
            "family: recorded",
            f"summary: {_quoted(summary)}",
            f"source: {_quoted(f'a recording, {recording.format}')}",
            "task:",
            f"  prompt: {_quoted(_free_of(prompt, named))}",
            f"  done_when: {_quoted('EDIT: everything that was asked for is done.')}",
            "  checks: full",
            "  items: given",
            "world:",
            "  kind: items",
            f"  items: [{', '.join(items)}]",
            *(forbidden if incident.wrong else []),
            *(contract or []),
            "model:",
            *self.moves,
        ]
        return "\n".join(lines) + "\n"


def _free_of(text: str, items: list[str]) -> str:
    """The text as it is; a prompt that named an item would tell a harness what the script calls it."""
    for item in items:
        if occurs_whole(item, text):
            text = text.replace(item, f"{item}_")
    return text


def _quoted(text: str) -> str:
    """A YAML double-quoted scalar on one line."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = "".join(
        character if character.isprintable() or character in "\n\t" else "�" for character in text
    )
    return json.dumps(clean.encode("utf-8", "replace").decode(), ensure_ascii=False)
