// Vercel's AI SDK: generateText with tools; without stopWhen it would end after one step.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { generateText, isStepCount, jsonSchema, tool } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");

await serve(async (job) => {
  const anthropic = createAnthropic({ baseURL: `${job.anthropicUrl}/v1` });
  const tools = {};
  for (const { name, description, input_schema } of await job.tools()) {
    tools[name] = tool({
      description,
      inputSchema: jsonSchema(input_schema),
      execute: async (args) => (await job.call(name, args)).text,
    });
  }
  const result = await generateText({
    model: anthropic(job.model),
    tools,
    stopWhen: isStepCount(20),
    prompt: job.prompt,
  });
  const calls = result.toolCalls.length > 0;
  return result.finishReason === "tool-calls" && !calls ? "tool-calls without a call" : result.finishReason;
});
