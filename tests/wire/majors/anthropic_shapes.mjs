// What this version of the Anthropic SDK makes of each answer, one line of JSON each.
const { load } = await import(process.env.EVALKIT_CLIENT);
const { default: Anthropic } = await load("@anthropic-ai/sdk");

const client = new Anthropic({ maxRetries: 0 });
const tools = [
  { name: "do_item", input_schema: { type: "object", properties: { item: { type: "string" } } } },
  { type: "web_search_20250305", name: "web_search" },
];
for (let number = 0; number < Number(process.env.SHAPES); number++) {
  for (const streamed of [false, true]) {
    const messages = [{ role: "user", content: `shape ${number} ${streamed}` }];
    const ask = { model: "claude-sonnet-4-6", max_tokens: 4096, tools, messages };
    let said;
    try {
      const message = streamed
        ? await client.messages.stream(ask).finalMessage()
        : await client.messages.create(ask);
      said = {
        text: message.content.filter((b) => b.type === "text").map((b) => b.text).join("\n"),
        calls: message.content.filter((b) => b.type === "tool_use").map((b) => [b.name, b.input]),
        thinking: message.content.filter((b) => b.type === "thinking").map((b) => b.thinking),
        label: message.stop_reason,
      };
    } catch (error) {
      said = { error: `${error.name}: ${error.message}`.slice(0, 300) };
    }
    console.log("SHAPE " + JSON.stringify([number, streamed, said]));
  }
}
