"""Recordings read as lives: what counts as an end of turn, an act, an exit and a cause is judgement's own."""

from __future__ import annotations

from evalkit.scenarios.life import Act, Exit, Kind, Life, Part, Truth
from evalkit.transcripts.incidents.incident import action_of, incident_of
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Moment, Replay
from evalkit.transcripts.turn_claims import ClaimReader, claim_of

_EXITS: dict[str, Exit] = {"done": "done", "partial": "done", "escalated": "escalated"}
_CAUSES: dict[str, Truth] = {"undone": "undone", "wrong act": "wrong act", "both": "both"}


def life_of(recording: Recording, reader: ClaimReader = claim_of) -> Life:
    """A recording as a life; its task and model are those of the recording."""
    replay = Replay(recording, reader)
    return Life(
        recording.task, _parts(replay), exit_of(recording), truth_of(recording, replay), recording.model
    )


def exit_of(recording: Recording) -> Exit:
    """How a run ended, as lives tell it: a limit, an error and a recording that breaks off are no end."""
    return _EXITS.get(recording.ending, "broken off")


def truth_of(recording: Recording, replay: Replay) -> Truth:
    """What its label says, and of an incomplete run why, where its author says which calls are right."""
    if recording.label.complete is None:
        return ""
    if recording.label.complete:
        return "right"
    cause = incident_of(recording, replay).cause
    # With the right calls made and no other, what was wrong is what was said.
    return _CAUSES.get(cause, "unknown" if recording.expected is None else "words")


def _parts(replay: Replay) -> tuple[Part, ...]:
    seen: set[str] = set()
    parts: list[Part] = []
    acts: list[Act] = []
    last = len(replay.moments)
    stops = exit_of(replay.recording) == "done"
    for number, moment in enumerate(replay.moments, 1):
        if not (moment.decision or (number == last and stops)):
            acts.append(_act(moment, seen))
            continue
        # What a user says who ends the run asks for nothing.
        over = number == last and stops
        asked = not over and moment.step.said is not None and moment.step.by == "user"
        kind: Kind = moment.turn.claim
        parts.append(Part(tuple(acts), kind, asked))
        acts = []
    if acts or not stops:
        # It ended in its tools, or right after an end of turn that was none to its harness.
        parts.append(Part(tuple(acts)))
    return tuple(parts)


def _act(moment: Moment, seen: set[str]) -> Act:
    actions = {action_of(call) for call in moment.turn.calls}
    again = bool(actions) and actions <= seen
    seen |= actions
    return Act(moment.effect, any(ran.result.error for ran in moment.ran), again)
