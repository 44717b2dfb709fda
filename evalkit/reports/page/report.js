"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const scenes = JSON.parse(document.getElementById("scenes").textContent);
  const PAGE = 100;

  // All text goes in as text: nothing of a run is ever parsed as HTML.
  const el = (tag, props = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child != null && child !== ""));
    return node;
  };
  const number = (value) => value.toLocaleString("en");
  const flagsOf = (bits) => data.flags.filter((_, place) => bits & (1 << place));

  // Sorting

  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("thead tr:last-child th").forEach((head, place) => {
      const words = head.textContent;
      const holder = head.querySelector("span") ?? head;
      holder.replaceChildren(el("button", { type: "button", onclick: () => sortBy(table, head, place) }, words));
    });
  }
  function sortBy(table, head, place) {
    const rising = head.getAttribute("aria-sort") === "descending";
    for (const other of table.querySelectorAll("thead [aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[place];
      const value = cell.dataset.sort ?? cell.textContent;
      return value !== "" && !isNaN(value) ? Number(value) : value;
    };
    const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
    const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a), key(b)) * (rising ? 1 : -1));
    table.tBodies[0].append(...rows);
  }

  // The list of cases

  const form = document.getElementById("filters");
  const body = document.querySelector("#cases tbody");
  const more = document.getElementById("more");
  const counted = document.getElementById("counted");
  let cases = [];
  let found = [];
  let shown = 0;

  const unpack = ([scenario, contender, cell, seed, episodes, outcome, flags, turns, cause]) => ({
    scenario, contender, cell, seed, episodes, flags, turns,
    outcome: data.outcomes[outcome],
    cause: data.causes[cause],
    name: data.scenarios[scenario][0],
    family: data.families[data.scenarios[scenario][1]],
    checks: data.scenarios[scenario][2],
  });

  function start(packed) {
    cases = packed.map(unpack);
    const fill = (name, values) => {
      for (const value of values) form.elements[name].append(el("option", { value }, value));
    };
    const distinct = (pick) => [...new Set(cases.map(pick))].sort();
    const used = new Set(cases.map((one) => one.contender));
    data.contenders.forEach((name, place) => {
      if (used.has(place)) form.elements.contender.append(el("option", { value: place }, name));
    });
    fill("family", distinct((one) => one.family));
    fill("checks", distinct((one) => one.checks));
    fill("outcome", distinct((one) => one.outcome));
    fill("fault", data.flags.filter((_, place) => cases.some((one) => one.flags & (1 << place))));
    form.hidden = cases.length === 0;
    form.addEventListener("input", () => { filter(); keepAddress(); });
    form.addEventListener("reset", () => setTimeout(() => { filter(); keepAddress(); }));
    form.addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => show(PAGE));
    filter();
    window.addEventListener("hashchange", fromHash);
    fromHash();
  }

  // The filter in the address: #failures?strategy=gate&fault=false%20done
  const address = () => {
    const wants = Object.entries(Object.fromEntries(new FormData(form))).filter(([, value]) => value !== "");
    const said = wants.map(([name, value]) => (name === "contender" ? ["strategy", data.contenders[value]] : [name, value]));
    return "#failures" + (said.length ? "?" + said.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&") : "");
  };
  const keepAddress = () => history.replaceState(null, "", location.pathname + location.search + address());
  function fromAddress() {
    for (const control of form.querySelectorAll("input, select")) control.value = "";
    for (const [name, value] of new URLSearchParams(location.hash.slice("#failures?".length))) {
      const control = form.elements[name === "strategy" ? "contender" : name];
      if (!control) continue;
      const wanted = name === "strategy" ? String(data.contenders.indexOf(value)) : value;
      control.value = wanted;
      // What no case has was no choice of the list: nothing is found then, and all would be a wrong answer.
      if (control.value !== wanted) {
        control.append(el("option", { value: wanted }, value));
        control.value = wanted;
      }
    }
    filter();
    document.getElementById("failures").scrollIntoView();
  }

  function filter() {
    const wants = Object.fromEntries(new FormData(form));
    const fault = wants.fault ? data.flags.indexOf(wants.fault) : null;
    // Words in quotes stand together.
    const words = (wants.words.toLowerCase().match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', "")).filter(Boolean);
    found = cases.filter((one) => {
      if (wants.contender !== "" && one.contender !== Number(wants.contender)) return false;
      if (wants.family && one.family !== wants.family) return false;
      if (wants.checks && one.checks !== wants.checks) return false;
      if (wants.outcome && one.outcome !== wants.outcome) return false;
      if (fault !== null && (fault < 0 || !(one.flags & (1 << fault)))) return false;
      const text = `${one.name}\n${data.contenders[one.contender]}\n${one.family}\n${one.cause}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const episodes = found.reduce((sum, one) => sum + one.episodes, 0);
    counted.textContent = cases.length === 0 ? "Every episode is correct." :
      `${number(found.length)} of ${number(cases.length)} cases, ${number(episodes)} episodes`;
    body.replaceChildren();
    shown = 0;
    show(PAGE);
  }

  function show(count) {
    body.append(...found.slice(shown, shown + count).map((one, offset) => rowOf(one, shown + offset)));
    shown = Math.min(found.length, shown + count);
    more.hidden = shown >= found.length;
    more.textContent = `Show ${Math.min(PAGE, found.length - shown)} more of ${number(found.length - shown)}`;
  }

  const rowOf = (one, place) => el("tr", {},
    el("th", { scope: "row" },
      el("button", { type: "button", class: "link", "data-place": place, onclick: () => openCase(one) }, one.name)),
    cellOf("strategy", data.contenders[one.contender]), cellOf("family", one.family.replaceAll("_", " ")),
    cellOf("checks", one.checks), cellOf("outcome", one.outcome), cellOf("faults", flagsOf(one.flags).join(", ")),
    cellOf("turns", String(one.turns), "number"), cellOf("episodes", number(one.episodes), "number"));
  // On a phone there is no head above: each cell has its own.
  const cellOf = (head, words, kind = "") => el("td", { class: kind, "data-head": head }, words);

  // Scenes: in the page, or in files beside it

  const waiting = {};
  window.evalkitScene = (scenario, scene) => { scenes[scenario] = scene; };
  function sceneOf(scenario) {
    if (scenes[scenario]) return Promise.resolve(scenes[scenario]);
    if (!data.files.includes(scenario)) return Promise.resolve(null);
    return (waiting[scenario] ??= load(`transcripts/${scenario}.js`).then(() => scenes[scenario] ?? null));
  }
  const load = (src) => new Promise((resolve) => {
    document.head.append(el("script", { src, onload: resolve, onerror: resolve }));
  });

  // One episode, or two side by side

  const dialog = document.getElementById("episode");
  dialog.addEventListener("close", keepAddress);

  const openCase = (one) => openEpisode({ scenario: one.scenario, contender: one.contender, seed: one.seed, case: one });

  async function openEpisode(at) {
    const scene = await sceneOf(at.scenario);
    const title = data.scenarios[at.scenario][0];
    const key = (contender) => `${contender}:${at.seed}`;
    const mine = scene?.episodes[key(at.contender)];
    if (scene && mine && at.beside != null && !scene.episodes[key(at.beside)]) at.beside = null;
    const name = data.contenders[at.contender];
    const hash = [title, name, at.seed, ...(at.beside != null ? [data.contenders[at.beside]] : [])];
    history.replaceState(null, "", "#case=" + hash.map(encodeURIComponent).join("/"));
    const go = (change) => openEpisode({ ...at, ...change });
    const bar = el("div", { class: "bar" },
      el("h2", { id: "episode-title", tabindex: "-1" }, title),
      el("div", { class: "controls" }, ...(mine ? choices(at, scene, go) : []), ...neighbours(at),
        el("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close")));
    const content = el("div", { class: "body", tabindex: "0" });
    if (!mine) content.append(missing(at));
    else if (at.beside == null) content.append(about(scene), alone(scene, mine, name));
    else content.append(about(scene), beside(scene, [mine, scene.episodes[key(at.beside)]], [name, data.contenders[at.beside]]));
    dialog.replaceChildren(bar, content);
    if (!dialog.open) dialog.showModal();
    bar.firstChild.focus();
    // It opens at the decision: where two part, else where it went wrong first, else the end.
    const decision = content.querySelector("#parting") ?? content.querySelector(".step.wrong") ?? (mine && !mine.correct ? content.querySelector(".step.ended") : null);
    if (decision) {
      content.scrollTop = decision.getBoundingClientRect().top - content.getBoundingClientRect().top - content.clientHeight / 4;
      decision.classList.add("decision");
    }
  }

  function choices(at, scene, go) {
    const there = Object.keys(scene.episodes).map((key) => key.split(":").map(Number));
    const names = [...new Set(there.filter(([, seed]) => seed === at.seed).map(([contender]) => contender))];
    const seeds = [...new Set(there.map(([, seed]) => seed))];
    const option = (value, text, chosen) => el("option", { value, selected: value === chosen }, text);
    const said = (place) => {
      const episode = scene.episodes[`${place}:${at.seed}`];
      return `${data.contenders[place]} (${episode.correct ? "correct" : episode.outcome})`;
    };
    const pick = (label, name, options, change) => el("label", {}, label + " ",
      el("select", { name, onchange: (event) => change(event.target.value) }, ...options));
    const found = [
      pick("Strategy", "strategy", names.map((place) => option(place, said(place), at.contender)),
        (value) => go({ contender: Number(value), case: null })),
      pick("beside", "beside", [option("", "nothing", at.beside ?? ""),
        ...names.filter((place) => place !== at.contender).map((place) => option(place, said(place), at.beside))],
        (value) => go({ beside: value === "" ? null : Number(value) })),
    ];
    if (seeds.length > 1) {
      found.push(pick("seed", "seed", seeds.map((seed) => option(seed, String(seed), at.seed)),
        (value) => go({ seed: Number(value), case: null })));
    }
    return found;
  }

  function neighbours(at) {
    const place = at.case ? found.indexOf(at.case) : -1;
    if (place < 0) return [];
    const step = (to, text) => el("button", { type: "button", disabled: !found[to], onclick: () => openCase(found[to]) }, text);
    return [step(place - 1, "← Previous"), step(place + 1, "Next →")];
  }

  function missing(at) {
    const cell = at.case?.cell ?? "";
    const words = at.case ? [at.case.outcome, flagsOf(at.case.flags).join(", "), at.case.cause && `fell for: ${at.case.cause}`] : [];
    return el("div", {}, el("p", {}, words.filter(Boolean).join("; ")),
      data.unkept[at.contender] ? el("p", {}, data.unkept[at.contender])
        : el("p", {}, "This transcript is not in the report. It is shown by: ", el("code", {}, `evalkit show ${data.folder} ${cell}`)));
  }

  function about(scene) {
    return el("div", { class: "about" }, scene.summary && el("p", {}, scene.summary),
      scene.prompt && el("p", { class: "task" }, el("em", {}, "task"), scene.prompt));
  }

  function headOf(episode, name) {
    const facts = `${episode.turns} turns, ${number(episode.tokens)} tokens` + (episode.native ? `, native signal ${episode.native}` : "");
    const flags = flagsOf(episode.flags);
    return el("div", { class: "side-head" },
      el("p", {}, el("strong", {}, name), " ", el("span", { class: episode.correct ? "ok" : "fail" }, episode.outcome + (episode.correct ? ", correct" : `, not correct: ${episode.why}`))),
      el("p", {}, facts),
      flags.length ? el("p", {}, flags.join(", ")) : null,
      episode.causes.length && !episode.correct ? el("p", {}, `fell for: ${episode.causes.join("; ")}`) : null,
      episode.note ? el("p", { class: "fail" }, episode.note) : null);
  }

  const SERVER = "server call";
  function stepOf(scene, episode, place, who) {
    const [turn, at, answer] = episode.steps[place];
    const [stop, native, claim, blocks, results, events] = scene.turns[at];
    const [action, says, verdict, met, settled, held] = scene.answers[answer];
    const before = place > 0 ? scene.answers[episode.steps[place - 1][2]][5] : 0;
    const last = place === episode.steps.length - 1;
    const label = native ? `${stop} (label ${native})` : stop;
    const node = el("section", { class: `step${held ? " complete" : ""}${last ? " ended" : ""}${last && !episode.correct ? " failed" : ""}`, "aria-label": `${who ? who + ", " : ""}${turn ? "turn " + turn : "no turn"}` });
    for (const event of events) node.append(el("p", { class: "event" }, event));
    const share = scene.items ? (100 * settled) / scene.items : 0;
    node.append(el("div", { class: "turn" }, el("span", {}, turn ? `Turn ${turn}` : "No turn"), el("small", {}, label),
      claim !== "none" ? el("small", {}, `claims ${claim}`) : null,
      el("span", { class: "meter", role: "img", "aria-label": `${settled} of ${scene.items} items settled` },
        el("b", {}, el("i", { style: `width:${share}%` })), el("span", { "aria-hidden": "true" }, `${settled}/${scene.items}`))));
    for (const [kind, text] of blocks) {
      node.append(el("div", { class: `block ${kind === SERVER ? "server" : kind}` }, el("em", {}, kind), text || "(nothing)"));
    }
    if (!blocks.length) node.append(el("div", { class: "block text" }, el("em", {}, "nothing"), "(no content)"));
    for (const [text, error] of results) {
      node.append(el("div", { class: `block ${error ? "error" : "result"}` }, el("em", {}, error ? "error" : "result"), text));
    }
    if (turn && turn === episode.harm) node.classList.add("wrong");
    // The decision, against what was true when it was made.
    if (met !== null) {
      const right = Boolean(met) === Boolean(held);
      if (!right && !episode.correct) node.classList.add("wrong");
      const words = `judged ${met ? "done" : "not done"}${right ? "" : held ? ", but it was" : ", but it was not"}: `;
      node.append(el("p", { class: "verdict" }, el("span", { class: right ? "ok" : "fail" }, words), verdict));
    }
    if (action && (action !== "went on" || says)) node.append(el("p", { class: "acted" }, `→ ${action}${says ? ": " + says : ""}`));
    if (held && !before) node.append(el("span", { class: "mark good" }, "The work is complete from here"));
    if (!held && before) node.append(el("span", { class: "mark bad" }, "No longer complete"));
    if (last) {
      const left = episode.open.length ? `; not settled: ${episode.open.join(", ")}` : "";
      node.append(el("span", { class: `mark ${episode.correct ? "good" : "bad"}` }, `The run stopped here: ${episode.outcome}${left}`));
    }
    return node;
  }

  function alone(scene, episode, name) {
    return el("div", { class: "sides" }, headOf(episode, name), ...episode.steps.map((_, place) => stepOf(scene, episode, place)));
  }

  // Two runs are the same up to the first step that differs in turn or in what the harness did about it. Ticks
  // on a checklist are left out: they come of what a harness offers, and say nothing of its decisions.
  function partingOf(scene, [one, other]) {
    const core = (step) => {
      const [stop, native, , blocks, results] = scene.turns[step[1]];
      const ticks = blocks.some(isTick);
      return [stop, native, blocks.filter((block) => !isTick(block)), results.filter(([text]) => !ticks || text !== data.recorded)];
    };
    const act = (step) => JSON.stringify([core(step), scene.answers[step[2]].slice(0, 2)]);
    const most = Math.max(one.steps.length, other.steps.length);
    for (let place = 0; place < most; place++) {
      const [a, b] = [one.steps[place], other.steps[place]];
      if (!a || !b || act(a) !== act(b)) return place;
    }
    return most;
  }

  const isTick = ([kind, text]) => kind === "call" && text.startsWith(data.ticks + " ");

  function beside(scene, pair, names) {
    const parting = partingOf(scene, pair);
    const most = Math.max(pair[0].steps.length, pair[1].steps.length);
    const grid = el("div", { class: "sides two" }, headOf(pair[0], names[0]), headOf(pair[1], names[1]));
    const both = (place) => pair.map((episode, side) => (episode.steps[place] ? stepOf(scene, episode, place, names[side]) : el("div")));
    if (parting > 0) {
      const inner = el("div", { class: "sides two" });
      for (let place = 0; place < parting; place++) inner.append(...both(place));
      const words = parting === 1 ? "The first step is the same in both" : `The first ${parting} steps are the same in both, ticks on a checklist apart`;
      grid.append(el("details", { class: "same" }, el("summary", {}, words), inner));
    }
    if (parting < most) {
      const turn = (pair[0].steps[parting] ?? pair[1].steps[parting])[0];
      grid.append(el("span", { class: "mark parted", id: "parting" }, turn ? `Here they part: turn ${turn}` : "Here they part"));
    } else grid.append(el("span", { class: "mark parted", id: "parting" }, "The two do the same throughout"));
    for (let place = parting; place < most; place++) grid.append(...both(place));
    return grid;
  }

  function fromHash() {
    if (location.hash.startsWith("#failures?")) fromAddress();
    if (!location.hash.startsWith("#case=")) return;
    const [title, name, seed, other] = location.hash.slice(6).split("/").map(decodeURIComponent);
    const scenario = data.scenarios.findIndex((one) => one[0] === title);
    const contender = data.contenders.indexOf(name);
    if (scenario < 0 || contender < 0) return;
    const one = found.find((other) => other.scenario === scenario && other.contender === contender && other.seed === Number(seed));
    const besideOf = other === undefined ? null : data.contenders.indexOf(other);
    openEpisode({ scenario, contender, seed: Number(seed), beside: besideOf, case: one ?? null });
  }

  async function unpackAll(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const found = JSON.parse(await new Response(stream).text());
    Object.assign(scenes, found.scenes);
    start(found.cases);
  }

  const packed = document.getElementById("packed");
  if (packed) unpackAll(packed.textContent);
  else if (data.cases) start(data.cases);
  else {
    window.evalkitCases = start;
    load("transcripts/cases.js");
  }
})();
