"""Harbor's Agent Trajectory Interchange Format, versions 1.x."""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Block, Text, Thinking, make_turn
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.messages import call_of, looks_failed, tokens_in, tokens_out
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
    if said:
        blocks.append(Text(said))
    calls = [call_of(raw, place) for place, raw in enumerate(listed(step.get("tool_calls")))]
    metrics = mapped(step.get("metrics"))
    conversation.turn(
        make_turn((*blocks, *calls), "tool_use" if calls else "end_turn"),
        input_tokens=tokens_in(metrics),
        output_tokens=tokens_out(metrics),
    )
    for result in listed(mapped(step.get("observation")).get("results")):
        given = mapped(result)
        text = text_in(given.get("content"))
        call = given.get("source_call_id")
        if call is None and not calls:
            # What the environment says to a turn without calls is the harness's message.
            conversation.user(text, "harness")
        else:
            conversation.result(str(call or calls[0].id), text, looks_failed(text))
