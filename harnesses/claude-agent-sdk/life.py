"""The Claude Agent SDK's client: resumed, steered while it works, asked for permission, compacted."""

import asyncio
import pathlib

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)
from evalkit_harness import serve

SESSION = "00000000-0000-4000-8000-000000000001"
PREFIX = "mcp__work__"
#: That a run had come to its end is known to the program alone.
ENDED = pathlib.Path("ended")
#: Seconds in which words that came too late for a turn begin one of their own.
LATE = 2.0


def served(job, spec):
    @tool(spec["name"], spec["description"], spec["input_schema"])
    async def run(arguments):
        result = await asyncio.to_thread(job.call, spec["name"], arguments)
        return {"content": [{"type": "text", "text": str(result)}], "is_error": result.error}

    return run


def options_of(job, config, resumed, waiting):
    async def may(name, arguments, context):
        call = {"id": context.tool_use_id, "tool": name, "arguments": arguments}
        decisions = await asyncio.to_thread(lambda: list(job.approve([call])))
        if not decisions:
            waiting.append(call)
            return PermissionResultDeny(message="nobody has decided", interrupt=True)
        if decisions[0]["decision"] == "refuse":
            return PermissionResultDeny(message=decisions[0]["reason"] or "refused")
        return PermissionResultAllow(updated_input=decisions[0]["arguments"])

    asks = job.variant == "approval"
    names = [spec["name"] for spec in job.tools]
    free = [name for name in names if not asks or name.startswith(("list_", "read_"))]
    return ClaudeAgentOptions(
        model=job.model,
        system_prompt="Work on the task with the tools.",
        tools=[],
        mcp_servers={"work": create_sdk_mcp_server("work", tools=[served(job, spec) for spec in job.tools])},
        allowed_tools=[PREFIX + name for name in free],
        can_use_tool=may if asks else None,
        setting_sources=[],
        cwd=job.folder,
        max_turns=job.max_turns,
        env={"CLAUDE_CONFIG_DIR": str(config)},
        **({"resume": SESSION} if resumed else {"session_id": SESSION}),
    )


async def one_run(job, client, words):
    """The result of the last turn that the words, and those that come meanwhile, have led to."""
    sent, over = [], asyncio.Event()

    async def fetch():
        for heard in await asyncio.to_thread(job.messages):
            sent.append(heard)
            await client.query(heard)

    async def listen():
        while not over.is_set():
            await fetch()
            await asyncio.sleep(0.02)

    await client.query(words)
    listening, messages, native = asyncio.create_task(listen()), client.receive_messages(), "no result"
    try:
        while True:
            wait = LATE if native != "no result" else None
            message = await asyncio.wait_for(anext(messages), wait)
            if isinstance(message, ResultMessage):
                native = f"{message.subtype}/{message.terminal_reason}"
                await fetch()
                if not sent:
                    return native
                sent.clear()
            else:
                native = "no result" if type(message).__name__ != "SystemMessage" else native
    except (TimeoutError, StopAsyncIteration):
        return native
    finally:
        # Cancelled, it would take along what it has just fetched.
        over.set()
        await listening


async def work(job):
    config = pathlib.Path(job.folder, "claude")
    resumed = job.resumes and any(config.glob(f"projects/*/{SESSION}.jsonl"))
    ended = resumed and ENDED.exists()
    words, waiting = "Continue." if resumed else job.prompt, []
    async with ClaudeSDKClient(options_of(job, config, resumed, waiting)) as client:
        native = ENDED.read_text() if ended else await one_run(job, client, words)
        while True:
            if waiting:
                return {"waiting": waiting}
            ENDED.write_text(native)
            words = await asyncio.to_thread(job.next_message, native)
            if words is None:
                return native
            ENDED.unlink()
            native = await one_run(job, client, words)


serve(lambda job: asyncio.run(work(job)))
