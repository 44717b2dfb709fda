"""pydantic-ai with its messages in a file: it goes on from them, takes words, defers calls, compacts."""

import asyncio
import pathlib

from evalkit_harness import serve
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied, UserError
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.usage import UsageLimits

KEPT = pathlib.Path("messages.json")
ASK = "Summarise what was done and what is open. Text only."


def agent_of(job):
    async def shorter(messages):
        said = [message for message in messages if isinstance(message, ModelResponse)]
        if not said or said[-1].usage.input_tokens < 50_000:
            return messages
        summary = await Agent(AnthropicModel(job.model)).run(ASK, message_history=messages)
        words = f"What was before: {summary.output}"
        return [ModelRequest.user_text_prompt(words), *messages[-2:]]

    agent = Agent(
        AnthropicModel(job.model),
        output_type=[str, DeferredToolRequests],
        retries=5,
        capabilities=[ProcessHistory(shorter)] if job.variant == "compaction" else [],
    )
    for function in job.functions():
        changes = not function.__name__.startswith(("list_", "read_"))
        agent.tool_plain(requires_approval=changes and job.variant == "approval")(function)
    return agent


async def one_run(job, agent, prompt, history, decided=None):
    """One run, kept at each of its nodes, and words that came too late for it; others go into it."""
    limits, late, over = UsageLimits(request_limit=job.max_turns or 50), [], asyncio.Event()
    given = {"message_history": history, "deferred_tool_results": decided, "usage_limits": limits}
    async with agent.iter(prompt, **given) as run:

        async def listen():
            while not over.is_set():
                for words in await asyncio.to_thread(job.messages):
                    try:
                        run.enqueue(words)
                    except UserError:
                        # It had come to its end.
                        late.append(words)
                await asyncio.sleep(0.02)

        listening = asyncio.create_task(listen())
        try:
            async for node in run:
                # A node is told before it runs: what it brings is not among the messages yet.
                request = getattr(node, "request", None)
                keep([*run.all_messages(), *([request] if request else [])])
        finally:
            # Cancelled, it would take along what it has just fetched.
            over.set()
            await listening
    return run.result, late + await asyncio.to_thread(job.messages)


def keep(messages):
    # Whole or not at all: a kill comes at any time.
    new = KEPT.with_suffix(".new")
    new.write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
    new.rename(KEPT)


def decision(told):
    if told["decision"] == "refuse":
        return ToolDenied(told["reason"])
    return ToolApproved(override_args=told["arguments"]) if told["decision"] == "change" else True


async def work(job):
    agent, prompt, history = agent_of(job), job.prompt, None
    if job.resumes and KEPT.exists():
        prompt, history = None, ModelMessagesTypeAdapter.validate_json(KEPT.read_bytes())
    decided, words = None, []
    while True:
        result, late = await one_run(job, agent, prompt, history, decided)
        words += late
        history, decided = result.all_messages(), None
        keep(history)
        if isinstance(result.output, DeferredToolRequests):
            calls = [
                {"id": call.tool_call_id, "tool": call.tool_name, "arguments": call.args_as_dict()}
                for call in result.output.approvals
            ]
            decisions = await asyncio.to_thread(job.wait, calls)
            if not decisions:
                return {"waiting": calls}
            decided = DeferredToolResults(approvals={told["id"]: decision(told) for told in decisions})
            prompt = None
            continue
        if words:
            prompt, words = "\n".join(words), []
            continue
        prompt = await asyncio.to_thread(job.next_message, result.response.finish_reason or "none")
        if prompt is None:
            return result.response.finish_reason or "none"


with asyncio.Runner() as runner:
    serve(lambda job: runner.run(work(job)))
