// A participant's way through a study: consent, instructions, practice, trials, and a code in the end.

import { ask, kept, tell } from "./api.js";
import { byId, complain, element, fill, paragraphs } from "./dom.js";
import { Game } from "./game.js";
import { message } from "./view.js";
import { ACTIONS, count, shownKey } from "./words.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const parameters = Object.fromEntries(new URLSearchParams(location.search));
/** A participant is this browser's, for this link. */
const mine = `study.${name}${location.search}`;
const KEYS = {
  seek: ["MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "Crouch", "CloseObjects", "ClaimVisible"],
  hide: ["MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "Crouch", "CloseObjects", "HideHere",
         "DropObject", "PickUp", "Walk", "ReadyForSeeker"],
};
let token = null;
let game = null;

async function join() {
  token = (await tell(`/api/studies/${encodeURIComponent(name)}/join`, { parameters })).participant;
  kept.set(mine, token);
}

async function arrive() {
  token = kept.get(mine);
  if (token) {
    try {
      show(await ask("/api/participant", token));
      return;
    } catch (error) {
      if (error.status !== 401) throw error;
    }
  }
  await join();
  show(await ask("/api/participant", token));
}

/** Goes on, and shows where that leads; if it was out of turn, where the participant is. */
async function onward(what) {
  try {
    show(await tell("/api/participant", { do: what }, token));
  } catch (error) {
    if (error.status !== 409) throw error;
    show(await ask("/api/participant", token));
  }
}

/** Runs something that may fail, and says so if it does. */
async function trying(doing) {
  complain(byId("trouble"), null);
  try {
    await doing();
  } catch (error) {
    const wait = error.code === "preview";
    if (wait) fill(byId("page"), element("h1", {}, "A preview"), element("p", {}, error.message));
    else complain(byId("trouble"), error);
  }
}

function button(text, doing, tone = "") {
  const made = element("button", { type: "button", className: tone }, text);
  made.addEventListener("click", async () => {
    made.disabled = true;
    await trying(doing);
    made.disabled = false;
  });
  return made;
}

const go = (text, what, tone) => button(text, () => onward(what), tone);

function show(status) {
  game?.close();
  game = null;
  document.title = `${status.title} · Scrubjay`;
  const under = status.practice ?? status.trial;
  byId("page").hidden = Boolean(under);
  byId("game").hidden = !under;
  byId("leave").hidden = !status.practice;
  document.body.dataset.part = under ? "game" : status.status;
  byId("where").textContent = status.practice ? "Practice"
    : status.status === "trials" ? `Trial ${Math.min(status.done + 1, status.of)} of ${status.of}` : "";
  if (under) game = new Game(byId("game"), under, (result) => finished(result, status));
  else fill(byId("page"), element("h1", {}, status.title), ...PAGES[status.status](status));
  window.scrollTo(0, 0);
}

const PAGES = {
  consent: ({ consent }) => [
    ...paragraphs(consent),
    element("div", { className: "row" }, go("I agree", "agree", "primary"), go("I do not agree", "decline")),
  ],
  instructions: ({ instructions, kind, of }) => [
    ...paragraphs(instructions),
    keys(kind),
    element("p", { className: "quiet" }, `There ${of === 1 ? "is 1 trial" : `are ${of} trials`}. Practise as long as you
      like first. You can close the page at any time and come back by the same link: you go on at the same step.`),
    element("div", { className: "row" }, go("Practise", "practise", "primary"), go("Begin the trials", "begin")),
  ],
  trials: ({ done, of }) => [
    element("p", {}, done ? `${done} of ${of} done.` : `${count(of, "trial")} to come.`),
    element("progress", { max: of, value: done }),
    element("div", { className: "row" }, go(done ? "Next trial" : "Start the first trial", "next", "primary"),
      go("Practise again", "practise")),
  ],
  done: ({ code, return: back }) => [
    element("p", {}, "Thank you for taking part. Your completion code is"),
    element("p", { className: "code", id: "code" }, code),
    element("div", { className: "row" }, copying(code),
      back ? element("a", { className: "button primary", href: back, rel: "noreferrer" }, "Finish") : "", ...anew()),
  ],
  declined: () => [
    element("p", {}, "You do not take part. You may close this page."),
    element("div", { className: "row" }, ...anew()),
  ],
};

/** The keys that matter, in a table. */
function keys(kind) {
  const rows = KEYS[kind].map((action) => element("tr", {},
    element("td", {}, ...ACTIONS[action].keys.flatMap((key) => [element("kbd", {}, shownKey(key)), " "])),
    element("td", {}, action === "Crouch" ? "Crouch, or stand up" : ACTIONS[action].label)));
  const click = element("tr", {}, element("td", {}, "Click or tap"), element("td", {}, "Open what is there"));
  return element("details", { className: "keys", open: true }, element("summary", {}, "Keys and buttons"),
    element("table", {}, ...rows, click));
}

function copying(code) {
  const made = button("Copy the code", async () => {
    try {
      await navigator.clipboard.writeText(code);
      made.textContent = "Copied";
    } catch {
      // No clipboard without HTTPS: the code is selected instead.
      getSelection().selectAllChildren(byId("code"));
    }
  });
  return made;
}

/** Who came without a platform's parameters may leave the computer to the next person. */
function anew() {
  if (location.search) return [];
  return [button("Somebody else takes part here", async () => {
    await join();
    show(await ask("/api/participant", token));
  })];
}

/** Over the last picture of a trial or a practice. */
function finished({ found, steps }, { practice, kind }) {
  const title = kind === "hide" ? "Hidden" : found ? "Found!" : "Given up";
  const text = `You took ${count(steps, "step")}.`;
  const back = button("Back to the study", leave, "");
  const next = practice ? [go("Practise again", "practise", "primary"), back] : [go("Go on", "next", "primary")];
  return message(title, text, element("div", { className: "row" }, ...next));
}

/** Ends a practice: its page comes back, and the trials begin when the participant says so. */
async function leave() {
  const status = await ask("/api/participant", token);
  show({ ...status, practice: null });
}

byId("leave").addEventListener("click", () => trying(leave));
trying(arrive);
