// Mastra: an Agent with tools, asked once; without maxSteps it would end after five steps.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { Agent } = await load("@mastra/core/agent");
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
  const result = await agent.generate(job.prompt, { maxSteps: 20 });
  const calls = result.toolCalls.length > 0;
  return result.finishReason === "tool-calls" && !calls ? "tool-calls without a call" : result.finishReason;
});
