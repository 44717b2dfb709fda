"""Google ADK with a SQLite session and a resumable app: resumed, asked for confirmation, compacted."""

import asyncio
import functools

from anthropic import AsyncAnthropic
from evalkit_harness import serve
from google.adk.agents import LlmAgent, RunConfig
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.models.anthropic_llm import AnthropicLlm
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

ASKS = "adk_request_confirmation"
WHERE = {"app_name": "work", "user_id": "person", "session_id": "task"}


def tools_of(job):
    for function in job.functions():
        changes = not function.__name__.startswith(("list_", "read_"))
        if changes and job.variant == "long_running":
            # Its result is told when a person has decided.
            yield LongRunningFunctionTool(functools.wraps(function)(lambda **arguments: None))
        else:
            yield FunctionTool(function, require_confirmation=changes and job.variant == "approval")


def open_calls(events):
    """What a person is asked about and has not answered: the call that answers it, the model's call."""
    asked, answered = {}, set()
    for event in events:
        answered |= {response.id for response in event.get_function_responses()}
        for call in event.get_function_calls():
            if call.name == ASKS:
                asked[call.id] = (call.name, call.args["originalFunctionCall"])
            elif call.id in (event.long_running_tool_ids or ()):
                asked[call.id] = (call.name, {"id": call.id, "name": call.name, "args": call.args})
    return {name: call for name, call in asked.items() if name not in answered}


def response(job, told, name, call):
    """A decision as the framework takes it: a confirmation, or what came of the call."""
    if name == ASKS:
        return {"confirmed": told["decision"] == "allow"}
    if told["decision"] == "refuse":
        return {"result": f"refused: {told['reason']}"}
    return {"result": str(job.call(call["name"], told["arguments"]))}


def words(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


async def work(job):
    compaction = EventsCompactionConfig(token_threshold=50_000, event_retention_size=2)
    app = App(
        name="work",
        root_agent=LlmAgent(
            name="worker",
            model=AnthropicLlm(model=job.model, client=AsyncAnthropic()),
            tools=list(tools_of(job)),
        ),
        resumability_config=ResumabilityConfig(is_resumable=True),
        events_compaction_config=compaction if job.variant == "compaction" else None,
    )
    service = SqliteSessionService("session.sqlite")
    runner = Runner(app=app, session_service=service)

    async def session():
        return await service.get_session(**WHERE) or await service.create_session(**WHERE)

    async def go_on(said=None, invocation=None):
        given = {"user_id": WHERE["user_id"], "session_id": WHERE["session_id"]}
        limits = RunConfig(max_llm_calls=job.max_turns or 500)
        async for _ in runner.run_async(
            **given, new_message=said, invocation_id=invocation, run_config=limits
        ):
            pass

    kept = (await session()).events
    if not kept:
        await go_on(words(job.prompt))
    elif not open_calls(kept) and not kept[-1].is_final_response():
        await go_on(invocation=kept[-1].invocation_id)
    while True:
        events = (await session()).events
        if asked := open_calls(events):
            calls = {
                call["id"]: {"id": call["id"], "tool": call["name"], "arguments": call["args"]}
                for _, call in asked.values()
            }
            decisions = await asyncio.to_thread(job.wait, list(calls.values()))
            if not decisions:
                return {"waiting": list(calls.values())}
            for told in decisions:
                for name, (kind, call) in asked.items():
                    if call["id"] != told["id"]:
                        continue
                    if kind != ASKS and name not in open_calls((await session()).events):
                        # The framework leaves it to the program to run a call once.
                        continue
                    answer = response(job, told, kind, call)
                    part = types.FunctionResponse(id=name, name=kind, response=answer)
                    await go_on(types.Content(role="user", parts=[types.Part(function_response=part)]))
            continue
        last = events[-1]
        native = last.error_code or (last.finish_reason.name if last.finish_reason else "final response")
        said = await asyncio.to_thread(job.next_message, native)
        if said is None:
            return native
        await go_on(words(said))


serve(lambda job: asyncio.run(work(job)))
