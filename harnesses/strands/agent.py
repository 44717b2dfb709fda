"""Strands: an Agent on an Anthropic model, called once. A variant has a GoalLoop over what was listed."""

from evalkit_harness import serve
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.vended_plugins.goal import GoalLoop


def run(job):
    def nothing_open(response, agent):
        items = job.open_items()
        return {"passed": not items, "feedback": f"Still open: {', '.join(items)}"}

    goal = GoalLoop(goal=nothing_open, max_attempts=10)
    agent = Agent(
        model=AnthropicModel(model_id=job.model, max_tokens=4096),
        tools=[tool(function) for function in job.functions()],
        callback_handler=None,
        plugins=[goal] if job.variant == "goal" else [],
    )
    result = agent(job.prompt)
    found = goal.last_result(agent)
    return result.stop_reason if found is None or found.passed else found.stop_reason


serve(run)
