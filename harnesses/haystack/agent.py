"""Haystack: an Agent component on an Anthropic chat generator, run once."""

from evalkit_harness import serve
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator


def run(job):
    tools = [
        Tool(
            name=tool["name"],
            description=tool["description"],
            parameters=tool["input_schema"],
            function=lambda name=tool["name"], **arguments: str(job.call(name, arguments)),
        )
        for tool in job.tools
    ]
    agent = Agent(chat_generator=AnthropicChatGenerator(model=job.model), tools=tools)
    return agent.run(messages=[ChatMessage.from_user(job.prompt)])["exit_reason"]


serve(run)
