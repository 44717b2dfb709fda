"""deepagents: an agent with its own tools beside the task's. A variant has a middleware at its end."""

from deepagents import create_deep_agent
from evalkit_harness import serve
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool


class NothingOpen(AgentMiddleware):
    """Sends the agent back while listed items are open."""

    def __init__(self, job):
        super().__init__()
        self.job = job

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state, runtime):
        items = self.job.still_open()
        if not items:
            return None
        return {"messages": [HumanMessage(f"Still open: {', '.join(items)}")], "jump_to": "model"}


def run(job):
    tools = [
        StructuredTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["input_schema"],
            func=lambda name=tool["name"], /, **arguments: str(job.call(name, arguments)),
        )
        for tool in job.tools
    ]
    middleware = [NothingOpen(job)] if job.variant == "after_agent" else []
    agent = create_deep_agent(model=ChatAnthropic(model=job.model), tools=tools, middleware=middleware)
    state = agent.invoke({"messages": [{"role": "user", "content": job.prompt}]})
    return state["messages"][-1].response_metadata.get("stop_reason") or "end"


serve(run)
