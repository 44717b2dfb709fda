"""OpenAI's Agents SDK: one agent, run to its final output. Variants: a typed one, Chat Completions."""

import json

from agents import (
    Agent,
    AgentOutputSchemaBase,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.exceptions import ModelBehaviorError
from evalkit_harness import serve
from openai import AsyncOpenAI

set_tracing_disabled(True)


class Report(AgentOutputSchemaBase):
    """The schema that the task asks for."""

    def __init__(self, schema):
        self.schema = schema

    def is_plain_text(self):
        return False

    def name(self):
        return "report"

    def json_schema(self):
        return self.schema

    def is_strict_json_schema(self):
        return False

    def validate_json(self, text):
        try:
            value = json.loads(text)
        except ValueError:
            raise ModelBehaviorError("Invalid JSON") from None
        missing = [name for name in self.schema.get("required", ()) if name not in value]
        if missing:
            raise ModelBehaviorError(f"missing: {missing}")
        return value


def run(job):
    agent = Agent(
        name="worker",
        model=OpenAIChatCompletionsModel(job.model, AsyncOpenAI()) if job.variant == "chat" else job.model,
        tools=[function_tool(function, strict_mode=False) for function in job.functions()],
        output_type=Report(job.output_schema) if job.variant == "output_type" else None,
    )
    Runner.run_sync(agent, job.prompt)
    return "final_output"


serve(run)
