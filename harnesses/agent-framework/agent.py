"""Microsoft Agent Framework: an agent on an Anthropic client, run once."""

import asyncio

from agent_framework import Agent, tool
from agent_framework.anthropic import AnthropicClient
from evalkit_harness import serve


async def work(job):
    agent = Agent(
        AnthropicClient(model=job.model),
        tools=[tool(function, approval_mode="never_require") for function in job.functions()],
    )
    response = await agent.run(job.prompt)
    return response.finish_reason or "none"


serve(lambda job: asyncio.run(work(job)))
