"""LangGraph's prebuilt agent, invoked to the end of its graph. A variant makes it a node of another graph."""

from evalkit_harness import serve
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent


def held(job, agent):
    """The agent, and an edge that leads back to it while listed items are open."""

    def nothing_open(state):
        items = job.still_open()
        return {"messages": [HumanMessage(f"Still open: {', '.join(items)}")] if items else []}

    def back(state):
        return "agent" if isinstance(state["messages"][-1], HumanMessage) else END

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("nothing_open", nothing_open)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "nothing_open")
    graph.add_conditional_edges("nothing_open", back)
    return graph.compile()


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
    agent = create_react_agent(ChatAnthropic(model=job.model), tools)
    if job.variant == "graph":
        agent = held(job, agent)
    state = agent.invoke({"messages": [{"role": "user", "content": job.prompt}]})
    return state["messages"][-1].response_metadata.get("stop_reason") or "end"


serve(run)
