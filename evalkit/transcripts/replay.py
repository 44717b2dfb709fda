"""A recording as the reference loop would have met it: turns, what its calls answered, and a task.

The recording's own channels become the loop's: its finish tool ``finish_task``, its to-do tool the checklist
and the list of items. What a recording does not have is said (:class:`Channels`), so that a strategy that
needs it is not judged.
"""

from __future__ import annotations

from operator import is_

import msgspec

from evalkit.core.channels import is_decision
from evalkit.core.requests import Result
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Limits, Offered, Task, Tool, occurs_whole
from evalkit.core.turns import Block, Call, Turn, make_turn, parse_arguments
from evalkit.strategies.folds import Ran
from evalkit.transcripts.checklists import Checklist, Write
from evalkit.transcripts.effects import only_reads
from evalkit.transcripts.recording import FINISH_TOOLS, SENTINELS, Recording, Step, bare_name, finishes
from evalkit.transcripts.turn_claims import ClaimReader, claim_of
from evalkit.wire.answers import encode_json

_LIST = Tool("recorded_list", "", read_only=True, enumerates=True)
_RECORDED = "recorded"


class Channels(msgspec.Struct, frozen=True):
    """What a recording has: a finish tool (and one that names items), a checklist with items."""

    finish: bool
    names_items: bool
    checklist: bool


class Moment(msgspec.Struct, frozen=True):
    """One turn as the loop meets it, and the calls that were run. ``decision`` marks an end of turn.

    ``effect`` says that a call of it, or the user, may have changed the world.
    """

    turn: Turn
    ran: tuple[Ran, ...]
    step: Step
    decision: bool
    effect: bool


class Replay:
    """A recording made ready for strategies. ``words`` are all that its model was told or said."""

    def __init__(self, recording: Recording, reader: ClaimReader = claim_of) -> None:
        self.recording = recording
        writes, checklist = _writes(recording)
        items = sorted({item for write in writes.values() for item in write.items}, key=_place)
        self.vocabulary = {item: 1 << place for place, item in enumerate(items)}
        self.texts = checklist.texts
        self.channels = Channels(
            finish=_has_finish(recording),
            names_items=any(call.tool == FINISH_TOOL for step in recording.steps for call in step.turn.calls),
            checklist=bool(items),
        )
        self.task = Task(
            name=recording.id,
            prompt=recording.prompt,
            done_when="",
            checks="full",
            given=False,
            vocabulary=self.vocabulary,
            skippable=0,
            tools={},
            limits=Limits(),
            stream=recording.id,
            offered=Offered(finish=True),
        )
        self.moments = self._moments(writes, reader)

    def agrees(self, word: str) -> bool:
        """Whether the recording's model was told of a keyword, or used it as one."""
        recording = self.recording
        told = (recording.instructions, recording.prompt, *(step.said or "" for step in recording.steps))
        if any(occurs_whole(word, text) for text in told):
            return True
        return any(occurs_whole(word, step.turn.text) for step in recording.steps)

    def _moments(self, writes: dict[tuple[int, int], Write], reader: ClaimReader) -> tuple[Moment, ...]:
        moments = []
        working = 0
        for number, step in enumerate(self.recording.steps):
            results = {result.id: result for result in step.results}
            content: list[Block] = []
            ran: list[Ran] = []
            effect = step.acted
            place = 0
            for block in step.turn.content:
                if not isinstance(block, Call):
                    content.append(block)
                    continue
                write, place = writes.get((number, place)), place + 1
                call, records = self._call(block, results.get(block.id), write, working)
                content.append(call)
                ran += records
                if write is not None:
                    working = self.vocabulary.get(write.working or "", 0)
                elif not finishes(block) and not only_reads(block.tool):
                    effect = True
            old = step.turn
            claim = reader(old)
            if all(map(is_, content, old.content)):
                turn = old if claim == old.claim else msgspec.structs.replace(old, claim=claim)
            else:
                # A call became one of the loop's own.
                turn = make_turn(
                    tuple(content), old.stop, native=old.native, category=old.category, claim=claim
                )
            moments.append(Moment(turn, tuple(ran), step, is_decision(turn, self.task.offered), effect))
        return tuple(moments)

    def _call(
        self, call: Call, result: Result | None, write: Write | None, working: int
    ) -> tuple[Call, list[Ran]]:
        if write is not None:
            listing = Result(call.id, ", ".join(write.items))
            ticks = Call(call.id, CHECKLIST_TOOL, encode_json({"done": write.ticked}).decode())
            return call, [Ran(call, listing, _LIST), Ran(ticks, Result(call.id, _RECORDED))]
        if finishes(call):
            arguments = call.arguments
            if call.tool != FINISH_TOOL or parse_arguments(arguments) is None:
                arguments = "{}"
            own = Call(call.id, FINISH_TOOL, arguments)
            return own, [Ran(own, Result(call.id, _RECORDED))]
        if result is None:
            return call, []
        tool = Tool(call.tool, "", read_only=only_reads(call.tool), does=True)
        return call, [Ran(call, result, tool, working)]


def _writes(recording: Recording) -> tuple[dict[tuple[int, int], Write], Checklist]:
    """The list after each call that wrote it, by turn and place of the call."""
    checklist = Checklist()
    writes = {}
    for number, step in enumerate(recording.steps):
        results = {result.id: result for result in step.results}
        for place, call in enumerate(step.turn.calls):
            write = checklist.read(call, results.get(call.id))
            if write is not None:
                writes[number, place] = write
    return writes, checklist


def _place(item: str) -> int:
    return int(item.split("-")[1])


def _has_finish(recording: Recording) -> bool:
    if any(bare_name(tool) in FINISH_TOOLS for tool in recording.tools):
        return True
    if any(word in text for word in SENTINELS for text in (recording.instructions, recording.prompt)):
        return True
    return any(finishes(call) for step in recording.steps for call in step.turn.calls)
