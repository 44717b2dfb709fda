"""Runs as agent frameworks save them: AutoGen, pydantic-ai, LangChain, browser-use, smolagents, trae-agent,
Agents SDK run states, Hermes and other ShareGPT lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, Text, Thinking, make_turn, parse_arguments
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.messages import (
    answer,
    call_of,
    read_message,
    read_messages,
    stop_of,
    tokens_in,
    tokens_out,
)
from evalkit.transcripts.formats.parts import answer_text, arguments_of, tagged_blocks
from evalkit.transcripts.formats.responses import read_item_list
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.recording import NO_LABEL, Conversation, Ended, Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.answers import number as number_of

# AutoGen

_AUTOGEN = frozenset(
    (
        *(
            "TextMessage",
            "MultiModalMessage",
            "ToolCallRequestEvent",
            "ToolCallExecutionEvent",
            "ThoughtEvent",
        ),
        *("ToolCallSummaryMessage", "StopMessage", "HandoffMessage", "StructuredMessage", "MemoryQueryEvent"),
        *(
            "UserInputRequestedEvent",
            "ModelClientStreamingChunkEvent",
            "SelectSpeakerEvent",
            "CodeGenerationEvent",
            "CodeExecutionEvent",
        ),
    )
)


def is_autogen_message(value: Any) -> bool:
    """A message of an AgentChat team: its source and its type."""
    return isinstance(value, dict) and "source" in value and value.get("type") in _AUTOGEN


def is_autogen(record: Any) -> bool:
    """A task's result, or a team's saved state."""
    if not isinstance(record, dict):
        return False
    if isinstance(record.get("agent_states"), dict):
        return True
    messages = record.get("messages")
    return isinstance(messages, list) and any(map(is_autogen_message, messages))


def autogen(record: dict[str, Any], source: Source) -> Recording:
    """One team's run: the messages of its result, or the manager's thread in its state."""
    messages = listed(record.get("messages")) or _thread(record)
    if messages and not any(map(is_autogen_message, messages)):
        return _agent_context(messages, source)
    return autogen_messages(messages, source, record.get("stop_reason"))


def _thread(record: dict[str, Any]) -> list[Any]:
    states = [mapped(state) for state in mapped(record.get("agent_states")).values()]
    states = [mapped(state.get("agent_state")) or state for state in states]
    for state in states:
        if listed(state.get("message_thread")):
            return listed(state["message_thread"])
    for state in states:
        inner = mapped(state.get("inner_team_state")) or mapped(state.get("team_state"))
        found = _thread(inner) if inner else []
        if found:
            return found
    for state in (record, *states):
        context = listed(mapped(state.get("llm_context")).get("messages"))
        if context:
            return context
    return []


def autogen_messages(messages: list[Any], source: Source, stop: Any = None) -> Recording:
    """The messages of a run."""
    conversation = Conversation()
    thoughts: list[Block] = []
    ended: tuple[Ended, str] | None = None
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        kind, speaker, content = given.get("type"), str(given.get("source")), given.get("content")
        usage = mapped(given.get("models_usage"))
        tokens = (tokens_in(usage), tokens_out(usage)) if usage else (None, None)
        if kind not in _AUTOGEN:
            conversation.skip(f"is no message of a team: {kind}", f"message {number}")
        elif speaker in ("user", "user_proxy"):
            conversation.user(text_in(content))
        elif kind in ("ThoughtEvent",):
            thoughts.append(Thinking(text_in(content)))
        elif kind == "ToolCallRequestEvent":
            calls = [call_of(raw, place) for place, raw in enumerate(listed(content))]
            conversation.turn(make_turn((*thoughts, *calls), "tool_use"), speaker, *tokens)
            thoughts = []
        elif kind == "ToolCallExecutionEvent":
            _executed(conversation, content)
        elif kind == "StopMessage":
            ended = "done", text_in(content)[:80]
        elif kind in ("TextMessage", "MultiModalMessage", "HandoffMessage", "StructuredMessage"):
            said = content if isinstance(content, str | list) else arguments_of(content)
            conversation.turn(make_turn((*thoughts, Text(text_in(said))), "end_turn"), speaker, *tokens)
            thoughts = []
    if isinstance(stop, str) and stop:
        limit = re.search(r"max(?:imum)?\b.*(?:messages?|turns?|tokens?)|timeout", stop, re.IGNORECASE)
        ended = ("limit" if limit else "done"), stop[:80]
    return conversation.recording(source.id(), source.file, "autogen", ended)


def _executed(conversation: Conversation, results: Any) -> None:
    """The results of calls, with the flag that the format keeps or by what they say."""
    for raw in listed(results):
        given = mapped(raw)
        text = answer_text(given.get("content"))
        flag = given.get("is_error")
        failed = flag if isinstance(flag, bool) else looks_failed(text)
        conversation.result(str(given.get("call_id")), text, failed)


def _agent_context(messages: list[Any], source: Source) -> Recording:
    """One agent's own side of it."""
    conversation = Conversation()
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        kind, content = given.get("type"), given.get("content")
        if kind == "SystemMessage":
            conversation.system(text_in(content))
        elif kind == "UserMessage":
            conversation.user(text_in(content))
        elif kind == "AssistantMessage":
            calls = [
                call_of(raw, place) for place, raw in enumerate(listed(content)) if isinstance(raw, dict)
            ]
            thought = text_in(given.get("thought"))
            blocks = (
                *((Thinking(thought),) if thought else ()),
                *((Text(content),) if isinstance(content, str) else ()),
                *calls,
            )
            conversation.turn(
                make_turn(blocks, "tool_use" if calls else "end_turn"), str(given.get("source") or "")
            )
        elif kind == "FunctionExecutionResultMessage":
            _executed(conversation, content)
        else:
            conversation.skip(f"is no message of an agent: {kind}", f"message {number}")
    return conversation.recording(source.id(), source.file, "autogen")


# pydantic-ai


def is_pydantic_ai(value: Any) -> bool:
    """A message: its kind, and parts that say their ``part_kind``."""
    return (
        isinstance(value, dict)
        and value.get("kind") in ("request", "response")
        and any("part_kind" in mapped(part) for part in listed(value.get("parts")))
    )


def pydantic_ai(messages: Iterable[Any], source: Source) -> Recording:
    """A message history; an output tool (``final_result``) ends the run."""
    conversation = Conversation()
    ended: tuple[Ended, str] | None = None
    for number, message in enumerate(messages, 1):
        given = mapped(message)
        if not is_pydantic_ai(given):
            conversation.skip("is no message", f"message {number}")
        elif given["kind"] == "request":
            for part in map(mapped, listed(given.get("parts"))):
                _pydantic_request(conversation, part)
        else:
            ended = _pydantic_response(conversation, given)
    return conversation.recording(source.id(), source.file, "pydantic-ai", ended)


def _pydantic_request(conversation: Conversation, part: dict[str, Any]) -> None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "system-prompt":
        conversation.system(text_in(content))
    elif kind == "user-prompt":
        conversation.user(text_in(content))
    elif kind == "tool-return":
        text = answer_text(content)
        failed = (
            looks_failed(text)
            if part.get("outcome") not in ("success", "failed", "denied")
            else part["outcome"] != "success"
        )
        answer(
            conversation, Result(str(part.get("tool_call_id") or part.get("tool_name") or ""), text, failed)
        )
    elif kind == "retry-prompt":
        text = text_in(content) or answer_text(content)
        if part.get("tool_name"):
            answer(conversation, Result(str(part.get("tool_call_id") or part["tool_name"]), text, True))
        else:
            conversation.user(text, "harness")


def _pydantic_response(conversation: Conversation, message: dict[str, Any]) -> tuple[Ended, str] | None:
    blocks: list[Block] = []
    for place, part in enumerate(map(mapped, listed(message.get("parts")))):
        kind = part.get("part_kind")
        if kind == "text":
            blocks.append(Text(text_in(part.get("content"))))
        elif kind == "thinking":
            blocks.append(Thinking(text_in(part.get("content"))))
        elif kind == "tool-call":
            identity = str(part.get("tool_call_id") or f"call-{place}")
            blocks.append(Call(identity, str(part.get("tool_name")), arguments_of(part.get("args"))))
        elif kind not in ("builtin-tool-call", "builtin-tool-return", "file"):
            conversation.skip(f"a part that nobody knows: {kind}")
    calls = [block for block in blocks if isinstance(block, Call)]
    stop, native = stop_of(message.get("finish_reason"), bool(calls))
    usage = mapped(message.get("usage"))
    conversation.model = str(message.get("model_name") or conversation.model)
    conversation.turn(make_turn(tuple(blocks), stop, native=native), "", tokens_in(usage), tokens_out(usage))
    return ("done", "final_result") if any(call.tool.startswith("final_result") for call in calls) else None


# LangChain

_LC = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "SystemMessage", "developer"), "system"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk", "function", "FunctionMessage"), "tool"),
}


def langchain_message(value: Any) -> dict[str, Any] | None:
    """A message of LangChain as a chat message: plain, ``{type, data}``, or a constructor with ``kwargs``."""
    if not isinstance(value, dict):
        return None
    given = value
    kind = given.get("type")
    if kind == "constructor" or "lc" in given:
        name = listed(given.get("id"))
        kind, given = (name[-1] if name else ""), mapped(given.get("kwargs"))
    elif isinstance(given.get("data"), dict) and kind in _LC:
        given = given["data"]
    if not isinstance(kind, str) or kind not in _LC or "content" not in given or "role" in given:
        return None
    more = mapped(given.get("additional_kwargs"))
    metadata = mapped(given.get("response_metadata"))
    calls = listed(given.get("tool_calls")) or listed(more.get("tool_calls"))
    invalid = [
        {**mapped(raw), "args": mapped(raw).get("args") or "{"}
        for raw in listed(given.get("invalid_tool_calls"))
    ]
    return {
        "role": _LC[kind],
        "content": _unless_calls(given["content"], calls),
        "name": given.get("name") if _LC[kind] == "tool" else None,
        "tool_calls": [*calls, *invalid],
        "function_call": more.get("function_call"),
        "tool_call_id": given.get("tool_call_id"),
        "status": given.get("status"),
        "finish_reason": metadata.get("finish_reason")
        or metadata.get("stop_reason")
        or metadata.get("done_reason"),
        "usage": given.get("usage_metadata"),
    }


def _unless_calls(content: Any, calls: list[Any]) -> Any:
    """Content without the calls that stand in ``tool_calls`` too."""
    if not calls or not isinstance(content, list):
        return content
    return [
        block
        for block in content
        if mapped(block).get("type") not in ("tool_use", "function_call", "tool_call")
    ]


def is_langchain(value: Any) -> bool:
    """Whether a value is a message of LangChain."""
    return langchain_message(value) is not None


def langchain(messages: Iterable[Any], source: Source) -> Recording:
    """A list of messages."""
    conversation = Conversation()
    for number, raw in enumerate(messages, 1):
        message = langchain_message(raw)
        if message is None:
            conversation.skip("is no message", f"message {number}")
        else:
            read_message(conversation, message)
    return conversation.recording(source.id(), source.file, "langchain")


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


def strands(record: dict[str, Any], source: Source) -> Recording:
    """Refused: one file of a message is no run."""
    raise Unreadable("is one message of a Strands session; give them together, in order, a message a line")


def strands_messages(messages: Iterable[Any], source: Source) -> Recording:
    """The messages of a session in their order."""
    conversation = Conversation()
    rows = sorted(map(mapped, messages), key=lambda row: number_of(row.get("message_id")))
    read_messages(conversation, [mapped(row.get("message")) for row in rows])
    return conversation.recording(source.id(), source.file, "strands", None, NO_LABEL)
