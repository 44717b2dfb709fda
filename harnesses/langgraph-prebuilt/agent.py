"""LangGraph's prebuilt agent: create_react_agent, invoked to the end of its graph."""

from evalkit_harness import serve
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import create_react_agent


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
    agent = create_react_agent(ChatAnthropic(model=job.model), tools)
    state = agent.invoke({"messages": [{"role": "user", "content": job.prompt}]})
    return state["messages"][-1].response_metadata.get("stop_reason") or "end"


serve(run)
