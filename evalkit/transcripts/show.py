"""A recording for a terminal: its turns, its end, and what can be judged on it."""

from __future__ import annotations

from evalkit.core.escaping import for_terminal
from evalkit.core.names import counted
from evalkit.core.turns import Call, ServerCall, Text
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay


def head(recording: Recording) -> str:
    """One line: id, format, length, end, label."""
    label = {True: "complete", False: "incomplete", None: "no label"}[recording.label.complete]
    source = f" ({recording.label.source})" if recording.label.source else ""
    child = f", a child of {recording.parent.rpartition('/')[2]}" if recording.parent else ""
    return (
        f"{recording.id}  {recording.format}, {counted(len(recording.steps), 'turn')}, "
        f"{recording.ending} ({recording.native}), {label}{source}{child}"
    )


def recording_text(recording: Recording) -> str:
    """The whole recording, turn by turn."""
    replay = Replay(recording)
    lines = [head(recording), f"task: {_short(recording.prompt)}"]
    for number, (step, moment) in enumerate(zip(recording.steps, replay.moments, strict=True), 1):
        stop, native = step.turn.stop, step.turn.native
        label = stop if native in (None, stop) else f"{stop} ({native})"
        marks = ["end of turn"] * moment.decision + ["may change the world"] * moment.effect
        claim = f", claims {moment.turn.claim}" if moment.turn.claim != "none" else ""
        agent = f" {step.agent}" if step.agent else ""
        lines.append(f"{number:>3} {label}{agent}{claim}" + (f"  [{', '.join(marks)}]" if marks else ""))
        for block in step.turn.content:
            if isinstance(block, Call):
                lines.append(f"     call: {block.tool} {_short(block.arguments)}")
            elif isinstance(block, ServerCall):
                lines.append(f"     server call: {block.name}")
            elif block.text.strip():
                lines.append(
                    f"     {'text' if isinstance(block, Text) else 'thinking'}: {_short(block.text)}"
                )
        for result in step.results:
            lines.append(f"     {'error' if result.error else 'result'}: {_short(result.text)}")
        if step.said is not None:
            lines.append(f"     {step.by}: {_short(step.said)}")
    lines.append(f"end: {recording.ending} ({recording.native})")
    channels = replay.channels
    has = [name for name, on in (("finish tool", channels.finish), ("to-do list", channels.checklist)) if on]
    lines.append(f"channels: {', '.join(has) or 'text only'}")
    return "\n".join(lines) + "\n"


def _short(text: str, width: int = 160) -> str:
    flat = " ⏎ ".join(text.split("\n"))
    flat = for_terminal(flat).strip()
    return (flat if len(flat) <= width else flat[: width - 1] + "…") or "(nothing)"
