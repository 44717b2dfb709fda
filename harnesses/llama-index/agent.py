"""LlamaIndex: a FunctionAgent, which stops at an answer without calls. A variant runs it again."""

import asyncio

from evalkit_harness import serve
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.anthropic import Anthropic
from workflows.errors import WorkflowRuntimeError


async def work(job):
    tools = [FunctionTool.from_defaults(function) for function in job.functions()]
    agent = FunctionAgent(tools=tools, llm=Anthropic(model=job.model, max_tokens=4096))
    context = Context(agent) if job.variant == "context" else None
    try:
        output = await agent.run(job.prompt, ctx=context)
        while job.variant == "context" and (items := job.still_open()):
            output = await agent.run(f"Still open: {', '.join(items)}", ctx=context)
        return type(output).__name__
    except WorkflowRuntimeError as error:
        if "Max iterations" in str(error):
            return "max iterations"
        raise


serve(lambda job: asyncio.run(work(job)))
