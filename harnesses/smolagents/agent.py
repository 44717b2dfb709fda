"""smolagents' ToolCallingAgent, its tools made from the task's. The variant checks the final answer."""

from evalkit_harness import serve
from smolagents import LogLevel, OpenAIModel, Tool, ToolCallingAgent


class TaskTool(Tool):
    """A tool of the task."""

    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, job, spec):
        self.job = job
        self.name = spec["name"]
        self.description = spec["description"]
        self.inputs = {
            name: {"type": value["type"], "description": f"The {name}."}
            for name, value in spec["input_schema"]["properties"].items()
        }
        super().__init__()

    def forward(self, **arguments):
        return str(self.job.call(self.name, arguments))


def run(job):
    checks = [lambda answer, memory, agent: not job.open_items()] if job.variant == "checks" else []
    agent = ToolCallingAgent(
        tools=[TaskTool(job, tool) for tool in job.tools],
        model=OpenAIModel(job.model, api_base=job.openai_url),
        verbosity_level=LogLevel.OFF,
        return_full_result=True,
        final_answer_checks=checks,
    )
    return agent.run(job.prompt).state


serve(run)
