"""AG2: an Agent on an Anthropic model, asked once. A variant asks its reply again about what is open."""

import asyncio

from ag2 import Agent, tool
from ag2.config import AnthropicConfig
from evalkit_harness import serve


async def work(job):
    agent = Agent(
        "worker",
        config=AnthropicConfig(model=job.model),
        tools=[tool(function) for function in job.functions()],
    )
    reply = await agent.ask(job.prompt)
    while job.variant == "ask" and (items := job.still_open()):
        reply = await reply.ask(f"Still open: {', '.join(items)}")
    return reply.response.finish_reason or "none"


serve(lambda job: asyncio.run(work(job)))
