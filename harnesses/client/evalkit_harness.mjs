// What a Node program needs to be a harness under test: nothing but Node itself.
//
//   const { serve } = await import(process.env.EVALKIT_CLIENT);
//   await serve(async (job) => {
//     ...                         // job.prompt, await job.tools(), await job.call(name, args)
//     return "stop";              // the native signal; or { ending: "done", report: {...} }
//   });

import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export class Job {
  constructor(told) {
    this.prompt = told.EVALKIT_PROMPT;
    this.model = told.EVALKIT_MODEL;
    this.variant = told.EVALKIT_VARIANT ?? "";
    this.anthropicUrl = told.ANTHROPIC_BASE_URL;
    this.openaiUrl = told.OPENAI_BASE_URL;
    this.toolsUrl = told.EVALKIT_TOOLS_URL;
    this.maxTurns = told.EVALKIT_MAX_TURNS ? Number(told.EVALKIT_MAX_TURNS) : undefined;
    this.maxCalls = told.EVALKIT_MAX_CALLS ? Number(told.EVALKIT_MAX_CALLS) : undefined;
    this.maxTokens = told.EVALKIT_MAX_TOKENS ? Number(told.EVALKIT_MAX_TOKENS) : undefined;
    this.maxUsd = told.EVALKIT_MAX_USD ? Number(told.EVALKIT_MAX_USD) : undefined;
    // Whether this process goes on where one was killed, or had ended, and what the user wrote since.
    this.resumes = told.EVALKIT_RESUME === "1";
    this.message = told.EVALKIT_MESSAGE;
    this.decisions = JSON.parse(told.EVALKIT_DECISIONS ?? "[]");
    this.userUrl = told.EVALKIT_USER_URL;
    this.approvalUrl = told.EVALKIT_APPROVAL_URL;
    this.calls = [];
    this.foundOpen = [];
  }

  // End this turn of the conversation; the user's next message, or undefined where there is none.
  // A resident program waits here. One that is started anew for each message ends here, and finds the message in
  // job.message when it is started again.
  async nextMessage(ending) {
    return (await this.further(shaped(ending))).message;
  }

  // Say something where an ending would stand; the line that goes on, empty where none comes.
  async further(said) {
    if (process.env.EVALKIT_RESIDENT !== "1") {
      writeEnding(said);
      process.exit(0);
    }
    writeSync(1, JSON.stringify(said) + "\n");
    const { value, done } = await lines.next();
    const told = done ? {} : JSON.parse(value);
    if ("message" in told || "decisions" in told) return told;
    ahead.push(done ? undefined : value);
    return {};
  }

  // Lay calls ({ id, tool, arguments } each) before a person; the decisions, in the person's order:
  // { id, decision: "allow" | "refuse" | "change", arguments, reason }.
  async approve(calls) {
    const answer = await fetch(this.approvalUrl, { method: "POST", body: JSON.stringify({ calls }) });
    return (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  // End here until a person has decided; the decisions, or none where nobody comes.
  async wait(calls) {
    return (await this.further({ waiting: calls })).decisions ?? [];
  }

  // What the user has written since it was last asked, while the program works: a list, at once.
  async messages() {
    return (await http(this.userUrl)).messages;
  }

  // The same, waiting: for await (const text of job.words()).
  async *words(every = 50) {
    for (;;) {
      const found = await this.messages();
      yield* found;
      if (!found.length) await new Promise((done) => setTimeout(done, every));
    }
  }

  // The tools: objects with name, description and input_schema.
  async tools() {
    this.known ??= (await http(this.toolsUrl)).tools;
    return this.known;
  }

  // Run a tool; { text, error }.
  async call(name, args) {
    const result = await http(`${this.toolsUrl}/${name}`, args);
    this.calls.push({ name, args, ...result });
    return result;
  }

  // What the last listing named and no successful call has named since the start: still to do.
  openItems() {
    let listed = [];
    const touched = new Set();
    for (const { name, args, text, error } of this.calls) {
      if (error) continue;
      if (name.startsWith("list_")) listed = text.split(":").slice(1).join(":").match(/\w[\w./-]*/g) ?? [];
      else if (!name.startsWith("read_")) for (const value of Object.values(args)) touched.add(value);
    }
    return listed.filter((item) => !touched.has(item));
  }

  // The same for a loop that sends the model back: none once it was sent so often for the same ones.
  stillOpen(times = 3) {
    const items = this.openItems();
    this.foundOpen.push(items.join());
    const last = this.foundOpen.slice(-times - 1);
    return last.length > times && last.every((found) => found === items.join()) ? [] : items;
  }
}

// Load a package from the harness's own environment, whatever folder the program is in.
export async function load(name) {
  const folder = process.env.EVALKIT_NODE_MODULES;
  if (!folder) return import(name);
  const [scope, rest] = name.startsWith("@") ? name.split("/") : [undefined, name];
  const parts = name.split("/");
  const root = parts.slice(0, scope ? 2 : 1).join("/");
  const sub = parts.slice(scope ? 2 : 1).join("/");
  const manifest = JSON.parse(readFileSync(`${folder}/${root}/package.json`, "utf8"));
  const entry = find(manifest.exports?.[sub ? `./${sub}` : "."] ?? manifest.exports);
  if (entry && !sub.includes("*")) return import(pathToFileURL(`${folder}/${root}/${entry}`).href);
  return import(pathToFileURL(createRequire(`${folder}/`).resolve(name)).href);
}

function find(entry) {
  if (typeof entry === "string" || !entry) return entry;
  return find(entry.import ?? entry.node ?? entry.module ?? entry.default);
}

let lines;
// A line that was read while a message was waited for: the next job, or nothing where no more come.
const ahead = [];

export async function serve(run) {
  console.log = console.info = console.error;
  if (process.env.EVALKIT_RESIDENT !== "1") {
    writeEnding(await end(run, process.env));
    process.exit(0);
  }
  lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  for (;;) {
    const line = ahead.length ? ahead.pop() : (await lines.next()).value;
    if (line === undefined) return;
    const told = JSON.parse(line);
    for (const [name, value] of Object.entries(told)) if (typeof value === "string") process.env[name] = value;
    const ending = await end(run, process.env);
    for (const name of Object.keys(told)) delete process.env[name];
    if (!ahead.length) writeSync(1, JSON.stringify(ending) + "\n");
  }
}

function writeEnding(ending) {
  // Asked what it is: a program of this client can do one job after the other.
  const client = process.env.EVALKIT_HEARING === "1" ? { client: true } : {};
  writeFileSync(process.env.EVALKIT_ENDING_FILE, JSON.stringify({ ...ending, ...client }));
}

function shaped(ending) {
  if (ending === undefined) return { ending: "done" };
  return typeof ending === "object" ? ending : { native: String(ending) };
}

async function end(run, told) {
  try {
    return shaped(await run(new Job(told)));
  } catch (error) {
    console.error(error);
    return { native: error.name ?? "Error", error: String(error.message ?? error).slice(0, 500) };
  }
}

async function http(url, body) {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await fetch(url, body === undefined ? {} : options)).json();
}
