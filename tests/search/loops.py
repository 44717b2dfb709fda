"""A small loop by hand, as a callable in this process; its rules are the arguments."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any


def post(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def loop(
    told: Mapping[str, str],
    *,
    nudges: int = 0,
    reports: str = "",
    stops_after: int = 30,
    runs_cut_off: bool = False,
    says_done: bool = False,
) -> dict[str, Any]:
    """Runs calls, asks again after a pause or a cut-off, says "Continue." so often, then hands over."""
    tools = post(told["EVALKIT_TOOLS_URL"])["tools"]
    messages: list[Any] = [{"role": "user", "content": told["EVALKIT_PROMPT"]}]
    nudged = 0
    report = {"report": {"outstanding": json.loads(reports)}} if reports else {}
    for _ in range(stops_after):
        request = {"model": "m", "max_tokens": 1000, "messages": messages, "tools": tools}
        answer = post(told["ANTHROPIC_BASE_URL"] + "/v1/messages", request)
        content, stop = answer["content"], answer["stop_reason"]
        if stop in ("max_tokens", "model_context_window_exceeded") and not runs_cut_off:
            continue
        if stop == "refusal":
            return {"ending": "escalated", "native": stop, **report}
        if content:
            messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        results = []
        for call in calls:
            said = post(told["EVALKIT_TOOLS_URL"] + "/" + call["name"], call["input"])
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": said["text"]})
        if calls:
            messages.append({"role": "user", "content": results})
        elif stop != "pause_turn":
            if nudged >= nudges:
                return {"ending": "done" if says_done else "escalated", "native": "silence", **report}
            nudged += 1
            messages.append({"role": "user", "content": "Continue."})
    return {"ending": "limit", "native": "turns", **report}
