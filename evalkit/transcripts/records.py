"""The formats in which one JSON value is one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from evalkit.transcripts import swe_agent
from evalkit.transcripts.atif import atif, is_atif
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.messages import is_message, read_messages
from evalkit.transcripts.multi_agent import is_multi_agent, multi_agent
from evalkit.transcripts.recording import Conversation, Recording, Unreadable
from evalkit.transcripts.responses import is_item, is_response, read_input, read_item_list, read_response
from evalkit.transcripts.source import Source
from evalkit.transcripts.tau import is_tau2, is_tau_bench, tau2, tau_bench
from evalkit.wire.answers import listed, mapped

#: Elements of a list that are looked at to say what the list is of.
LOOK = 50


def is_told_in_parts(values: list[Any]) -> bool:
    """Whether values are the messages or items of one run; the messages among items may have no type."""
    return bool(values) and all(is_message(value) or is_item(value) for value in values)


def is_record(value: Any) -> bool:
    """Whether a value is of a format in which one value is one run."""
    if isinstance(value, list):
        return is_told_in_parts(value[:LOOK])
    return isinstance(value, dict) and any(fits(value) for fits, _ in _RECORDS)


def record(value: Any, source: Source) -> Recording:
    """One value that is one run. Unreadable where it is of no format."""
    if isinstance(value, list):
        if is_told_in_parts(value[:LOOK]):
            items = any(map(is_item, value[:LOOK]))
            return item_list(value, source) if items else message_list(value, source)
        raise Unreadable("is a list, but not of messages")
    if not isinstance(value, dict):
        raise Unreadable(f"is no run: a single {type(value).__name__}")
    for fits, read in _RECORDS:
        if fits(value):
            return read(value, source)
    found = ", ".join(list(map(str, value))[:8]) or "nothing"
    raise Unreadable(f"is of no known format; its fields: {found[:120]}")


def message_list(messages: list[Any], source: Source) -> Recording:
    if swe_agent.is_mini_list(messages):
        return swe_agent.read_mini(messages).recording(source.id(), source.file, "mini-swe-agent")
    conversation = Conversation()
    _, anthropic = read_messages(conversation, messages)
    return conversation.recording(
        source.id(), source.file, "anthropic-messages" if anthropic else "openai-chat"
    )


def item_list(items: Iterable[Any], source: Source) -> Recording:
    conversation = Conversation()
    read_item_list(conversation, items)
    return conversation.recording(source.id(), source.file, "openai-responses")


def _is_chat(value: dict[str, Any]) -> bool:
    return isinstance(value.get("messages"), list) and any(map(is_message, value["messages"]))


def _chat(value: dict[str, Any], source: Source) -> Recording:
    """A record with a list of messages, and what else it may say: tools, a last answer, a label."""
    conversation = Conversation()
    if value.get("system"):
        read_messages(conversation, [{"role": "system", "content": value["system"]}])
    for tool in listed(value.get("tools")):
        given = mapped(tool)
        name = given.get("name") or mapped(given.get("function")).get("name")
        if isinstance(name, str):
            conversation.tools[name] = None
    _, anthropic = read_messages(conversation, value["messages"])
    choices = listed(mapped(value.get("response")).get("choices") or value.get("choices"))
    if choices:
        choice = mapped(choices[0])
        last = {
            **mapped(choice.get("message")),
            "role": "assistant",
            "finish_reason": choice.get("finish_reason"),
        }
        read_messages(conversation, [last])
    conversation.model = str(value.get("model") or "")
    name = next((str(value[key]) for key in ("id", "task_id", "instance_id") if value.get(key)), "")
    format = "anthropic-messages" if anthropic else "openai-chat"
    return conversation.recording(source.id(name), source.file, format, None, label_of(value))


def _response(value: dict[str, Any], source: Source) -> Recording:
    conversation = Conversation()
    read_input(conversation, value.get("input"))
    read_response(conversation, value)
    return conversation.recording(source.id(), source.file, "openai-responses", None, label_of(value))


def _is_items(value: dict[str, Any]) -> bool:
    return isinstance(value.get("items"), list) and any(map(is_item, value["items"]))


def _items(value: dict[str, Any], source: Source) -> Recording:
    conversation = Conversation()
    read_item_list(conversation, value["items"])
    return conversation.recording(source.id(), source.file, "openai-responses", None, label_of(value))


#: The formats in which one value is one run, the most particular first.
_RECORDS: tuple[
    tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any], Source], Recording]], ...
] = (
    (is_tau_bench, tau_bench),
    (is_tau2, tau2),
    (swe_agent.is_swe_agent, swe_agent.swe_agent),
    (swe_agent.is_mini, swe_agent.mini),
    (is_atif, atif),
    (is_multi_agent, multi_agent),
    (_is_chat, _chat),
    (is_response, _response),
    (_is_items, _items),
)
