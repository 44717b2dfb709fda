"""Chat Completions, by hand: run the tools while there are calls; what comes without one is the answer."""

import json

from evalkit_harness import serve
from openai import OpenAI


def run(job):
    client = OpenAI()
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        }
        for tool in job.tools
    ]
    messages = [{"role": "user", "content": job.prompt}]
    while True:
        answer = client.chat.completions.create(model=job.model, messages=messages, tools=tools)
        choice = answer.choices[0]
        messages.append(choice.message.model_dump(exclude_none=True))
        if not choice.message.tool_calls:
            return choice.finish_reason
        for call in choice.message.tool_calls:
            result = job.call(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


serve(run)
