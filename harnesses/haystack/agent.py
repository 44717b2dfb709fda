"""Haystack: an Agent component on an Anthropic chat generator, run once. Variants: a hook, OpenAI."""

from evalkit_harness import serve
from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.hooks import hook
from haystack.tools import Tool
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator

GENERATORS = {"chat": OpenAIChatGenerator, "responses": OpenAIResponsesChatGenerator}


def run(job):
    tools = [
        Tool(
            name=tool["name"],
            description=tool["description"],
            parameters=tool["input_schema"],
            function=lambda name=tool["name"], /, **arguments: str(job.call(name, arguments)),
        )
        for tool in job.tools
    ]

    @hook
    def nothing_open(state: State) -> None:
        if items := job.still_open():
            state.set("messages", [ChatMessage.from_user(f"Still open: {', '.join(items)}")])
            state.set("continue_run", True)

    agent = Agent(
        chat_generator=GENERATORS.get(job.variant, AnthropicChatGenerator)(model=job.model),
        tools=tools,
        hooks={"on_exit": [nothing_open]} if job.variant == "on_exit" else None,
    )
    return agent.run(messages=[ChatMessage.from_user(job.prompt)])["exit_reason"]


serve(run)
