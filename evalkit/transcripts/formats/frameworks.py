"""Runs as agent frameworks save them: browser-use, smolagents, trae-agent, states of the Agents SDK, Hermes
and other ShareGPT lists, and lists of the APIs' own messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from evalkit.core.turns import Block, Call, Text, Thinking, make_turn, parse_arguments
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.messages import (
    call_of,
    read_messages,
    stop_of,
    tokens_in,
    tokens_out,
)
from evalkit.transcripts.formats.parts import answer_text, arguments_of, tagged_blocks
from evalkit.transcripts.formats.responses import read_item_list
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import NO_LABEL, Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.answers import number as number_of

# browser-use


def is_browser_use(record: Any) -> bool:
    """A history of steps: what the model put out, and what came of it."""
    steps = listed(mapped(record).get("history"))
    return bool(steps) and any("model_output" in mapped(step) and "result" in mapped(step) for step in steps)


def browser_use(record: dict[str, Any], source: Source) -> Recording:
    """One history; the action ``done`` is the finish call, its ``success`` the agent's own word."""
    conversation = Conversation()
    ended: tuple[Ended, str] | None = None
    conversation.user(text_in(record.get("task")))
    for number, step in enumerate(map(mapped, record["history"])):
        output = mapped(step.get("model_output"))
        results = [mapped(result) for result in listed(step.get("result"))]
        if not output:
            ended = (
                "error",
                text_in(next((result.get("error") for result in results), ""))[:80] or "failed step",
            )
            continue
        ended = None
        thoughts = [
            output.get(name) or mapped(output.get("current_state")).get(name)
            for name in ("thinking", "evaluation_previous_goal", "memory", "next_goal")
        ]
        blocks: list[Block] = [Thinking(thought) for thought in map(text_in, thoughts) if thought]
        for place, action in enumerate(map(mapped, listed(output.get("action")))):
            name = next(
                (key for key, value in action.items() if value is not None and key != "interacted_element"),
                "none",
            )
            blocks.append(Call(f"step-{number}.{place}", name, arguments_of(action.get(name))))
            if name == "done":
                told = mapped(action.get(name))
                blocks.insert(len(blocks) - 1, Text(text_in(told.get("text"))))
                ended = ("partial" if told.get("success") is False else "done"), "done"
        conversation.turn(make_turn(tuple(blocks), "tool_use"))
        for place, result in enumerate(results):
            text = text_in(result.get("error")) or text_in(result.get("extracted_content"))
            conversation.result(f"step-{number}.{place}", text, bool(result.get("error")))
    return conversation.recording(source.id(), source.file, "browser-use", ended, label_of(record))


# smolagents


def is_smolagents(record: Any) -> bool:
    """A run's steps: what the model put out, its calls, what was observed."""
    steps = listed(record) if isinstance(record, list) else listed(mapped(record).get("steps"))
    return bool(steps) and any(
        "model_output" in mapped(step) and ("observations" in mapped(step) or "step_number" in mapped(step))
        for step in steps
    )


def smolagents(record: Any, source: Source) -> Recording:
    """One run; a step with ``is_final_answer`` ends it."""
    conversation = Conversation()
    steps = listed(record) if isinstance(record, list) else listed(record.get("steps"))
    ended: tuple[Ended, str] | None = None
    for number, step in enumerate(map(mapped, steps)):
        if "task" in step:
            conversation.user(text_in(step["task"]))
        elif "system_prompt" in step:
            conversation.system(text_in(step["system_prompt"]))
        elif "final_answer" in step and "model_output" not in step:
            ended = "done", "final answer"
        elif "model_output" in step:
            calls = [call_of(raw, place) for place, raw in enumerate(listed(step.get("tool_calls")))]
            calls = [
                Call(call.id if call.id != "call-0" else f"step-{number}", call.tool, call.arguments)
                for call in calls
            ]
            text = answer_text(step.get("model_output"))
            blocks = (*((Text(text),) if text else ()), *calls)
            usage = mapped(step.get("token_usage"))
            conversation.turn(
                make_turn(blocks, "tool_use" if calls else "end_turn"),
                "",
                tokens_in(usage),
                tokens_out(usage),
            )
            error = step.get("error")
            if calls:
                seen = text_in(mapped(error).get("message") or error) or answer_text(step.get("observations"))
                conversation.result(calls[0].id, seen, bool(error))
            elif error:
                conversation.user(text_in(mapped(error).get("message") or error), "harness")
            ended = ("done", "final answer") if step.get("is_final_answer") else None
            if mapped(error).get("type") == "AgentMaxStepsError":
                ended = "limit", "AgentMaxStepsError"
    return conversation.recording(source.id(), source.file, "smolagents", ended)


# trae-agent


def is_trae(record: Any) -> bool:
    """A trajectory: the model's interactions and the agent's steps."""
    given = mapped(record)
    return isinstance(given.get("agent_steps"), list) and ("llm_interactions" in given or "task" in given)


def trae(record: dict[str, Any], source: Source) -> Recording:
    """One trajectory; ``success`` says that the agent ended by itself."""
    conversation = Conversation()
    conversation.user(text_in(record.get("task")))
    conversation.model = str(record.get("model") or "")
    for step in map(mapped, record["agent_steps"]):
        response = mapped(step.get("llm_response"))
        if not response:
            continue
        calls = [
            call_of(raw, place)
            for place, raw in enumerate(listed(response.get("tool_calls")) or listed(step.get("tool_calls")))
        ]
        text = text_in(response.get("content"))
        usage = mapped(response.get("usage"))
        stop, native = stop_of(response.get("finish_reason"), bool(calls))
        blocks = (*((Text(text),) if text else ()), *calls)
        conversation.turn(make_turn(blocks, stop, native=native), "", tokens_in(usage), tokens_out(usage))
        for result in map(mapped, listed(step.get("tool_results"))):
            said = text_in(result.get("error")) or text_in(result.get("result"))
            flag = result.get("success")
            conversation.result(
                str(result.get("call_id")), said, not flag if isinstance(flag, bool) else looks_failed(said)
            )
    done = record.get("success")
    ended: tuple[Ended, str] | None = ("limit", "no success") if done is False else None
    return conversation.recording(source.id(), source.file, "trae-agent", ended)


# OpenAI Agents SDK, saved state


def is_run_state(record: Any) -> bool:
    """A run's state: its schema version, and the items it generated."""
    given = mapped(record)
    return "$schemaVersion" in given and ("generated_items" in given or "generatedItems" in given)


def run_state(record: dict[str, Any], source: Source) -> Recording:
    """One state: the items in order; it waits for approvals where its step is an interruption."""
    conversation = Conversation()
    given = record.get("original_input", record.get("originalInput"))
    items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
    for wrapped in listed(record.get("generated_items") or record.get("generatedItems")):
        raw = mapped(wrapped).get("raw_item") or mapped(wrapped).get("rawItem") or wrapped
        items = [*items, {**mapped(raw)}]
    read_item_list(conversation, [_snake(item) for item in items])
    step = mapped(record.get("current_step") or record.get("currentStep"))
    waits = "interruption" in str(step.get("type") or "")
    return conversation.recording(
        source.id(),
        source.file,
        "openai-agents-state",
        ("escalated", "waits for approval") if waits else None,
    )


def _snake(item: Any) -> Any:
    """An item of the JavaScript SDK in the API's names."""
    if not isinstance(item, dict):
        return item
    given = {("call_id" if key == "callId" else key): value for key, value in item.items()}
    if given.get("type") == "function_call_result":
        given["type"] = "function_call_output"
    return given


# ShareGPT lists, Hermes among them

_FROM = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function"), "tool"),
    "system": "system",
    "function_call": "call",
}
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def is_hermes(record: Any) -> bool:
    """A record of ``conversations`` whose messages say who they are ``from``, with a ``value``."""
    messages = listed(mapped(record).get("conversations"))
    return bool(messages) and any(
        mapped(message).get("from") in _FROM and "value" in mapped(message) for message in messages
    )


def hermes(record: dict[str, Any], source: Source) -> Recording:
    """One conversation, calls and answers as tags in the text. ``completed``: it ran to its end."""
    conversation = Conversation()
    for number, raw in enumerate(record["conversations"], 1):
        message = mapped(raw)
        role, text = _FROM.get(str(message.get("from")), ""), text_in(message.get("value"))
        if role == "system":
            conversation.system(text)
        elif role == "user":
            conversation.user(text)
        elif role == "assistant":
            blocks = tagged_blocks(text, number)
            called = any(isinstance(block, Call) for block in blocks)
            conversation.turn(make_turn(blocks, "tool_use" if called else "end_turn"))
        elif role == "call":
            conversation.turn(
                make_turn((call_of(parse_arguments(text) or {"name": "unknown"}, number),), "tool_use")
            )
        elif role == "tool":
            for said in _RESPONSE.findall(text) or [text]:
                _tagged_answer(conversation, said)
        else:
            conversation.skip("is no message", f"message {number}")
    ended: tuple[Ended, str] | None = None
    if record.get("partial") is True or record.get("completed") is False:
        ended = "limit", "not completed"
    return conversation.recording(
        source.id(), source.file, "hermes", ended, label_of(record, ("reward", "resolved", "is_correct"))
    )


def _tagged_answer(conversation: Conversation, said: str) -> None:
    told = parse_arguments(said)
    name, content = "", said
    if told is not None and ("content" in told or "tool_call_id" in told):
        name, content = str(told.get("name") or ""), answer_text(told.get("content"))
    step = conversation.last
    answered = {result.id for result in step.results} if step is not None else set()
    free = [call for call in step.turn.calls if call.id not in answered] if step is not None else []
    call = next((call for call in free if call.tool == name), free[0] if free else None)
    conversation.result(call.id if call is not None else name, content, looks_failed(content))


# Mastra, Strands and the like keep lists of the APIs' own messages, one file a message or all of them


def is_strands_message(record: Any) -> bool:
    """A stored message of Strands: the message, its number and when it was written."""
    given = mapped(record)
    return isinstance(given.get("message"), dict) and "message_id" in given and "role" in given["message"]


def strands_messages(messages: Iterable[Any], source: Source) -> Recording:
    """The messages of a session in their order."""
    conversation = Conversation()
    rows = sorted(map(mapped, messages), key=lambda row: number_of(row.get("message_id")))
    read_messages(conversation, [mapped(row.get("message")) for row in rows])
    return conversation.recording(source.id(), source.file, "strands", None, NO_LABEL)
