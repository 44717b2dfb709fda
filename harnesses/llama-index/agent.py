"""LlamaIndex: a FunctionAgent, whose workflow stops at an answer without tool calls."""

import asyncio

from evalkit_harness import serve
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from workflows.errors import WorkflowRuntimeError


async def work(job):
    tools = [FunctionTool.from_defaults(function) for function in job.functions()]
    agent = FunctionAgent(tools=tools, llm=Anthropic(model=job.model, max_tokens=4096))
    try:
        return type(await agent.run(job.prompt)).__name__
    except WorkflowRuntimeError as error:
        if "Max iterations" in str(error):
            return "max iterations"
        raise


serve(lambda job: asyncio.run(work(job)))
