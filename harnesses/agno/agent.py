"""Agno: an Agent on an Anthropic model, run once. A variant runs it again in its session."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.anthropic import Claude
from evalkit_harness import serve


def run(job):
    held = job.variant == "session"
    session = {"db": InMemoryDb(), "session_id": "task", "add_history_to_context": True} if held else {}
    agent = Agent(model=Claude(id=job.model), tools=job.functions(), **session)
    output = agent.run(job.prompt)
    while held and (items := job.still_open()):
        output = agent.run(f"Still open: {', '.join(items)}")
    return output.status.value


serve(run)
