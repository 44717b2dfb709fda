"""Agno: an Agent on an Anthropic model, run once."""

from agno.agent import Agent
from agno.models.anthropic import Claude
from evalkit_harness import serve


def run(job):
    agent = Agent(model=Claude(id=job.model), tools=job.functions())
    return agent.run(job.prompt).status.value


serve(run)
