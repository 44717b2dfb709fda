"""The task in Inspect: ``react`` with its mock model, its own log as the record."""

import tempfile

from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import Tool, ToolChoice, ToolInfo, tool
from measure import arguments, items, report

turns, episodes = arguments()
wanted = items(turns)


def reply(
    messages: list[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: GenerateConfig
) -> ModelOutput:
    spoken = sum(isinstance(message, ChatMessageAssistant) for message in messages)
    if spoken == 0:
        output = ModelOutput.for_tool_call("mockllm/model", "list_items", {})
    elif spoken < turns - 1:
        output = ModelOutput.for_tool_call("mockllm/model", "do_item", {"item": wanted[spoken - 1]})
    else:
        output = ModelOutput.from_content("mockllm/model", "All is done.")
    # Without it the mock model fetches a tokenizer from the network to count.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


@tool
def list_items() -> Tool:
    async def execute() -> str:
        """List the items."""
        return "Items: " + ", ".join(wanted)

    return execute


@tool
def do_item() -> Tool:
    async def execute(item: str) -> str:
        """Do an item.

        Args:
            item: Which one.
        """
        return f"{item}: done"

    return execute


def run(count: int) -> int:
    with tempfile.TemporaryDirectory() as logs:
        task = Task(
            dataset=[Sample(input="Do every item.") for _ in range(count)],
            solver=react(tools=[list_items(), do_item()], submit=False),
        )
        model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
        (log,) = eval(task, model=model, display="none", log_dir=logs, score=False)
        replies = [
            sum(isinstance(message, ChatMessageAssistant) for message in sample.messages)
            for sample in log.samples or []
        ]
    return replies.count(turns)


run(1)
report(turns, episodes, lambda: run(episodes))
