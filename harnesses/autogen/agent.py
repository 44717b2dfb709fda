"""AutoGen AgentChat: one agent by itself, or in a team with termination conditions."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from evalkit_harness import serve

KNOWN = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}


async def work(job):
    client = OpenAIChatCompletionClient(model=job.model, base_url=job.openai_url, model_info=KNOWN)
    tools = [FunctionTool(function, function.__doc__) for function in job.functions()]
    agent = AssistantAgent("worker", client, tools=tools, max_tool_iterations=20)
    if job.variant == "team":
        stop = TextMentionTermination(job.keyword, sources=["worker"]) | MaxMessageTermination(60)
        agent = RoundRobinGroupChat([agent], termination_condition=stop)
    result = await agent.run(task=job.prompt)
    await client.close()
    return result.stop_reason or type(result.messages[-1]).__name__


serve(lambda job: asyncio.run(work(job)))
