"""pydantic-ai: an agent whose output is text. A variant holds each output against what was listed."""

from evalkit_harness import serve
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


def run(job):
    agent = Agent(MODELS.get(job.variant, AnthropicModel)(job.model), retries=5)
    for function in job.functions():
        agent.tool_plain(function)

    if job.variant == "validator":

        @agent.output_validator
        def nothing_open(output: str) -> str:
            if job.open_items():
                raise ModelRetry(f"Not finished, still open: {', '.join(job.open_items())}")
            return output

    return agent.run_sync(job.prompt).response.finish_reason or "none"


serve(run)
