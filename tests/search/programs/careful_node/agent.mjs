// A careful loop in plain Node: what is done it reads itself, and it ends done only where nothing is open.
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
  const done = new Set(), acted = new Set();
  let listed = [], nudges = 0, cutOffs = 0, pauses = 0, limit = 4096;
  for (let turns = 0; turns < 40; turns += 1) {
    const request = { model: job.model, max_tokens: limit, tools, messages };
    const { content, stop_reason: stop } = await post(`${job.anthropicUrl}/v1/messages`, request);
    if (["max_tokens", "model_context_window_exceeded"].includes(stop)) {
      limit = Math.min(limit * 2, 64000);
      cutOffs += 1;
      if (cutOffs > 3) return { ending: "escalated", native: stop };
      continue;
    }
    cutOffs = 0;
    if (stop === "refusal") return { ending: "escalated", native: stop };
    if (content.length) messages.push({ role: "assistant", content });
    const calls = content.filter((block) => block.type === "tool_use");
    if (stop === "pause_turn" && !calls.length) {
      pauses += 1;
      if (pauses > 25) return { ending: "escalated", native: stop };
      continue;
    }
    pauses = 0;
    if (calls.length) {
      const results = [];
      for (const call of calls) {
        const { text, error } = await job.call(call.name, call.input);
        results.push({ type: "tool_result", tool_use_id: call.id, content: text, is_error: Boolean(error) });
        const item = call.input.item;
        if (call.name === "list_items") listed = text.split(":")[1].split(",").map((name) => name.trim());
        if (!["do_item", "undo_item"].includes(call.name)) continue;
        const state = await job.call("read_item", { item });
        if (state.text.endsWith(": done")) done.add(item);
        else done.delete(item);
        if (!error && !acted.has(`${call.name} ${item}`)) {
          acted.add(`${call.name} ${item}`);
          nudges = 0;
        }
      }
      messages.push({ role: "user", content: results });
      continue;
    }
    const open = listed.filter((item) => !done.has(item));
    if (listed.length && !open.length) return { ending: "done", native: "closed" };
    if (nudges >= 3) return { ending: "escalated", native: "nudges" };
    nudges += 1;
    messages.push({ role: "user", content: open.length ? `Still open: ${open.join(", ")}.` : "Continue." });
  }
  return { ending: "limit", native: "turns" };
});
