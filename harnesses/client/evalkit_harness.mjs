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
    this.calls = [];
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

export async function serve(run) {
  console.log = console.info = console.error;
  if (process.env.EVALKIT_RESIDENT !== "1") {
    writeFileSync(process.env.EVALKIT_ENDING_FILE, JSON.stringify(await end(run, process.env)));
    process.exit(0);
  }
  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    Object.assign(process.env, told);
    const ending = await end(run, process.env);
    for (const name of Object.keys(told)) delete process.env[name];
    writeSync(1, JSON.stringify(ending) + "\n");
  }
}

async function end(run, told) {
  try {
    const ending = await run(new Job(told));
    if (ending === undefined) return { ending: "done" };
    return typeof ending === "object" ? ending : { native: String(ending) };
  } catch (error) {
    console.error(error);
    return { native: error.name ?? "Error", error: String(error.message ?? error).slice(0, 500) };
  }
}

async function http(url, body) {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await fetch(url, body === undefined ? {} : options)).json();
}
