// Anthropic's tool runner: it runs the tools until an answer has no call.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { betaTool } = await load("@anthropic-ai/sdk/helpers/beta/json-schema");

await serve(async (job) => {
  const client = new Anthropic({ baseURL: job.anthropicUrl });
  const tools = (await job.tools()).map(({ name, description, input_schema }) =>
    betaTool({
      name,
      description,
      inputSchema: input_schema,
      run: async (args) => (await job.call(name, args)).text,
    }),
  );
  const last = await client.beta.messages.toolRunner({
    model: job.model,
    max_tokens: 4096,
    messages: [{ role: "user", content: job.prompt }],
    tools,
  });
  const calls = last.content.some((block) => block.type === "tool_use");
  return last.stop_reason === "tool_use" && !calls ? "tool_use without a call" : last.stop_reason;
});
