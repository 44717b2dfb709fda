// What this version of the AI SDK makes of each answer of each provider, one line of JSON each.
const { load } = await import(process.env.EVALKIT_CLIENT);
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createOpenAI } = await load("@ai-sdk/openai");
const { generateText, jsonSchema, streamText, tool } = await load("ai");

const dialect = process.env.EVALKIT_DIALECT;
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: "none" });
// Its base URL is to hold the version; this one, as the environment gives it, does not.
const anthropic = createAnthropic({ baseURL: process.env.ANTHROPIC_BASE_URL, apiKey: "none" });
const model = {
  anthropic: () => anthropic("claude-sonnet-4-6"),
  responses: () => openai.responses("gpt-5"),
  chat: () => openai.chat("gpt-5"),
}[dialect]();
const schema = jsonSchema({ type: "object", properties: { item: { type: "string" } } });
const tools = { do_item: tool({ description: "Do it.", inputSchema: schema }) };
if (dialect === "anthropic") tools.web_search = anthropic.tools.webSearch_20250305({});

for (let number = 0; number < Number(process.env.SHAPES); number++) {
  for (const streamed of [false, true]) {
    const ask = { model, tools, maxRetries: 0, prompt: `shape ${number} ${streamed}` };
    let found;
    try {
      let result;
      if (streamed) {
        let broken;
        const stream = streamText({ ...ask, onError: ({ error }) => (broken = error) });
        await stream.consumeStream();
        if (broken) throw broken;
        result = {
          content: await stream.content,
          finishReason: await stream.finishReason,
        };
      } else {
        result = await generateText(ask);
      }
      found = {
        text: result.content.filter((p) => p.type === "text").map((p) => p.text).join("\n"),
        calls: result.content
          .filter((p) => p.type === "tool-call" && p.toolName !== "web_search")
          .map((p) => [p.toolName, p.input, Boolean(p.invalid)]),
        label: result.finishReason,
      };
    } catch (error) {
      found = { error: `${error.name}: ${error.message}`.slice(0, 300) };
    }
    console.log("SHAPE " + JSON.stringify([number, streamed, found]));
  }
}
