"""LangGraph under LangChain's create_agent with a SQLite checkpointer: resumed, steered, interrupted."""

import sqlite3

from evalkit_harness import serve
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    hook_config,
)
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command


class Inbox(AgentMiddleware):
    """The user's words go in before the next request; those of the last turn lead back to the model."""

    def __init__(self, job):
        super().__init__()
        self.job = job

    def before_model(self, state, runtime):
        words = self.job.messages()
        return {"messages": [HumanMessage(text) for text in words]} if words else None

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state, runtime):
        words = self.before_model(state, runtime)
        return {**words, "jump_to": "model"} if words else None


def middleware_of(job, model):
    yield Inbox(job)
    if job.max_turns:
        yield ModelCallLimitMiddleware(thread_limit=job.max_turns, exit_behavior="error")
    changing = [tool["name"] for tool in job.tools if not tool["name"].startswith(("list_", "read_"))]
    if job.variant in ("approval", "batched"):
        allowed = {"allowed_decisions": ["approve", "edit", "reject"]}
        mode = "per_call" if job.variant == "approval" else "batched"
        yield HumanInTheLoopMiddleware(dict.fromkeys(changing, allowed), interrupt_mode=mode)
    if job.variant == "compaction":
        yield SummarizationMiddleware(model, trigger=("tokens", 50_000), keep=("messages", 2))


def decision(told, name):
    if told["decision"] == "refuse":
        return {"type": "reject", "message": told["reason"]}
    if told["decision"] == "change":
        return {"type": "edit", "edited_action": {"name": name, "args": told["arguments"]}}
    return {"type": "approve"}


def by_call(job, go_on, state):
    """Each decision answers the interrupt of its own call, in the person's order."""
    while state.get("__interrupt__"):
        calls = [waiting.value for waiting in state["__interrupt__"]]
        decisions = job.wait(
            [{"id": call["tool_call_id"], "tool": call["name"], "arguments": call["args"]} for call in calls]
        )
        if not decisions:
            return None
        for told in decisions:
            for waiting in state.get("__interrupt__", []):
                if waiting.value["tool_call_id"] == told["id"]:
                    answer = decision(told, waiting.value["name"])
                    state = go_on(Command(resume={waiting.id: answer}))
                    break
    return state


def by_place(job, go_on, state):
    """The middleware's requests have no ids: the answer is all decisions, each at its call's place."""
    while state.get("__interrupt__"):
        requests = state["__interrupt__"][0].value["action_requests"]
        asked = [
            {"id": str(place), "tool": request["name"], "arguments": request["args"]}
            for place, request in enumerate(requests)
        ]
        told = {each["id"]: each for each in job.wait(asked)}
        if len(told) < len(asked):
            return None
        answers = [decision(told[each["id"]], each["tool"]) for each in asked]
        state = go_on(Command(resume={"decisions": answers}))
    return state


def run(job):
    def tool(spec):
        return StructuredTool(
            name=spec["name"],
            description=spec["description"],
            args_schema=spec["input_schema"],
            func=lambda **arguments: str(job.call(spec["name"], arguments)),
        )

    model = ChatAnthropic(model=job.model)
    thread = {"configurable": {"thread_id": "task"}}
    durability = job.variant if job.variant in ("async", "exit") else "sync"
    with sqlite3.connect("checkpoints.sqlite", check_same_thread=False) as connection:
        agent = create_agent(
            model,
            [tool(spec) for spec in job.tools],
            middleware=list(middleware_of(job, model)),
            checkpointer=SqliteSaver(connection),
        )

        def go_on(given):
            return agent.invoke(given, thread, durability=durability)

        kept = agent.get_state(thread)
        if job.resumes and kept.interrupts:
            state = {"__interrupt__": kept.interrupts}
        elif job.resumes and kept.values:
            # A task that is done, its step not yet kept, is no longer in "next", and still to go on from.
            state = go_on(None) if kept.tasks else kept.values
        else:
            state = go_on({"messages": [HumanMessage(job.prompt)]})
        while True:
            state = (by_place if job.variant == "batched" else by_call)(job, go_on, state)
            if state is None:
                return {"waiting": []}
            native = state["messages"][-1].response_metadata.get("stop_reason") or "end"
            words = job.next_message(native)
            if words is None:
                return native
            state = go_on({"messages": [HumanMessage(words)]})


serve(run)
