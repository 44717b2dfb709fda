// Vercel's AI SDK with its messages in a file: resumed, steered, asked for approval, compacted.

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { experimental_createSteering, generateText, isStepCount, jsonSchema, tool } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

const KEPT = "messages.json";
const ASK = { role: "user", content: "Summarise what was done and what is open. Text only." };

function keep(messages) {
  // Whole or not at all: a kill comes at any time.
  writeFileSync(`${KEPT}.new`, JSON.stringify(messages));
  renameSync(`${KEPT}.new`, KEPT);
  return messages;
}

async function toolsOf(job, model) {
  const made = {};
  for (const { name, description, input_schema } of await job.tools()) {
    made[name] = tool({
      description,
      inputSchema: jsonSchema(input_schema),
      execute: async (args) =>
        name === "delegate" ? helped(job, model, args.name, made) : (await job.call(name, args)).text,
    });
  }
  return made;
}

// A child agent within a call of the model's, with the same tools.
async function helped(job, model, name, tools) {
  const prompt = `You are the helper ${name}. The task: ${job.prompt}`;
  return (await generateText({ model, tools, prompt, stopWhen: isStepCount(20) })).text;
}

// The calls of the last message that ask for approval, as the approver knows them.
function waiting(messages) {
  const parts = messages.at(-1).role === "assistant" ? messages.at(-1).content : [];
  if (typeof parts === "string") return [];
  return parts
    .filter(({ type }) => type === "tool-approval-request")
    .map(({ approvalId, toolCallId }) => {
      const call = parts.find((part) => part.type === "tool-call" && part.toolCallId === toolCallId);
      return { approvalId, id: toolCallId, tool: call.toolName, arguments: call.input };
    });
}

// One call of generateText; the messages behind it. Words that came too late for it are said next.
async function oneRun(job, settings, messages) {
  const steering = experimental_createSteering();
  const late = [];
  let over = false;
  const listening = (async () => {
    while (!over) {
      for (const text of await job.messages()) {
        steering.steer(text).then(({ type }) => type === "delivered" || late.push({ role: "user", content: text }));
      }
      await new Promise((done) => setTimeout(done, 20));
    }
  })();
  let before = messages;
  const result = await generateText({
    ...settings,
    messages,
    experimental_steering: steering,
    prepareStep: async ({ messages: now, steps }) => {
      before = now;
      if (job.variant === "compaction" && steps.at(-1)?.usage.inputTokens > 50_000) {
        const { text } = await generateText({ model: settings.model, messages: [...now, ASK] });
        before = [{ role: "user", content: `What was before: ${text}` }, ...now.slice(-2)];
      }
      return { messages: keep(before) };
    },
  }).finally(() => (over = true));
  await listening;
  late.push(...(await job.messages()).map((content) => ({ role: "user", content })));
  // What is told of an undelivered message comes in its own turn of the event loop.
  await new Promise((done) => setTimeout(done, 0));
  return { native: result.finishReason, late, messages: [...before, ...result.steps.at(-1).response.messages] };
}

await serve(async (job) => {
  const model = createAnthropic({ baseURL: `${job.anthropicUrl}/v1` })(job.model);
  const tools = await toolsOf(job, model);
  const asks = Object.keys(tools).filter((name) => job.variant === "approval" && !/^(list|read)_/.test(name));
  const settings = {
    model,
    tools,
    stopWhen: isStepCount(job.maxTurns ?? 40),
    toolApproval: Object.fromEntries(asks.map((name) => [name, "user-approval"])),
  };
  const again = job.resumes && existsSync(KEPT);
  let messages = again ? JSON.parse(readFileSync(KEPT)) : [{ role: "user", content: job.prompt }];
  let native = "stop";
  const late = [];
  for (;;) {
    if (messages.at(-1).role !== "assistant") {
      const run = await oneRun(job, settings, messages);
      ({ native, messages } = run);
      late.push(...run.late);
    }
    keep(messages);
    const open = waiting(messages);
    if (open.length) {
      const decisions = await job.wait(open);
      if (!decisions.length) return { waiting: open };
      const content = decisions.map(({ id, decision, reason }) => ({
        type: "tool-approval-response",
        approvalId: open.find((call) => call.id === id).approvalId,
        approved: decision === "allow",
        reason,
      }));
      messages = [...messages, { role: "tool", content }];
      continue;
    }
    if (late.length) {
      messages = [...messages, ...late.splice(0)];
      continue;
    }
    const words = await job.nextMessage(native);
    if (words === undefined) return native;
    messages = [...messages, { role: "user", content: words }];
  }
});
