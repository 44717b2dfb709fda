"""Inspect: the react agent on one sample, its tools made from the task's."""

import os

from evalkit_harness import serve
from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.tool import ToolDef, ToolParams


def tool(job, spec):
    async def execute(**arguments):
        return str(job.call(spec["name"], arguments))

    schema = spec["input_schema"]
    properties = {name: {"description": name, **value} for name, value in schema["properties"].items()}
    parameters = ToolParams.model_validate({**schema, "properties": properties})
    return ToolDef(execute, spec["name"], spec["description"], parameters).as_tool()


def run(job):
    model = get_model(f"anthropic/{job.model}", base_url=job.anthropic_url, memoize=False)
    agent = react(tools=[tool(job, spec) for spec in job.tools])
    (log,) = eval(
        Task(dataset=[Sample(job.prompt)], solver=agent),
        model=model,
        display="none",
        log_dir=os.path.join(job.folder, "logs"),
    )
    sample = log.samples[0] if log.samples else None
    if log.status != "success" or sample is None:
        return {"native": log.status, "error": str(log.error and log.error.message)}
    return f"limit:{sample.limit.type}" if sample.limit else f"success:{sample.output.stop_reason}"


serve(run)
