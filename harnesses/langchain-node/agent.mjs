// LangChain.js: createAgent, invoked to the end of its graph.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { createAgent, tool } = await load("langchain");
const { ChatAnthropic } = await load("@langchain/anthropic");

await serve(async (job) => {
  const tools = (await job.tools()).map(({ name, description, input_schema }) =>
    tool(async (args) => (await job.call(name, args)).text, { name, description, schema: input_schema }),
  );
  const model = new ChatAnthropic({ model: job.model, anthropicApiUrl: job.anthropicUrl });
  const agent = createAgent({ model, tools });
  const state = await agent.invoke({ messages: [{ role: "user", content: job.prompt }] });
  return state.messages.at(-1).response_metadata.stop_reason ?? "end";
});
