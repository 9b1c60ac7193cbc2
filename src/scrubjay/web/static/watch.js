// Watching: choose a record, wait for its replay, and show it.

import { getJson, postJson, postText, sleep } from "./api.js";
import { byId, element, options, showError } from "./dom.js";
import { Replay } from "./replay.js";
import { count, opponentLabel } from "./words.js";

const POLL_MS = 300;
const MAX_LINES = 500; // Listed of an opened file.
let replay = null;
let showing = 0;

async function arrive() {
  const number = (showing += 1);
  replay?.close();
  replay = null;
  showError(byId("error"), null);
  const record = location.hash.slice(1);
  byId("leave").hidden = !record;
  try {
    if (record) await watch(record, () => number === showing);
    else await choose();
  } catch (error) {
    show(null);
    showError(byId("error"), error);
  }
}

/** Waits for a replay and shows it, unless another page was opened meanwhile. */
async function watch(record, isCurrent) {
  show("waiting");
  const address = `/api/records/${encodeURIComponent(record)}`;
  for (;;) {
    const answer = await getJson(address);
    if (!isCurrent()) return;
    if (answer.failed) throw new Error(answer.failed);
    if (answer.ready) {
      show("replay");
      replay = new Replay(byId("replay"), address, answer);
      return;
    }
    byId("progress").value = answer.progress;
    await sleep(POLL_MS);
  }
}

async function choose() {
  show("choose");
  const [choices, { records }] = await Promise.all([getJson("/api/options"), getJson("/api/records")]);
  const form = byId("form");
  form.goal.replaceChildren(...options(choices.goals.map((goal) => [goal, goal])));
  form.scene.replaceChildren(...options(choices.scenes.map(({ scene }) => [scene, scene])));
  const playerOptions = (names) => options(names.map((name) => [name, opponentLabel(name)]));
  form.hider.replaceChildren(...playerOptions(choices.hiders.filter((name) => name !== "somewhere")));
  form.seeker.replaceChildren(...playerOptions(choices.seekers));
  byId("listed").hidden = !records.length;
  const items = records.map((entry) => element("li", {}, element("a", { href: `#${entry.record}` }, ...describe(entry))));
  byId("listed").querySelector("ul").replaceChildren(...items);
}

/** One line about a record. */
function describe({ scene, goal, hider, seeker, steps, found }) {
  const players = hider || seeker ? `${hider || "?"} vs. ${seeker || "?"} · ` : "";
  const outcome = found === undefined || found === null ? "" : found ? " · found" : " · not found";
  return [element("strong", {}, `${goal} in ${scene}`),
    element("span", { className: "quiet" }, `${players}${count(steps, "step")}${outcome}`)];
}

/** Lists the records of a file; opens a single one at once. */
async function openFile(file) {
  const lines = (await file.text()).split("\n").filter((line) => line.trim());
  const entries = lines.slice(0, MAX_LINES).map((line) => {
    try {
      return { line, record: JSON.parse(line) };
    } catch {
      return null;
    }
  }).filter((entry) => entry?.record && typeof entry.record === "object");
  if (!entries.length) throw new Error("There is no record in this file: every line should be a game as JSON.");
  const upload = async ({ line }) => (location.hash = (await postText("/api/records", line)).record);
  if (lines.length === 1) {
    await upload(entries[0]);
    return;
  }
  byId("inFile").replaceChildren(...entries.map((entry) => {
    const { scene, goal, players, actions, found } = entry.record;
    const facts = { scene, goal, ...players, steps: actions?.length ?? 0, found };
    const button = element("button", { type: "button" }, ...describe(facts));
    button.addEventListener("click", () => attempt(() => upload(entry)));
    return element("li", {}, button);
  }));
}

/** Runs a task and shows its error if it fails. */
async function attempt(task) {
  showError(byId("error"), null);
  try {
    await task();
  } catch (error) {
    showError(byId("error"), error);
  }
}

function show(part) {
  for (const id of ["choose", "waiting", "replay"]) byId(id).hidden = id !== part;
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(async () => {
    const body = Object.fromEntries(new FormData(event.target));
    location.hash = (await postJson("/api/games", body)).record;
  });
});
byId("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) attempt(() => openFile(file));
});
byId("leave").addEventListener("click", () => (location.hash = ""));
window.addEventListener("hashchange", arrive);
arrive();
