"""The world's tools by plain HTTP: ``GET /tools`` lists them, ``POST /tools/NAME`` runs one.

The body of a run is the arguments as a JSON object; the answer is ``{"text": ..., "error": true|false}``.
"""

from __future__ import annotations

from typing import Any

from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Tool
from evalkit.scenarios.emissions import DELEGATE_TOOL
from evalkit.wire.answers import encode_json
from evalkit.wire.episode import WireEpisode
from evalkit.wire.incoming import BadRequest, parse_body
from evalkit.wire.replies import Reply, json_reply

_STRINGS = {"type": "array", "items": {"type": "string"}}

#: The tools that a harness has of its own, for one that lets the server offer them; and the one by which a
#: model hands work to a child agent, offered where the script does so.
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    FINISH_TOOL: (
        "Report that the work is over: what was completed, what was skipped and why.",
        {
            "type": "object",
            "properties": {
                "items_completed": _STRINGS,
                "items_skipped": _STRINGS,
                "reason_skipped": {"type": "string"},
            },
            "required": ["items_completed", "items_skipped", "reason_skipped"],
            "additionalProperties": False,
        },
    ),
    CHECKLIST_TOOL: (
        "Tick items off the checklist.",
        {
            "type": "object",
            "properties": {"done": _STRINGS},
            "required": ["done"],
            "additionalProperties": False,
        },
    ),
    DELEGATE_TOOL: (
        "Hand a share of the work to a helper of this name. It answers when it has ended.",
        {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
}


def definitions(episode: WireEpisode) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, description and schema of each tool that the server offers to a harness."""
    tools: list[Tool] = list(episode.script.task.tools.values())
    offered = [(tool.name, tool.description, tool.schema()) for tool in tools]
    own = (*episode.own_tools, *([DELEGATE_TOOL] if episode.delegates else []))
    return offered + [(name, *OWN[name]) for name in own]


def list_tools(episode: WireEpisode) -> Reply:
    """Answer ``GET /tools``."""
    found = [
        {"name": name, "description": description, "input_schema": schema}
        for name, description, schema in definitions(episode)
    ]
    return json_reply({"tools": found}, said="tools")


def run_tool(episode: WireEpisode, name: str, raw: bytes) -> Reply:
    """Answer ``POST /tools/NAME``."""
    try:
        arguments = parse_body(raw or b"{}")
    except BadRequest as bad:
        return json_reply({"text": bad.message, "error": True}, status=400, said=f"tool {name}: {bad.rule}")
    result = episode.run_tool(name, arguments)
    failed = episode.failure is not None
    said = f"tool {name}: {'error' if result.error else 'ok'}"
    return json_reply({"text": result.text, "error": result.error}, status=500 if failed else 200, said=said)


def lay_before(episode: WireEpisode, raw: bytes) -> Reply:
    """Answer ``POST /approval``: the person's decisions about ``calls``, a line each, in their order."""
    try:
        calls = parse_body(raw).get("calls")
    except BadRequest as bad:
        return json_reply({"error": bad.message}, status=400, said=f"approval: {bad.rule}")
    if not isinstance(calls, list):
        return json_reply(
            {"error": "calls: a list of {id, tool, arguments}"}, status=400, said="approval: no calls"
        )
    decisions = episode.lay(calls)
    if decisions is None:
        return Reply(cut="before_headers", said="approval: the harness is killed as it waits")
    lines = b"".join(encode_json(decision) + b"\n" for decision in decisions)
    said = f"approval: {len(decisions)} decisions about {len(calls)} calls"
    return Reply(200, (("content-type", "application/x-ndjson"),), lines, said=said)
