// LangChain.js: createAgent, invoked to the end of its graph. A variant's middleware looks at what is open first.

const { load, serve } = await import(process.env.EVALKIT_CLIENT);
const { createAgent, createMiddleware, HumanMessage, tool } = await load("langchain");
const { ChatAnthropic } = await load("@langchain/anthropic");

await serve(async (job) => {
  const tools = (await job.tools()).map(({ name, description, input_schema }) =>
    tool(async (args) => (await job.call(name, args)).text, { name, description, schema: input_schema }),
  );
  const model = new ChatAnthropic({ model: job.model, anthropicApiUrl: job.anthropicUrl });
  const nothingOpen = createMiddleware({
    name: "NothingOpen",
    afterAgent: {
      canJumpTo: ["model"],
      hook: () => {
        const items = job.stillOpen();
        if (!items.length) return undefined;
        return { messages: [new HumanMessage(`Still open: ${items.join(", ")}`)], jumpTo: "model" };
      },
    },
  });
  const agent = createAgent({ model, tools, middleware: job.variant === "after_agent" ? [nothingOpen] : [] });
  const state = await agent.invoke({ messages: [{ role: "user", content: job.prompt }] });
  return state.messages.at(-1).response_metadata.stop_reason ?? "end";
});
