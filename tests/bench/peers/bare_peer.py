"""The least loop anyone could write: a message list, scripted replies, the same tools, a JSONL record."""

import json
import tempfile
from typing import Any

from measure import arguments, items, report, run_all

turns, episodes = arguments()
wanted = items(turns)


def call(number: int, name: str, fields: dict[str, str]) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": fields}
    return {"role": "assistant", "content": [block], "stop_reason": "tool_use"}


replies = [call(0, "list_items", {})]
replies += [call(number, "do_item", {"item": item}) for number, item in enumerate(wanted, 1)]
last = {"role": "assistant", "content": [{"type": "text", "text": "All is done."}], "stop_reason": "end_turn"}
replies.append(last)
record = tempfile.TemporaryFile("w")  # noqa: SIM115 - open to the end


class Model:
    """Scripted replies, one by one."""

    def __init__(self) -> None:
        self.at = 0

    async def create(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        reply = replies[self.at]
        self.at += 1
        return reply


async def episode() -> bool:
    """Run one episode and record it."""
    model = Model()
    done: set[str] = set()

    async def list_items() -> str:
        return "Items: " + ", ".join(wanted)

    async def do_item(item: str) -> str:
        done.add(item)
        return f"{item}: done"

    tools: dict[str, Any] = {"list_items": list_items, "do_item": do_item}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do every item."}]
    spoken = 0
    while True:
        reply = await model.create(messages)
        spoken += 1
        messages.append({"role": "assistant", "content": reply["content"]})
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        if not calls:
            break
        results = []
        for asked in calls:
            text = await tools[asked["name"]](**asked["input"])
            results.append({"type": "tool_result", "tool_use_id": asked["id"], "content": text})
        messages.append({"role": "user", "content": results})
    whole = len(done) == len(wanted)
    record.write(json.dumps({"done": whole, "turns": spoken, "messages": messages}) + "\n")
    return whole and spoken == turns


run_all(1, episode)()
report(turns, episodes, run_all(episodes, episode))
