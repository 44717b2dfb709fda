"use strict";
const byId = (name) => document.getElementById(name);
const transcripts = JSON.parse(byId("transcripts").textContent);
const table = document.querySelector("table.cells");
const BEFORE = 4;

function filter() {
  const name = byId("by-name").value.trim().toLowerCase();
  const api = byId("by-api").value;
  const one = byId("by-behaviour").value;
  let shown = 0;
  for (const row of document.querySelectorAll("tr[data-name], dl > div[data-name]")) {
    const fits = row.dataset.name.toLowerCase().includes(name) && (!api || !row.dataset.api || row.dataset.api === api);
    row.hidden = !fits;
    row.style.display = fits ? "" : "none";
    if (fits && table.contains(row)) shown += 1;
  }
  for (const row of table.rows) {
    for (let place = BEFORE; place < row.cells.length; place += 1) {
      row.cells[place].style.display = one === "" || Number(one) === place - BEFORE ? "" : "none";
    }
  }
  byId("counted").textContent = `${shown} harnesses`;
  const meaning = byId("meaning-of-one");
  meaning.hidden = one === "";
  if (one !== "") meaning.textContent = document.querySelectorAll("#meanings dd")[Number(one)].textContent;
  const told = new URLSearchParams();
  if (name) told.set("name", name);
  if (api) told.set("api", api);
  if (one !== "") told.set("behaviour", byId("by-behaviour").selectedOptions[0].textContent);
  history.replaceState(null, "", told.size ? `#?${told}` : location.hash.startsWith("#?") ? "#" : location.hash || "#");
}

function begin() {
  if (!location.hash.startsWith("#?")) return;
  const told = new URLSearchParams(location.hash.slice(2));
  byId("by-name").value = told.get("name") || "";
  byId("by-api").value = told.get("api") || "";
  const wanted = [...byId("by-behaviour").options].find((option) => option.textContent === told.get("behaviour"));
  byId("by-behaviour").value = wanted ? wanted.value : "";
}

table.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const row = button.closest("tr");
  const behaviour = button.querySelector(".what").textContent.trim().replaceAll(" ", "-");
  byId("shown-title").textContent = `${row.dataset.name}: ${behaviour}`;
  byId("shown-outcome").textContent = `${button.title}, ${button.querySelector("b").textContent === "✓" ? "correct" : "not correct"}`;
  const place = button.dataset.place;
  byId("shown-text").textContent = place === "" ? "No transcript was kept." : transcripts[Number(place)];
  byId("shown-command").textContent = `evalkit harnesses run ${row.dataset.name} ${behaviour}`;
  byId("shown").showModal();
});
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("input", filter);
begin();
filter();
