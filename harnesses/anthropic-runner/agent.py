"""anthropic's tool runner: it runs the tools, and resumes paused turns, until an answer has no call."""

from anthropic import Anthropic, beta_tool
from evalkit_harness import serve


def run(job):
    runner = Anthropic().beta.messages.tool_runner(
        model=job.model,
        max_tokens=4096,
        tools=[beta_tool(function) for function in job.functions()],
        messages=[{"role": "user", "content": job.prompt}],
    )
    last = runner.until_done()
    if last.stop_reason == "tool_use" and not any(block.type == "tool_use" for block in last.content):
        return "tool_use without a call"
    return last.stop_reason


serve(run)
