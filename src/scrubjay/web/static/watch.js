// Watching: choose a record, wait until it is replayed, and look at it.

import { ask, pause, tell, tellText } from "./api.js";
import { byId, choices, complain, element, fill } from "./dom.js";
import { Replay } from "./replay.js";
import { count, opponentText } from "./words.js";

const POLL_MS = 300;
const MOST_LINES = 500; // Of a file that is offered to choose from.
let replay = null;
let showing = 0;

async function arrive() {
  const number = (showing += 1);
  replay?.close();
  replay = null;
  complain(byId("trouble"), null);
  const record = location.hash.slice(1);
  byId("leave").hidden = !record;
  try {
    if (record) await watch(record, () => number === showing);
    else await choose();
  } catch (error) {
    show(null);
    complain(byId("trouble"), error);
  }
}

/** Waits for a record, and shows it, as long as it is still wanted. */
async function watch(record, wanted) {
  show("waiting");
  const address = `/api/records/${encodeURIComponent(record)}`;
  for (;;) {
    const told = await ask(address);
    if (!wanted()) return;
    if (told.failed) throw new Error(told.failed);
    if (told.ready) {
      show("replay");
      replay = new Replay(byId("replay"), address, told);
      return;
    }
    byId("progress").value = told.progress;
    await pause(POLL_MS);
  }
}

async function choose() {
  show("choose");
  const [options, { records }] = await Promise.all([ask("/api/options"), ask("/api/records")]);
  const form = byId("form");
  fill(form.goal, ...choices(options.goals.map((goal) => [goal, goal])));
  fill(form.scene, ...choices(options.scenes.map(({ scene }) => [scene, scene])));
  const named = (names) => choices(names.map((name) => [name, opponentText(name)]));
  fill(form.hider, ...named(options.hiders.filter((name) => name !== "somewhere")));
  fill(form.seeker, ...named(options.seekers));
  byId("listed").hidden = !records.length;
  const items = records.map((each) => element("li", {}, element("a", { href: `#${each.record}` }, ...described(each))));
  fill(byId("listed").querySelector("ul"), ...items);
}

/** A record in a line. */
function described({ scene, goal, hider, seeker, steps, found }) {
  const players = hider || seeker ? `${hider || "?"} against ${seeker || "?"} · ` : "";
  const outcome = found === undefined || found === null ? "" : found ? " · found" : " · not found";
  return [element("strong", {}, `${goal} in ${scene}`),
    element("span", { className: "quiet" }, `${players}${count(steps, "step")}${outcome}`)];
}

/** Offers the records of a file; a file of one is opened at once. */
async function offer(file) {
  const lines = (await file.text()).split("\n").filter((line) => line.trim());
  const found = lines.slice(0, MOST_LINES).map((line) => {
    try {
      return { line, record: JSON.parse(line) };
    } catch {
      return null;
    }
  }).filter((each) => each?.record && typeof each.record === "object");
  if (!found.length) throw new Error("There is no record in this file: each of its lines should be a game as JSON.");
  const send = async ({ line }) => (location.hash = (await tellText("/api/records", line)).record);
  if (lines.length === 1) {
    await send(found[0]);
    return;
  }
  fill(byId("inFile"), ...found.map((each) => {
    const { scene, goal, players, actions, found: was } = each.record;
    const facts = { scene, goal, ...players, steps: actions?.length ?? 0, found: was };
    const button = element("button", { type: "button" }, ...described(facts));
    button.addEventListener("click", () => trying(() => send(each)));
    return element("li", {}, button);
  }));
}

async function trying(doing) {
  complain(byId("trouble"), null);
  try {
    await doing();
  } catch (error) {
    complain(byId("trouble"), error);
  }
}

function show(part) {
  for (const id of ["choose", "waiting", "replay"]) byId(id).hidden = id !== part;
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const asked = Object.fromEntries(new FormData(event.target));
    location.hash = (await tell("/api/games", asked)).record;
  });
});
byId("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) trying(() => offer(file));
});
byId("leave").addEventListener("click", (event) => {
  event.preventDefault();
  location.hash = "";
});
window.addEventListener("hashchange", arrive);
arrive();
