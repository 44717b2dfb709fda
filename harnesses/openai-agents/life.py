"""OpenAI's Agents SDK with a session in a file: it is resumed, steered, asked for approval, compacted."""

import asyncio
import dataclasses
import json
import pathlib

from agents import (
    Agent,
    OpenAIResponsesCompactionSession,
    Runner,
    RunState,
    SQLiteSession,
    UserError,
    function_tool,
    set_tracing_disabled,
)
from evalkit_harness import serve

set_tracing_disabled(True)
#: The run as the SDK writes it, while it works and while it waits for a person.
KEPT = pathlib.Path("run.json")


def agent_of(job):
    def asks(name):
        return job.variant == "approval" and not name.startswith(("list_", "read_"))

    tools = [function_tool(f, strict_mode=False, needs_approval=asks(f.__name__)) for f in job.functions()]
    if any(each.name == "delegate" for each in tools):
        tools = [each for each in tools if each.name != "delegate"]
        helper = Agent(name="helper", instructions="You are the helper.", model=job.model, tools=[*tools])
        begin = {"input_builder": lambda told: f"You are {told['params']['name']}. The task: {job.prompt}"}
        begin["parameters"] = dataclasses.make_dataclass("Share", [("name", str)])
        tools.append(helper.as_tool("delegate", "Hand a share on.", **begin))
    return Agent(name="worker", model=job.model, tools=tools)


def keep(state):
    new = KEPT.with_suffix(".new")
    new.write_text(state.to_string())
    new.rename(KEPT)  # whole or not at all: a kill comes at any time


async def streamed(job, agent, given, session):
    """One run; words that come meanwhile stop it after the turn, and go into what follows."""
    while True:
        run = Runner.run_streamed(agent, given, session=session, max_turns=job.max_turns or 40)
        words, over = [], asyncio.Event()

        async def listen(run=run, words=words, over=over):
            while not over.is_set():
                if heard := await asyncio.to_thread(job.messages):
                    words += heard
                    run.cancel(mode="after_turn")
                await asyncio.sleep(0.02)

        listening = asyncio.create_task(listen())
        try:
            async for event in run.stream_events():
                if job.variant == "approval" and event.type == "run_item_stream_event":
                    keep(run.to_state())
                if job.variant == "compaction" and event.type == "run_item_stream_event":
                    # By itself the session compacts only behind an answer without calls.
                    run.cancel(mode="after_turn")
        finally:
            # Cancelled, it would take along what it has just fetched.
            over.set()
            await listening
        words += await asyncio.to_thread(job.messages)
        if not words and job.variant == "compaction" and run.final_output is None:
            await session.run_compaction()
            given = []
            continue
        if not words:
            return run
        given = run.to_state()
        try:
            given.add_input("\n".join(words))
        except UserError:
            # It had come to its end.
            given = "\n".join(words)


async def decided(job, agent, run, session):
    """The run goes on with each decision, in the person's order."""
    while run.interruptions:
        state = run.to_state()
        keep(state)
        calls = [
            {"id": item.raw_item.call_id, "tool": item.name, "arguments": json.loads(item.arguments or "{}")}
            for item in run.interruptions
        ]
        decisions = await asyncio.to_thread(job.wait, calls)
        if not decisions:
            return None
        for decision in decisions:
            for item in [i for i in state.get_interruptions() if i.raw_item.call_id == decision["id"]]:
                if decision["decision"] == "allow":
                    state.approve(item)
                else:  # The SDK has no way to approve a call with other arguments.
                    state.reject(item, rejection_message=decision["reason"] or "refused")
                run = await streamed(job, agent, state, session)
                state = run.to_state()
                keep(state)
    KEPT.unlink(missing_ok=True)
    return run


async def work(job):
    agent = agent_of(job)
    session = SQLiteSession("task", "session.sqlite")
    if job.variant == "compaction":
        session = OpenAIResponsesCompactionSession(
            "task",
            session,
            model=job.model,
            compaction_mode="input",
            should_trigger_compaction=lambda seen: len(seen["compaction_candidate_items"]) >= 6,
        )
    given = [] if job.resumes and await session.get_items() else job.prompt
    if job.resumes and KEPT.exists():
        given = await RunState.from_string(agent, KEPT.read_text())
    while True:
        run = await decided(job, agent, await streamed(job, agent, given, session), session)
        if run is None:
            return {"waiting": []}
        given = await asyncio.to_thread(job.next_message, "final_output")
        if given is None:
            return "final_output"


# The SDK keeps its connections from one run to the next, and they belong to a loop.
with asyncio.Runner() as runner:
    serve(lambda job: runner.run(work(job)))
