// Free play: choose a game, play it, play again. A reload continues the current game.

import { browserStorage, getJson, postJson } from "./api.js";
import { byId, element, options, showError } from "./dom.js";
import { Game } from "./game.js";
import { dialog } from "./view.js";
import { addScore, describeHiding, describeSearch, scoresOf, tally } from "./scores.js";
import { opponentLabel, roomTypeLabel } from "./words.js";

const ANY = "any";
const NAMED = "named";
const form = byId("form");
let choices = null; // What the server offers.
let game = null;

/** The room menu: any room, the rooms grouped by type, a room by name. */
function roomOptions(scenes) {
  const groups = [...new Set(scenes.map(({ type }) => type))].map((type) => {
    const rooms = scenes.filter((scene) => scene.type === type).map(({ scene }) => [scene, scene]);
    return element("optgroup", { label: roomTypeLabel(type) }, ...options(rooms));
  });
  return [...options([[ANY, "Any room"]]), ...groups, ...options([[NAMED, "Generated room, by name"]])];
}

/** Fills the opponent menu for the chosen role. */
function updateOpponents() {
  const seeking = form.role.value === "seek";
  byId("against").textContent = seeking ? "Hider" : "Seeker";
  const names = seeking ? choices.hiders : choices.seekers;
  form.opponent.replaceChildren(...options(names.map((name) => [name, opponentLabel(name)])));
}

async function setup() {
  game?.close();
  game = null;
  browserStorage.set("trial", null);
  show("setup");
  try {
    choices ??= await getJson("/api/options");
  } catch (error) {
    showError(byId("error"), error);
    return;
  }
  showError(byId("error"), null);
  if (!form.goal.options.length) {
    form.goal.replaceChildren(...options(choices.goals.map((goal) => [goal, goal])));
    form.scene.replaceChildren(...roomOptions(choices.scenes));
    form.role.value = location.hash === "#hide" ? "hide" : "seek";
  }
  updateOpponents();
  updateTally();
}

/** What the person has scored so far in the chosen role. */
function updateTally() {
  const scores = scoresOf(form.role.value);
  byId("tally").hidden = !scores.games;
  byId("tally").textContent = scores.games ? tally(form.role.value, scores) : "";
}

async function start() {
  const { scenes } = choices;
  const chosen = form.scene.value;
  const scene = chosen === ANY ? scenes[Math.floor(Math.random() * scenes.length)].scene
    : chosen === NAMED ? form.named.value.trim() : chosen;
  const body = { role: form.role.value, scene, goal: form.goal.value, opponent: form.opponent.value };
  const { trial } = await postJson("/api/play", body);
  browserStorage.set("trial", trial);
  play(trial);
  byId("game").focus();
}

function play(trial) {
  show("game");
  game = new Game(byId("game"), trial, finished);
}

function finished(result, { kind }) {
  browserStorage.set("trial", null); // Coming back later starts a new game.
  const { found, record, score } = result;
  const scores = addScore(kind, score);
  const seeking = kind === "seek";
  const title = seeking ? (found ? "Found!" : "Given up") : found ? "The seeker found it" : "The seeker did not find it";
  const again = element("button", { type: "button", className: "primary" }, "Play again");
  again.addEventListener("click", setup);
  const watch = record ? element("a", { className: "button", href: `/watch#${record}` }, "Watch the game") : "";
  return dialog(title, "",
    element("p", { className: "score" }, element("strong", {}, score), " of 100 points"),
    ...(seeking ? describeSearch(result) : describeHiding(result)).map((text) => element("p", {}, text)),
    scores.games > 1 ? element("p", {}, tally(kind, scores)) : "",
    element("div", { className: "row" }, again, watch));
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
for (const radio of form.role) {
  radio.addEventListener("change", () => {
    updateOpponents();
    updateTally();
  });
}
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  try {
    await start();
  } catch (error) {
    showError(byId("error"), error);
  } finally {
    button.disabled = false;
  }
});
byId("leave").addEventListener("click", setup);

const current = browserStorage.get("trial");
if (current) play(current);
else setup();
