"""Agno: an Agent on an Anthropic model, run once. A variant runs it again in its session."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.anthropic import Claude
from evalkit_harness import serve


def run(job):
    agent = Agent(
        model=Claude(id=job.model),
        tools=job.functions(),
        db=InMemoryDb() if job.variant == "session" else None,
        session_id="task",
        add_history_to_context=job.variant == "session",
    )
    output = agent.run(job.prompt)
    while job.variant == "session" and (items := job.still_open()):
        output = agent.run(f"Still open: {', '.join(items)}")
    return output.status.value


serve(run)
