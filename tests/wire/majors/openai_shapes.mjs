// What this version of the OpenAI SDK makes of each answer, one line of JSON each.
const { load } = await import(process.env.EVALKIT_CLIENT);
const { default: OpenAI } = await load("openai");

const client = new OpenAI({ maxRetries: 0 });
const chat = process.env.EVALKIT_DIALECT === "chat";
const declared = { name: "do_item", parameters: { type: "object", properties: { item: { type: "string" } } } };

const choiceOf = ({ message, finish_reason }) => ({
  text: message.content ?? "",
  calls: (message.tool_calls ?? []).map((c) => [c.function.name, c.function.arguments]),
  label: finish_reason,
  refusal: message.refusal ?? null,
});

async function streamedChat(ask) {
  const found = { text: "", label: null, refusal: null };
  const calls = [];
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
    for (const { delta, finish_reason } of chunk.choices) {
      found.text += delta.content ?? "";
      if (delta.refusal) found.refusal = (found.refusal ?? "") + delta.refusal;
      for (const part of delta.tool_calls ?? []) {
        const call = (calls[part.index] ??= ["", ""]);
        call[0] += part.function?.name ?? "";
        call[1] += part.function?.arguments ?? "";
      }
      found.label = finish_reason ?? found.label;
    }
  }
  return { ...found, calls };
}

function responseOf(response) {
  const parts = response.output.filter((item) => item.type === "message").flatMap((item) => item.content);
  return {
    text: parts.filter((part) => part.type === "output_text").map((part) => part.text).join("\n"),
    calls: response.output.filter((i) => i.type === "function_call").map((i) => [i.name, i.arguments]),
    thinking: response.output.filter((i) => i.type === "reasoning").flatMap((i) => i.summary.map((s) => s.text)),
    label: response.status,
    why: response.incomplete_details?.reason ?? null,
    refusal: parts.find((part) => part.type === "refusal")?.refusal ?? null,
  };
}

for (let number = 0; number < Number(process.env.SHAPES); number++) {
  for (const streamed of [false, true]) {
    const said = `shape ${number} ${streamed}`;
    let found;
    try {
      if (chat) {
        const messages = [{ role: "user", content: said }];
        const ask = { model: "gpt-5", messages, tools: [{ type: "function", function: declared }] };
        found = streamed
          ? await streamedChat(ask)
          : choiceOf((await client.chat.completions.create(ask)).choices[0]);
      } else {
        const ask = { model: "gpt-5", input: said, tools: [{ type: "function", strict: false, ...declared }] };
        found = responseOf(
          streamed ? await client.responses.stream(ask).finalResponse() : await client.responses.create(ask),
        );
      }
    } catch (error) {
      found = { error: `${error.name}: ${error.message}`.slice(0, 300) };
    }
    console.log("SHAPE " + JSON.stringify([number, streamed, found]));
  }
}
