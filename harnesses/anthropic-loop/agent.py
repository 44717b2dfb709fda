"""Messages API, by hand: run the tools while there are calls; what comes without one is the answer.

The variant offers a tool of the API's own as well.
"""

from anthropic import Anthropic
from evalkit_harness import serve

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def run(job):
    client = Anthropic()
    tools = [*job.tools, SEARCH] if job.variant == "server_tool" else job.tools
    messages = [{"role": "user", "content": job.prompt}]
    while True:
        answer = client.messages.create(model=job.model, max_tokens=4096, tools=tools, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return answer.stop_reason
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": job.call(call.name, call.input)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


serve(run)
