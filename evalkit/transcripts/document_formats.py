"""The formats in which one JSON value is one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from evalkit.transcripts.empty_sessions import emptiness
from evalkit.transcripts.formats import (
    adk,
    autogen,
    claude_code,
    frameworks,
    gemini,
    langchain,
    multi_agent,
    opencode,
    openhands,
    pydantic_ai,
    request_logs,
    swe_agent,
    tau,
)
from evalkit.transcripts.formats.atif import atif, is_atif
from evalkit.transcripts.formats.messages import dialect_of, is_message, read_message, read_messages
from evalkit.transcripts.formats.responses import (
    is_item,
    is_response,
    read_input,
    read_item_list,
    read_response,
)
from evalkit.transcripts.labels import label_of
from evalkit.transcripts.problems import Problem, one
from evalkit.transcripts.recording import Conversation, Recording, Unreadable
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped

#: Elements of a list that are looked at to say what the list is of.
LOOK = 50

#: Of a file that a benchmark puts beside its runs.
ONLY_LABELS = "holds labels and no run; they are taken where they lie beside the runs"

Reader: TypeAlias = Callable[[Any, Source], Recording]


def is_told_in_parts(values: list[Any]) -> bool:
    """Whether values are the messages or items of one run: most are; an odd one spoils nothing."""
    return _most(values, lambda value: is_message(value) or is_item(value))


def _most(values: list[Any], fits: Callable[[Any], bool]) -> bool:
    """Whether more than half of the values are of a kind, and those that are not could be none of a run."""
    return bool(values) and 2 * sum(map(fits, values)) > len(values)


#: Lists that are one run, by what their elements are.
_LISTS: tuple[tuple[Callable[[Any], bool], Callable[[list[Any], Source], Recording]], ...] = (
    (autogen.is_autogen_message, autogen.autogen_messages),
    (pydantic_ai.is_pydantic_ai, pydantic_ai.pydantic_ai),
    (adk.is_event, adk.adk_events),
    (frameworks.is_strands_message, frameworks.strands_messages),
    (langchain.is_langchain, langchain.langchain),
)


def list_reader(values: list[Any]) -> Callable[[list[Any], Source], Recording] | None:
    """The reader of a list that is one run, by its first elements; None where it is none."""
    if adk.is_evalset(values):
        return adk.evalset
    for fits, read in _LISTS:
        if _most(values, fits):
            return read
    if frameworks.is_smolagents(values):
        return frameworks.smolagents
    if is_told_in_parts(values):
        return item_list if any(map(is_item, values)) else message_list
    return None


def is_record(value: Any) -> bool:
    """Whether a value is of a format in which one value is one run."""
    if isinstance(value, list):
        return list_reader(value[:LOOK]) is not None
    return isinstance(value, dict) and any(fits(value) for fits, _ in _RECORDS)


def record(value: Any, source: Source) -> Recording:
    """One value that is one run. Unreadable where it is of no format."""
    if isinstance(value, list):
        read = list_reader(value[:LOOK])
        if read is None:
            raise Unreadable("is a list, but not of messages")
        return read(value, source)
    if not isinstance(value, dict):
        raise Unreadable(f"is no run: a single {type(value).__name__}")
    for fits, reader in _RECORDS:
        if fits(value):
            return reader(value, source)
    raise Unreadable(unknown(value))


def unknown(value: Any) -> str:
    """Why a value is of no format: its fields, the format that comes nearest, and what always works."""
    if not isinstance(value, dict):
        return f"is of no known format: a {type(value).__name__}"
    found = ", ".join(list(map(str, value))[:8]) or "nothing"
    known = _lone(value) or emptiness(value) or _one_message(value)
    if known:
        return known
    return f"is of no known format; its fields: {found[:120]}"


def _lone(value: dict[str, Any]) -> str:
    """What is a part of a run and no run."""
    if value.get("type") == "message" and value.get("role") == "assistant" and "stop_reason" in value:
        return "is one response of the Messages API without its request: no run"
    if value.get("object") in ("chat.completion", "chat.completion.chunk") or (
        isinstance(value.get("choices"), list) and "messages" not in value
    ):
        return "is one response of the Chat Completions API without its request: no run"
    if isinstance(value.get("error"), dict) and len(value) <= 3:
        return "is an error that an API answered: no run"
    kind = value.get("type")
    if isinstance(kind, str) and kind.startswith(("response.", "message_", "content_block")):
        return "is the stream of one response without its request: no run"
    if "sessionID" in value and ("messageID" in value or "role" in value or "time" in value):
        return "is one record of opencode's store, no run: export the session (opencode export)"
    if "session_id" in value and ("tool_summary" in value or "file_change" in value):
        return "is a summary that a model wrote, no recording"
    if {"is_resolved", "resolved_ids", "verifier_result"} & value.keys():
        return ONLY_LABELS
    if value and all(isinstance(inner, dict) and "resolved" in inner for inner in value.values()):
        return ONLY_LABELS
    return ""


def _one_message(value: dict[str, Any]) -> str:
    """Why one message of a run that is told in messages is none; empty where it is no message."""
    read = list_reader([value])
    if read is None:
        return ""
    found = one(read, [value], Source(""))
    if isinstance(found, Problem):
        return found.why
    return f"is one message of a run ({found.format}); give them together, in order, a message a line"


def message_list(messages: list[Any], source: Source) -> Recording:
    if swe_agent.is_mini_list(messages):
        return swe_agent.read_mini(messages).recording(source.id(), source.file, "mini-swe-agent")
    conversation = Conversation()
    read_messages(conversation, messages)
    return conversation.recording(source.id(), source.file, dialect_of(messages))


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
    read_messages(conversation, value["messages"])
    format = dialect_of(value["messages"])
    choices = listed(value.get("choices"))
    converse = mapped(mapped(value.get("output")).get("message"))
    if choices:
        choice = mapped(choices[0])
        last = {
            **mapped(choice.get("message")),
            "role": "assistant",
            "finish_reason": choice.get("finish_reason"),
        }
        read_messages(conversation, [last])
    elif is_message(converse):
        format = "bedrock-converse"
        read_message(
            conversation,
            {**converse, "finish_reason": value.get("stopReason"), "usage": value.get("usage")},
        )
    conversation.model = str(value.get("model") or value.get("modelId") or "")
    conversation.task = str(value.get("task_id") or value.get("instance_id") or "")
    name = next((str(value[key]) for key in ("id", "task_id", "instance_id") if value.get(key)), "")
    return conversation.recording(source.id(name), source.file, format, None, label_of(value))


def _is_langchain_chat(value: dict[str, Any]) -> bool:
    messages = value.get("messages")
    return isinstance(messages, list) and _most(messages[:LOOK], langchain.is_langchain)


def _langchain_chat(value: dict[str, Any], source: Source) -> Recording:
    return langchain.langchain(value["messages"], source)


def _is_pydantic_chat(value: dict[str, Any]) -> bool:
    messages = listed(value.get("messages") or value.get("all_messages") or value.get("message_history"))
    return _most(messages[:LOOK], pydantic_ai.is_pydantic_ai)


def _pydantic_chat(value: dict[str, Any], source: Source) -> Recording:
    messages = value.get("messages") or value.get("all_messages") or value.get("message_history")
    return pydantic_ai.pydantic_ai(listed(messages), source)


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
_RECORDS: tuple[tuple[Callable[[dict[str, Any]], bool], Reader], ...] = (
    (tau.is_tau_bench, tau.tau_bench),
    (tau.is_tau2, tau.tau2),
    (swe_agent.is_swe_agent, swe_agent.swe_agent),
    (swe_agent.is_mini, swe_agent.mini),
    (is_atif, atif),
    (multi_agent.is_multi_agent, multi_agent.multi_agent),
    (openhands.is_evaluation, openhands.evaluation),
    (frameworks.is_browser_use, frameworks.browser_use),
    (swe_agent.is_history, swe_agent.history_run),
    (opencode.is_opencode, opencode.opencode),
    (gemini.is_session, gemini.session),
    (claude_code.is_web_export, claude_code.web_export),
    (adk.is_adk, adk.adk),
    (adk.is_evalset, adk.evalset),
    (frameworks.is_run_state, frameworks.run_state),
    (frameworks.is_trae, frameworks.trae),
    (autogen.is_autogen, autogen.autogen),
    (frameworks.is_hermes, frameworks.hermes),
    (frameworks.is_smolagents, frameworks.smolagents),
    (_is_pydantic_chat, _pydantic_chat),
    (request_logs.is_request_log, request_logs.request_log),
    (gemini.is_contents, gemini.contents),
    (_is_langchain_chat, _langchain_chat),
    (_is_chat, _chat),
    (is_response, _response),
    (_is_items, _items),
)
