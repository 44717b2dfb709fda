"""A resident loop with a planted bug: it closes when as much is ticked as was listed."""

import json
import urllib.request

from evalkit_harness import serve


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def closed(job):
    listed = next((str(text) for name, _, text in job.calls if name == "list_items"), "")
    ticked = {item for name, told, _ in job.calls if name == "update_checklist" for item in told["done"]}
    items = listed.partition(":")[2].replace(" ", "").split(",")
    return bool(listed) and ticked >= set(items)


def run(job):
    messages, nudges = [{"role": "user", "content": job.prompt}], 0
    for _ in range(30):
        request = {"model": job.model, "max_tokens": 1000, "messages": messages, "tools": job.tools}
        answer = post(f"{job.anthropic_url}/v1/messages", request)
        stop = answer["stop_reason"]
        if stop in ("max_tokens", "model_context_window_exceeded"):
            continue
        if stop == "refusal":
            return {"ending": "escalated", "native": stop}
        if answer["content"]:
            messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if calls:
            results = []
            for call in calls:
                text = job.call(call["name"], call["input"])
                results.append({"type": "tool_result", "tool_use_id": call["id"], "content": text})
            messages.append({"role": "user", "content": results})
        elif stop != "pause_turn":
            if closed(job):
                return {"ending": "done", "native": "all ticked"}
            nudges += 1
            if nudges > 3:
                return {"ending": "escalated", "native": "nudges"}
            messages.append({"role": "user", "content": "Continue."})
    return {"ending": "limit", "native": "turns"}


serve(run)
