"""deepagents: create_deep_agent on an Anthropic model, with its own tools beside the task's."""

from deepagents import create_deep_agent
from evalkit_harness import serve
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import StructuredTool


def run(job):
    tools = [
        StructuredTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["input_schema"],
            func=lambda name=tool["name"], **arguments: str(job.call(name, arguments)),
        )
        for tool in job.tools
    ]
    agent = create_deep_agent(model=ChatAnthropic(model=job.model), tools=tools)
    state = agent.invoke({"messages": [{"role": "user", "content": job.prompt}]})
    return state["messages"][-1].response_metadata.get("stop_reason") or "end"


serve(run)
