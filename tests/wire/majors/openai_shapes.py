"""What this version of the OpenAI SDK makes of each answer, one line of JSON each."""

import json
import os

import openai

client = openai.OpenAI(max_retries=0)
FUNCTION = {"name": "do_item", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}
CHAT = os.environ["EVALKIT_DIALECT"] == "chat"


def whole_chat(ask):
    answer = client.chat.completions.create(**ask)
    choice = answer.choices[0]
    return {
        "text": choice.message.content or "",
        "calls": [[c.function.name, c.function.arguments] for c in choice.message.tool_calls or []],
        "label": choice.finish_reason,
        "refusal": choice.message.refusal,
    }


def streamed_chat(ask):
    text, refusal, label, calls = "", None, None, {}
    for chunk in client.chat.completions.create(**ask, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            if choice.delta.refusal:
                refusal = (refusal or "") + choice.delta.refusal
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, ["", ""])
                call[0] += part.function.name or ""
                call[1] += part.function.arguments or ""
            label = choice.finish_reason or label
    return {
        "text": text,
        "calls": [calls[index] for index in sorted(calls)],
        "label": label,
        "refusal": refusal,
    }


def read(response):
    refusals = [
        part.refusal
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "refusal"
    ]
    return {
        "text": "\n".join(
            part.text
            for item in response.output
            if item.type == "message"
            for part in item.content
            if part.type == "output_text"
        ),
        "calls": [[item.name, item.arguments] for item in response.output if item.type == "function_call"],
        "thinking": [
            part.text for item in response.output if item.type == "reasoning" for part in item.summary
        ],
        "label": response.status,
        "why": response.incomplete_details and response.incomplete_details.reason,
        "refusal": refusals[0] if refusals else None,
    }


def streamed_response(ask):
    """The response of the last event: this SDK's own helper knows no end but ``response.completed``."""
    for event in client.responses.create(**ask, stream=True):
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            return read(event.response)
    raise RuntimeError("no end")


for number in range(int(os.environ["SHAPES"])):
    for streamed in (False, True):
        said = f"shape {number} {streamed}"
        try:
            if CHAT:
                ask = {
                    "model": "gpt-5",
                    "messages": [{"role": "user", "content": said}],
                    "tools": [{"type": "function", "function": FUNCTION}],
                }
                found = streamed_chat(ask) if streamed else whole_chat(ask)
            else:
                ask = {"model": "gpt-5", "input": said, "tools": [{"type": "function", **FUNCTION}]}
                found = streamed_response(ask) if streamed else read(client.responses.create(**ask))
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        print("SHAPE " + json.dumps([number, streamed, found]), flush=True)
