// OpenAI's Agents SDK: one agent, run to its final output.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { Agent, OpenAIProvider, Runner, tool } = await load("@openai/agents");

await serve(async (job) => {
  const tools = (await job.tools()).map(({ name, description, input_schema }) =>
    tool({
      name,
      description,
      parameters: { ...input_schema, additionalProperties: true },
      strict: false,
      execute: async (args) => (await job.call(name, args)).text,
    }),
  );
  const modelProvider = new OpenAIProvider({ baseURL: job.openaiUrl, apiKey: process.env.OPENAI_API_KEY });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  await runner.run(new Agent({ name: "worker", model: job.model, tools }), job.prompt);
  return "finalOutput";
});
