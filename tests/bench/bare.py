"""The least loop anyone could write: the same task, scripted replies, tools, and a JSONL record."""

from __future__ import annotations

import asyncio
import json
from typing import IO, Any


def script(turns: int) -> list[dict[str, Any]]:
    """Replies for an episode of ``turns`` model turns: list, do each item, say so."""
    items = [f"item-{number}" for number in range(turns - 2)]
    replies: list[dict[str, Any]] = [_call("list_items", {}, 0)]
    replies += [_call("do_item", {"item": item}, place) for place, item in enumerate(items, 1)]
    replies.append(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "All is done."}],
            "stop_reason": "end_turn",
        }
    )
    return replies


def _call(name: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": arguments}
    return {"role": "assistant", "content": [block], "stop_reason": "tool_use"}


class Model:
    """Scripted replies, one by one."""

    def __init__(self, replies: list[dict[str, Any]]) -> None:
        self.replies = replies
        self.at = 0

    async def create(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        reply = self.replies[self.at]
        self.at += 1
        return reply


async def episode(replies: list[dict[str, Any]], out: IO[str]) -> int:
    """Run one episode and record it; the number of model turns."""
    model = Model(replies)
    done: set[str] = set()
    items = [f"item-{number}" for number in range(len(replies) - 2)]

    async def list_items() -> str:
        return "Items: " + ", ".join(items)

    async def do_item(item: str) -> str:
        done.add(item)
        return f"{item}: done"

    tools: dict[str, Any] = {"list_items": list_items, "do_item": do_item}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do every item."}]
    turns = 0
    while True:
        reply = await model.create(messages)
        turns += 1
        messages.append({"role": "assistant", "content": reply["content"]})
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not calls:
            break
        results = []
        for call in calls:
            text = await tools[call["name"]](**call["input"])
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text})
        messages.append({"role": "user", "content": results})
    out.write(json.dumps({"done": len(done) == len(items), "turns": turns, "messages": messages}) + "\n")
    return turns


async def episodes(count: int, turns: int, out: IO[str]) -> int:
    """Run many episodes; the number of model turns in all."""
    replies = script(turns)
    return sum([await episode(replies, out) for _ in range(count)])


def run(count: int, turns: int, out: IO[str]) -> int:
    """Run many episodes in a new event loop."""
    return asyncio.run(episodes(count, turns, out))
