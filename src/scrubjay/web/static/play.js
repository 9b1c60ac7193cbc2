// Free play: choose a game, play it, and play another one. A game that was begun goes on after a reload.

import { ask, kept, tell } from "./api.js";
import { byId, choices, complain, element, fill } from "./dom.js";
import { Game } from "./game.js";
import { message } from "./view.js";
import { count, opponentText, roomTypeText } from "./words.js";

const ANY = "any";
const NAMED = "named";
const form = byId("form");
let options = null;
let game = null;

/** Rooms as a select's groups. */
function rooms(scenes) {
  const groups = [...new Set(scenes.map(({ type }) => type))].map((type) => {
    const of = scenes.filter((scene) => scene.type === type).map(({ scene }) => [scene, scene]);
    return element("optgroup", { label: roomTypeText(type) }, ...choices(of));
  });
  return [...choices([[ANY, "Any room"]]), ...groups, ...choices([[NAMED, "Another room, by its name"]])];
}

/** Who plays against the person, as their role asks. */
function opponents() {
  const seeks = form.role.value === "seek";
  byId("against").textContent = seeks ? "Hidden by" : "Sought by";
  fill(form.opponent, ...choices((seeks ? options.hiders : options.seekers).map((name) => [name, opponentText(name)])));
}

async function setup() {
  game?.close();
  game = null;
  kept.set("trial", null);
  show("setup");
  try {
    options ??= await ask("/api/options");
  } catch (error) {
    complain(byId("trouble"), error);
    return;
  }
  complain(byId("trouble"), null);
  if (!form.goal.options.length) {
    fill(form.goal, ...choices(options.goals.map((goal) => [goal, goal])));
    fill(form.scene, ...rooms(options.scenes));
    form.role.value = location.hash === "#hide" ? "hide" : "seek";
  }
  opponents();
}

async function begin() {
  const { scenes } = options;
  const chosen = form.scene.value;
  const scene = chosen === ANY ? scenes[Math.floor(Math.random() * scenes.length)].scene
    : chosen === NAMED ? form.named.value.trim() : chosen;
  const asked = { role: form.role.value, scene, goal: form.goal.value, opponent: form.opponent.value };
  const { trial } = await tell("/api/play", asked);
  kept.set("trial", trial);
  play(trial);
}

function play(trial) {
  show("game");
  game = new Game(byId("game"), trial, finished);
}

function finished({ found, steps, record }, { kind }) {
  const mine = kind === "seek";
  const title = mine ? (found ? "Found!" : "Given up") : found ? "The seeker found it" : "The seeker did not find it";
  const again = element("button", { type: "button", className: "primary" }, "Play again");
  again.addEventListener("click", setup);
  const watch = record ? element("a", { className: "button", href: `/watch#${record}` }, "Watch the game") : "";
  return message(title, `You took ${count(steps, "step")}.`, element("div", { className: "row" }, again, watch));
}

function show(part) {
  for (const id of ["setup", "game"]) byId(id).hidden = id !== part;
  byId("leave").hidden = part !== "game";
  document.body.dataset.part = part;
}

form.addEventListener("change", () => {
  const named = form.scene.value === NAMED;
  byId("generated").hidden = !named;
  form.named.required = named;
  form.named.disabled = !named;
});
for (const radio of form.role) radio.addEventListener("change", opponents);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  try {
    await begin();
  } catch (error) {
    complain(byId("trouble"), error);
  } finally {
    button.disabled = false;
  }
});
byId("leave").addEventListener("click", setup);

const begun = kept.get("trial");
if (begun) play(begun);
else setup();
