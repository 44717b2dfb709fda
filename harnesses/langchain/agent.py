"""LangChain's create_agent. A variant's middleware looks at what is open before the agent may end."""

import os

from evalkit_harness import serve
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI


class NothingOpen(AgentMiddleware):
    """Sends the agent back at most three times for the same open items."""

    def __init__(self, job):
        super().__init__()
        self.job = job

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state, runtime):
        items = self.job.still_open()
        if not items:
            return None
        return {"messages": [HumanMessage(f"Still open: {', '.join(items)}")], "jump_to": "model"}


def model(job):
    if job.variant not in ("chat", "responses"):
        return ChatAnthropic(model=job.model)
    return ChatOpenAI(
        model=job.model,
        base_url=os.environ["OPENAI_BASE_URL"],
        use_responses_api=job.variant == "responses",
    )


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
    agent = create_agent(model(job), tools, middleware=middleware)
    state = agent.invoke({"messages": [{"role": "user", "content": job.prompt}]})
    told = state["messages"][-1].response_metadata
    return told.get("stop_reason") or told.get("finish_reason") or told.get("status") or "end"


serve(run)
