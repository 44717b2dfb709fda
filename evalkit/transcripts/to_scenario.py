"""A scenario skeleton from a recording: its moves in order, personal details replaced, ready to edit.

The world is one of plain items: one for each logical action that the recorded run performed. What a run that
ended incomplete left undone is not in the recording: it is one more item, that the script does after the
recorded end, so that the scenario reproduces the incident and can still be completed.
"""

from __future__ import annotations

import json
import re

from evalkit.core.tasks import occurs_whole
from evalkit.core.turns import Call, parse_arguments
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.check import check_scenario
from evalkit.strategies.presets import OWN_WORDS
from evalkit.transcripts.privacy import Replacer
from evalkit.transcripts.recording import Recording, Unreadable, bare_name, finishes
from evalkit.transcripts.replay import Moment, Replay

#: What the label says was missing, and nobody recorded.
UNDONE = "left-undone"
#: Moves without progress that are kept in a row: the ideal driver gives up on more, and nobody reads them.
_READS, _SAYS = 4, 2
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
    text = script.text(name or _slug(recording.id))
    problem = _problem(text)
    if problem:
        raise Unreadable(f"the skeleton is not sound: {problem}")
    return text


def _problem(text: str) -> str:
    scenario: Scenario
    (scenario,) = load_text(text, "skeleton")
    for finding in check_scenario(scenario, {}):
        if finding.fails:
            return finding.message
    return ""


class _Script:
    def __init__(self, recording: Recording, replay: Replay) -> None:
        self.recording = recording
        self.replay = replay
        self.replace = Replacer.of(recording)
        self.items: dict[str, str] = {}
        self.moves: list[str] = []
        self.done: set[str] = set()
        self.reads = self.says = self.left_out = 0
        self.incomplete = recording.label.complete is False
        for place, moment in enumerate(replay.moments):
            self._moment(moment, last=place == len(replay.moments) - 1)
        self._end()

    # Moves

    def _moment(self, moment: Moment, *, last: bool) -> None:
        turn, step = moment.turn, moment.step
        self._comment_on(step.agent)
        work = [self._work(call, moment) for call in step.turn.calls if not finishes(call)]
        parts = [part for part in work if part is not None]
        finish = any(finishes(call) for call in step.turn.calls)
        claims = turn.claim == "done"
        if finish or (claims and not step.turn.calls):
            self._claim(turn.text, finish=finish, parts=parts)
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
            self._say(turn.text, turn.claim)
        if step.said is not None:
            who = "the user" if step.by == "user" else "the harness"
            self.moves.append(f"  # {who} said: {_quoted(self._short(step.said, 200))}")

    def _work(self, call: Call, moment: Moment) -> str | None:
        """The part of a move that a call is; None where it only read or planned."""
        ran = next((record for record in moment.ran if record.call.id == call.id), None)
        if ran is None or ran.tool is None or ran.tool.read_only:
            return None
        item = self._item(call)
        again = ", again: true" if item in self.done else ""
        if ran.result.error:
            said = _quoted(self._short(ran.result.text, 200) or "failed")
            return f"{{work: [{item}], again: true, reply: {{error: true, text: {said}}}}}"
        self.done.add(item)
        self.reads = self.says = 0
        return f"{{work: [{item}]{again}}}"

    def _item(self, call: Call) -> str:
        arguments = parse_arguments(call.arguments) or {}
        key = f"{call.tool} {json.dumps(arguments, sort_keys=True)}"
        if key not in self.items:
            tool = _slug(bare_name(call.tool)) or "call"
            self.items[key] = f"{tool}-{len(self.items) + 1}"
        return self.items[key]

    def _claim(self, text: str, *, finish: bool, parts: list[str]) -> None:
        """A claim of done; it is repeated until somebody names what is open."""
        for part in parts:
            self._move(part)
        self._left_out()
        until = ["until: named"] if self.incomplete else []
        if finish:
            self._move("finish: {completed: all}", *until)
        else:
            self._move(f"say: {_quoted(self._short(text, _SAY))}", "claim: done", *until)

    def _say(self, text: str, claim: str) -> None:
        self.says += 1
        if self.says > _SAYS or not text.strip():
            self.left_out += 1
            return
        self._move(f"say: {_quoted(self._short(text, _SAY))}", f"claim: {claim}")

    def _read(self) -> None:
        self.reads += 1
        if self.reads > _READS:
            self.left_out += 1
            return
        self._move("call: list_items")

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
        if agent and agent != getattr(self, "_agent", ""):
            self._agent = agent
            self._left_out()
            self.moves.append(f"  # {_quoted(self._short(agent, 60))} speaks")

    def _end(self) -> None:
        """Make the script completable: what is open is done once somebody names it, then it is claimed."""
        self._left_out()
        if not self.items:
            self.items["task"] = "the-task"
        if self.incomplete:
            self.moves.append(
                "  # After the recorded end. EDIT: what the run had left undone, and the true last words."
            )
        elif not self.recording.steps or self.replay.moments[-1].turn.claim != "done":
            self.moves.append("  # After the recorded end. EDIT: the true last words.")
        else:
            self.moves.append("  # After the recorded end.")
        self.moves += ["  - work: rest", '  - say: "Everything is done."', "    claim: done"]

    def _short(self, text: str, most: int) -> str:
        text = self.replace(text).strip()
        return text if len(text) <= most else text[: most - 1] + "…"

    # The document

    def text(self, name: str) -> str:
        recording = self.recording
        items = [*self.items.values(), *([UNDONE] if self.incomplete else [])]
        prompt = self._short(recording.prompt, _PROMPT) or "EDIT: what the harness was asked to do."
        label = {True: "complete", False: "incomplete", None: "without a label"}[recording.label.complete]
        lines = [
            *_HEADER,
            f"scenario: {name}",
            "family: recorded",
            f"summary: {_quoted(f'EDIT: a recorded run that ended {recording.ending} and was {label}.')}",
            f"source: {_quoted(f'a {recording.format} recording')}",
            "task:",
            f"  prompt: {_quoted(_free_of(prompt, items))}",
            f"  done_when: {_quoted('EDIT: everything that was asked for is done.')}",
            "  checks: full",
            "  items: given",
            "world:",
            "  kind: items",
            f"  items: [{', '.join(items)}]",
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


def _slug(text: str) -> str:
    """A scenario name or item id of a text."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower().rpartition("/")[2]).strip("-")
    slug = words[:60].strip("-") or "recorded"
    return f"{slug}-run" if any(occurs_whole(slug, words) for words in OWN_WORDS) else slug
