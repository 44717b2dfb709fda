"""Microsoft Agent Framework: an agent on an Anthropic client, run once. A variant loops over what is open."""

import asyncio

from agent_framework import Agent, AgentLoopMiddleware, tool
from agent_framework.anthropic import AnthropicClient
from evalkit_harness import serve


async def work(job):
    loop = AgentLoopMiddleware(
        lambda **_: bool(job.open_items()),
        next_message=lambda **_: f"Still open: {', '.join(job.open_items())}",
    )
    agent = Agent(
        AnthropicClient(model=job.model),
        tools=[tool(function, approval_mode="never_require") for function in job.functions()],
        middleware=[loop] if job.variant == "loop" else None,
    )
    response = await agent.run(job.prompt)
    return response.finish_reason or "none"


serve(lambda job: asyncio.run(work(job)))
