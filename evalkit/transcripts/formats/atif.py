"""Harbor's Agent Trajectory Interchange Format, versions 1.x."""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Block, Call, Text, Thinking, make_turn, parse_arguments
from evalkit.transcripts.formats.messages import call_of, looks_failed, tokens_in, tokens_out
from evalkit.transcripts.formats.parts import arguments_of, tagged_blocks
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import Conversation, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in


def is_atif(record: dict[str, Any]) -> bool:
    """A trajectory says its schema version."""
    return str(record.get("schema_version", "")).upper().startswith("ATIF") and isinstance(
        record.get("steps"), list
    )


def atif(record: dict[str, Any], source: Source) -> Recording:
    """One trajectory. The format has no end signal and no label of its own; ``extra`` may hold one."""
    conversation = Conversation()
    conversation.model = str(mapped(record.get("agent")).get("model_name") or "")
    for number, raw in enumerate(record["steps"]):
        step = mapped(raw)
        if step.get("is_copied_context"):
            continue
        if step.get("source") == "agent":
            _agent(conversation, number, step)
        elif step.get("source") == "user":
            conversation.user(text_in(step.get("message")))
        else:
            conversation.system(text_in(step.get("message")))
    extra = mapped(record.get("extra"))
    return conversation.recording(source.id(), source.file, "atif", None, label_of({**extra, **record}))


def _agent(conversation: Conversation, number: int, step: dict[str, Any]) -> None:
    blocks: list[Block] = []
    thought, said = text_in(step.get("reasoning_content")), text_in(step.get("message"))
    if thought:
        blocks.append(Thinking(thought))
    calls = [call_of(raw, place) for place, raw in enumerate(listed(step.get("tool_calls")))]
    if not calls:
        words, calls = _in_words(said, number)
        blocks += words
    elif said:
        blocks.append(Text(said))
    metrics = mapped(step.get("metrics"))
    conversation.turn(
        make_turn((*blocks, *calls), "tool_use" if calls else "end_turn"),
        input_tokens=tokens_in(metrics),
        output_tokens=tokens_out(metrics),
    )
    free = [call.id for call in calls if call.tool != _DONE] or [call.id for call in calls]
    for result in listed(mapped(step.get("observation")).get("results")):
        given = mapped(result)
        text = text_in(given.get("content"))
        call = given.get("source_call_id")
        if call is None and not calls:
            # What the environment says to a turn without calls is the harness's message.
            conversation.user(text, "harness")
        else:
            conversation.result(str(call or free[0]), text, looks_failed(text))


#: The call by which Terminus 2 says that the task is done; the harness asks back once.
_DONE = "mark_task_complete"


def _in_words(said: str, number: int) -> tuple[list[Block], list[Call]]:
    """A message whose calls stand in its words: Terminus 2's JSON, or OpenHands's tags; else words alone."""
    told = parse_arguments(_fenced(said)) if "{" in said[:200] else None
    if told is not None and ("commands" in told or "task_complete" in told):
        words = "\n".join(filter(None, (text_in(told.get("analysis")), text_in(told.get("plan")))))
        calls = [
            Call(f"step-{number}.{place}", "bash_command", arguments_of(command))
            for place, command in enumerate(listed(told.get("commands")))
        ]
        if told.get("task_complete") is True:
            calls.append(Call(f"step-{number}.done", _DONE, "{}"))
        return ([Text(words)] if words else []), calls
    if "<function=" in said:
        blocks = tagged_blocks(said, number)
        return (
            [block for block in blocks if not isinstance(block, Call)],
            [block for block in blocks if isinstance(block, Call)],
        )
    return ([Text(said)] if said else []), []


def _fenced(text: str) -> str:
    """The outermost object in a text."""
    return text[text.find("{") : text.rfind("}") + 1]
