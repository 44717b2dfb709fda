// A loop in plain Node with a planted bug: an empty turn is asked for again without a cap.
const { serve } = await import(process.env.EVALKIT_CLIENT);

async function post(url, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

await serve(async (job) => {
  const tools = await job.tools();
  const messages = [{ role: "user", content: job.prompt }];
  let turns = 0;
  while (turns < 30) {
    const request = { model: job.model, max_tokens: 1000, tools, messages };
    const answer = await post(`${job.anthropicUrl}/v1/messages`, request);
    if (!answer.content.length) continue;
    turns += 1;
    if (["max_tokens", "model_context_window_exceeded"].includes(answer.stop_reason)) continue;
    if (answer.stop_reason === "refusal") return { ending: "escalated", native: "refusal" };
    messages.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (calls.length) {
      const results = [];
      for (const call of calls) {
        const { text } = await job.call(call.name, call.input);
        results.push({ type: "tool_result", tool_use_id: call.id, content: text });
      }
      messages.push({ role: "user", content: results });
    } else if (answer.stop_reason !== "pause_turn") {
      return { ending: "done", native: answer.stop_reason };
    }
  }
  return { ending: "limit", native: "turns" };
});
