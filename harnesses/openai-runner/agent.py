"""openai's Responses tool runner: it returns a completed final message, and raises where there is none."""

from evalkit_harness import serve
from openai import OpenAI
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner, ToolRunnerError


def registered(job, tool):
    spec = {
        "type": "function",
        "name": tool["name"],
        "description": tool["description"],
        "parameters": tool["input_schema"],
        "strict": True,
    }
    return RegisteredFunction(spec, lambda arguments: str(job.call(tool["name"], dict(arguments))))


def run(job):
    runner = ResponsesToolRunner(functions=[registered(job, tool) for tool in job.tools])
    request = {"model": job.model, "input": [{"role": "user", "content": job.prompt}]}
    try:
        return runner.run(OpenAI(), request).status
    except ToolRunnerError as error:
        if "max_steps" in str(error):
            return {"native": "max_steps"}
        raise


serve(run)
