"""CrewAI: a crew of one agent with one task, kicked off. Variants: a guardrail at the task, OpenAI."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from evalkit_harness import serve

APIS = {"chat": "completions", "responses": "responses"}


def llm(job):
    if job.variant in APIS:
        return LLM(model=f"openai/{job.model}", base_url=job.openai_url, api=APIS[job.variant])
    return LLM(model=f"anthropic/{job.model}")


def run(job):
    worker = Agent(
        role="Worker",
        goal="Do the task that you are given",
        backstory="You work with the tools that you have.",
        llm=llm(job),
        tools=[tool(function.__name__)(function) for function in job.functions()],
    )

    def nothing_open(output):
        items = job.open_items()
        return (False, f"Still open: {', '.join(items)}") if items else (True, output)

    task = Task(
        description=job.prompt,
        expected_output="A report of what was done",
        agent=worker,
        guardrail=nothing_open if job.variant == "guardrail" else None,
    )
    Crew(agents=[worker], tasks=[task]).kickoff()
    return "CrewOutput"


serve(run)
