"""The task in pydantic-ai, with its function model."""

import tempfile

from measure import arguments, items, report, run_all
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

turns, episodes = arguments()
wanted = items(turns)
done: set[str] = set()


def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    spoken = sum(isinstance(message, ModelResponse) for message in messages)
    if spoken == 0:
        return ModelResponse(parts=[ToolCallPart("list_items", {})])
    if spoken < turns - 1:
        return ModelResponse(parts=[ToolCallPart("do_item", {"item": wanted[spoken - 1]})])
    return ModelResponse(parts=[TextPart("All is done.")])


agent = Agent(FunctionModel(reply))


@agent.tool_plain
async def list_items() -> str:
    """List the items."""
    return "Items: " + ", ".join(wanted)


@agent.tool_plain
async def do_item(item: str) -> str:
    """Do an item."""
    done.add(item)
    return f"{item}: done"


record = tempfile.TemporaryFile("w")  # noqa: SIM115 - open to the end


async def episode() -> bool:
    done.clear()
    result = await agent.run("Do every item.", usage_limits=UsageLimits(request_limit=None))
    record.write(result.all_messages_json().decode() + "\n")
    return len(done) == len(wanted)


run_all(1, episode)()
report(turns, episodes, run_all(episodes, episode))
