"""Strands: an Agent on an Anthropic model, called once with the prompt."""

from evalkit_harness import serve
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel


def run(job):
    agent = Agent(
        model=AnthropicModel(model_id=job.model, max_tokens=4096),
        tools=[tool(function) for function in job.functions()],
        callback_handler=None,
    )
    return agent(job.prompt).stop_reason


serve(run)
