"""Google ADK: one agent on an Anthropic model, run to its final response."""

import asyncio

from anthropic import AsyncAnthropic
from evalkit_harness import serve
from google.adk.agents import LlmAgent
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


async def work(job):
    agent = LlmAgent(
        name="worker",
        model=AnthropicLlm(model=job.model, client=AsyncAnthropic()),
        tools=job.functions(),
    )
    runner = InMemoryRunner(agent=agent, app_name="evalkit")
    session = await runner.session_service.create_session(app_name="evalkit", user_id="user")
    said = types.Content(role="user", parts=[types.Part(text=job.prompt)])
    events = runner.run_async(user_id="user", session_id=session.id, new_message=said)
    event = [event async for event in events][-1]
    return event.error_code or (event.finish_reason.name if event.finish_reason else "final response")


serve(lambda job: asyncio.run(work(job)))
