// Mastra: an Agent with tools, asked once; without maxSteps it would end after five steps. A variant has a scorer.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { Agent } = await load("@mastra/core/agent");
const { createScorer } = await load("@mastra/core/evals");
const { createTool } = await load("@mastra/core/tools");
const { createAnthropic } = await load("@ai-sdk/anthropic");

await serve(async (job) => {
  const anthropic = createAnthropic({ baseURL: `${job.anthropicUrl}/v1` });
  const tools = {};
  for (const { name, description, input_schema } of await job.tools()) {
    tools[name] = createTool({
      id: name,
      description,
      inputSchema: input_schema,
      execute: async (args) => (await job.call(name, args)).text,
    });
  }
  const agent = new Agent({
    id: "worker",
    name: "worker",
    instructions: "You do tasks with tools.",
    model: anthropic(job.model),
    tools,
  });
  const nothingOpen = createScorer({ id: "nothing-open", description: "No listed item is open." })
    .generateScore(() => (job.openItems().length ? 0 : 1))
    .generateReason(() => `Still open: ${job.openItems().join(", ")}`);
  const isTaskComplete = job.variant === "complete" ? { scorers: [nothingOpen] } : undefined;
  const result = await agent.generate(job.prompt, { maxSteps: 20, isTaskComplete });
  const calls = result.toolCalls.length > 0;
  return result.finishReason === "tool-calls" && !calls ? "tool-calls without a call" : result.finishReason;
});
