"""What this version of the Anthropic SDK makes of each answer, one line of JSON each."""

import json
import os

import anthropic

client = anthropic.Anthropic(max_retries=0)
TOOLS = [
    {"name": "do_item", "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}}},
    {"type": "web_search_20250305", "name": "web_search"},
]
for number in range(int(os.environ["SHAPES"])):
    for streamed in (False, True):
        ask = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 4096,
            "tools": TOOLS,
            "messages": [{"role": "user", "content": f"shape {number} {streamed}"}],
        }
        try:
            if streamed:
                with client.messages.stream(**ask) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**ask)
            said = {
                "text": "\n".join(block.text for block in message.content if block.type == "text"),
                "calls": [[b.name, b.input] for b in message.content if b.type == "tool_use"],
                "thinking": [block.thinking for block in message.content if block.type == "thinking"],
                "label": message.stop_reason,
            }
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        print("SHAPE " + json.dumps([number, streamed, said]), flush=True)
