"""The task in AutoGen, with its replay client."""

import json
import logging
import tempfile

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from measure import arguments, items, report, run_all

turns, episodes = arguments()
wanted = items(turns)
done: set[str] = set()
INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


def call(number: int, name: str, fields: dict[str, str]) -> CreateResult:
    asked = FunctionCall(id=f"call_{number}", name=name, arguments=json.dumps(fields))
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return CreateResult(finish_reason="function_calls", content=[asked], usage=usage, cached=False)


replies: list[CreateResult | str] = [call(0, "list_items", {})]
replies += [call(number, "do_item", {"item": item}) for number, item in enumerate(wanted, 1)]
replies.append("All is done.")


async def list_items() -> str:
    """List the items."""
    return "Items: " + ", ".join(wanted)


async def do_item(item: str) -> str:
    """Do an item."""
    done.add(item)
    return f"{item}: done"


# It counts no tokens of calls and says so each time.
logging.disable(logging.WARNING)
record = tempfile.TemporaryFile("w")  # noqa: SIM115 - open to the end


async def episode() -> bool:
    done.clear()
    client = ReplayChatCompletionClient(replies, model_info=INFO)
    agent = AssistantAgent(
        "agent", client, tools=[list_items, do_item], max_tool_iterations=turns, reflect_on_tool_use=False
    )
    result = await agent.run(task="Do every item.")
    record.write(json.dumps([message.dump() for message in result.messages], default=str) + "\n")
    return len(done) == len(wanted) and result.messages[-1].to_text() == "All is done."


run_all(1, episode)()
report(turns, episodes, run_all(episodes, episode))
