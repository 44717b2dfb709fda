"""A loop by hand with a planted bug: it runs the calls of a turn that was cut off."""

import json
import os
import urllib.request


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


tools = json.load(urllib.request.urlopen(os.environ["EVALKIT_TOOLS_URL"]))["tools"]
messages = [{"role": "user", "content": os.environ["EVALKIT_PROMPT"]}]
for _ in range(30):
    request = {"model": "m", "max_tokens": 1000, "messages": messages, "tools": tools}
    answer = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", request)
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not calls:
        break
    results = []
    for call in calls:
        said = post(os.environ["EVALKIT_TOOLS_URL"] + "/" + call["name"], call["input"])
        results.append({"type": "tool_result", "tool_use_id": call["id"], "content": said["text"]})
    messages.append({"role": "assistant", "content": answer["content"]})
    messages.append({"role": "user", "content": results})
