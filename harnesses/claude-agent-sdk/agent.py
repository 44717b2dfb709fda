"""The Claude Agent SDK; the task's tools come by MCP. Variants: a Stop hook, max_turns."""

import asyncio

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    ResultMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from evalkit_harness import serve


def served(job, spec):
    @tool(spec["name"], spec["description"], spec["input_schema"])
    async def run(arguments):
        result = job.call(spec["name"], arguments)
        return {"content": [{"type": "text", "text": str(result)}], "is_error": result.error}

    return run


async def work(job):
    async def nothing_open(hook, tool_use_id, context):
        items = job.open_items()
        return {"decision": "block", "reason": f"Still open: {', '.join(items)}"} if items else {}

    options = ClaudeAgentOptions(
        model=job.model,
        system_prompt="Work on the task with the tools.",
        tools=[],
        mcp_servers={"work": create_sdk_mcp_server("work", tools=[served(job, spec) for spec in job.tools])},
        allowed_tools=[f"mcp__work__{spec['name']}" for spec in job.tools],
        setting_sources=[],
        cwd=job.folder,
        hooks={"Stop": [HookMatcher(hooks=[nothing_open])]} if job.variant == "stop_hook" else None,
        max_turns=job.max_turns if job.variant == "max_turns" else None,
    )
    native = "no result"
    try:
        async for message in query(prompt=job.prompt, options=options):
            if isinstance(message, ResultMessage):
                native = f"{message.subtype}/{message.terminal_reason}"
    except Exception as error:
        return {"native": native, "error": str(error)}
    return native


serve(lambda job: asyncio.run(work(job)))
