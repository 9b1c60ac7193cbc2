// A participant's way through a study: consent, questionnaires, instructions, practice, trials, completion code.

import { browserStorage, getJson, postJson } from "./api.js";
import { byId, element, paragraphs, showError } from "./dom.js";
import { Game } from "./game.js";
import { questionnaire } from "./questionnaire.js";
import { dialog } from "./view.js";
import { ACTIONS, count, keyLabel } from "./words.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const parameters = Object.fromEntries(new URLSearchParams(location.search));
/** Where the browser keeps the participant's token: one per link with its parameters. */
const storageKey = `study.${name}${location.search}`;
const KEYS = {
  seek: ["MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "Crouch", "NextOpenable", "OpenChosen",
         "CloseObjects", "ClaimVisible"],
  hide: ["MoveAhead", "MoveLeft", "MoveRight", "RotateLeft", "RotateRight", "Crouch", "NextOpenable", "OpenChosen",
         "CloseObjects", "HideHere", "DropObject", "PickUp", "Walk", "ReadyForSeeker"],
};
/** What keys do, where it differs from the button's label. */
const KEY_LABELS = { Crouch: "Crouch or stand up", NextOpenable: "Choose the next thing to open", OpenChosen: "Open the chosen thing" };
/** Headings for people who cannot take part, by error code. */
const REFUSALS = { preview: "Preview", refused: "You cannot take part" };
/** What people who do not agree are asked to do. */
const RETURN = {
  prolific: "Please return your submission on Prolific by selecting “Stop without completing”.",
  mturk: "Please return the task on Mechanical Turk.",
};
let token = null;
let game = null;
let shown = false;

async function join() {
  token = (await postJson(`/api/studies/${encodeURIComponent(name)}/join`, { parameters })).participant;
  browserStorage.set(storageKey, token);
}

async function arrive() {
  token = browserStorage.get(storageKey);
  if (token) {
    try {
      show(await getJson("/api/participant", token));
      return;
    } catch (error) {
      if (error.status !== 401) throw error;
    }
  }
  await join();
  show(await getJson("/api/participant", token));
}

/** Takes the next step and shows the new status; the current one if the step was refused as out of order. */
async function advance(action, details = {}) {
  try {
    const status = await postJson("/api/participant", { do: action, at: Date.now(), ...details }, token);
    if (action === "answer") for (const part of ["before", "after"]) draft(part).set(null);
    show(status);
  } catch (error) {
    if (error.status !== 409) throw error;
    show(await getJson("/api/participant", token));
  }
}

/** Runs a task and shows its error if it fails. */
async function attempt(task) {
  showError(byId("error"), null);
  try {
    await task();
  } catch (error) {
    if (REFUSALS[error.code]) {
      byId("page").replaceChildren(element("h1", {}, REFUSALS[error.code]), element("p", {}, error.message));
    } else {
      showError(byId("error"), error);
    }
  }
}

function button(text, task, tone = "") {
  const node = element("button", { type: "button", className: tone }, text);
  node.addEventListener("click", async () => {
    node.disabled = true;
    await attempt(task);
    node.disabled = false;
  });
  return node;
}

const advanceButton = (text, action, tone) => button(text, () => advance(action), tone);
const buttonRow = (...buttons) => element("div", { className: "row" }, ...buttons);

function show(status) {
  game?.close();
  game = null;
  document.title = `${status.title} · Scrubjay`;
  const trial = status.practice ?? status.trial;
  byId("page").hidden = Boolean(trial);
  byId("game").hidden = !trial;
  byId("leave").hidden = !status.practice;
  document.body.dataset.part = trial ? "game" : status.status;
  const where = status.practice ? "Practice"
    : status.status === "trials" ? `Trial ${Math.min(status.done + 1, status.of)} of ${status.of}` : "";
  byId("where").textContent = status.pilot ? `Pilot ${where && `· ${where}`}` : where;
  if (trial) {
    game = new Game(byId("game"), trial, (result) => finished(result, status));
  } else {
    const heading = element("h1", { tabIndex: -1 }, status.title);
    byId("page").replaceChildren(heading, ...PAGES[status.status](status));
    if (shown) heading.focus({ preventScroll: true }); // Or a screen reader would not notice the new page.
  }
  shown = true;
  window.scrollTo(0, 0);
}

const PAGES = {
  consent: ({ consent }) => [
    ...paragraphs(consent),
    buttonRow(advanceButton("I agree", "agree", "primary"), advanceButton("I do not agree", "decline")),
  ],
  before: ({ questions }) => questionPage("before", "First, a few questions.", questions),
  after: ({ questions }) => questionPage("after", "You have finished the trials. A few last questions.", questions),
  instructions: ({ instructions, kind, of }) => [
    ...paragraphs(instructions),
    keyTable(kind),
    element("p", { className: "quiet" }, `There ${of === 1 ? "is 1 trial" : `are ${of} trials`}. Practice first, as long
      as you like. You can close the page at any time and return with the same link: you continue at the same step.`),
    buttonRow(advanceButton("Practice", "practise", "primary"), advanceButton("Start the trials", "begin")),
  ],
  trials: ({ done, of }) => [
    element("p", {}, done ? `${done} of ${of} done.` : `${count(of, "trial")} ahead.`),
    element("progress", { max: of, value: done, "aria-label": "Trials done" }),
    buttonRow(advanceButton(done ? "Next trial" : "Start the first trial", "next", "primary"),
      advanceButton("Practice again", "practise")),
  ],
  done: ({ code, bonus, submit, return: back }) => [
    element("p", {}, "Thank you for taking part. Your completion code:"),
    element("p", { className: "code", id: "code" }, code),
    bonus ? element("p", { id: "bonus" }, "Your bonus: ", element("strong", {}, bonus)) : "",
    submit ? submitForm(submit) : "",
    buttonRow(copyButton(code),
      back ? element("a", { className: "button primary", href: back, rel: "noreferrer" }, "Finish") : "",
      newParticipantButton()),
  ],
  declined: ({ platform }) => [
    element("p", {}, "You have chosen not to take part. ", RETURN[platform] ?? "You can close this page."),
    buttonRow(newParticipantButton()),
  ],
};

/** Keeps a questionnaire's answers in the browser until they are sent: the server has them once its page is left. */
const draft = (part) => ({
  get: () => browserStorage.get(`draft.${token}.${part}`),
  set: (text) => browserStorage.set(`draft.${token}.${part}`, text),
});

const questionPage = (part, text, questions) => [
  element("p", {}, text),
  questionnaire(questions, (answers) => attempt(() => advance("answer", { answers })), draft(part)),
];

/** Submits an external question to Mechanical Turk. */
function submitForm({ url, fields }) {
  const inputs = Object.entries(fields).map(([name, value]) => element("input", { type: "hidden", name, value }));
  return element("form", { method: "post", action: url, className: "row submit" }, ...inputs,
    element("button", { type: "submit", className: "primary" }, "Submit to Mechanical Turk"));
}

/** The most important keys. */
function keyTable(kind) {
  const rows = KEYS[kind].map((action) => element("tr", {},
    element("td", {}, ...ACTIONS[action].keys.flatMap((key) => [element("kbd", {}, keyLabel(key)), " "])),
    element("td", {}, KEY_LABELS[action] ?? ACTIONS[action].label)));
  const click = element("tr", {}, element("td", {}, "Click or tap"), element("td", {}, "Open the thing clicked"));
  return element("details", { className: "keys", open: true }, element("summary", {}, "Keys and buttons"),
    element("table", {}, ...rows, click));
}

function copyButton(code) {
  const node = button("Copy code", async () => {
    try {
      await navigator.clipboard.writeText(code);
      node.textContent = "Copied";
    } catch {
      // Without HTTPS there is no clipboard: select the code instead.
      getSelection().selectAllChildren(byId("code"));
    }
  });
  return node;
}

/** Without platform parameters, several people can take part on one computer. */
function newParticipantButton() {
  return location.search ? "" : button("New participant", async () => {
    await join();
    show(await getJson("/api/participant", token));
  });
}

/** The dialog at the end of a trial or practice game. */
function finished({ found, steps }, { practice, kind }) {
  const title = kind === "hide" ? "Hidden" : found ? "Found!" : "Given up";
  const text = `You took ${count(steps, "step")}.`;
  const back = button("Back to the study", endPractice, "");
  const buttons = practice ? [advanceButton("Practice again", "practise", "primary"), back]
    : [advanceButton("Continue", "next", "primary")];
  return dialog(title, text, buttonRow(...buttons));
}

/** Leaves practice for the study's page; the server ends it when the participant starts the trials. */
async function endPractice() {
  const status = await getJson("/api/participant", token);
  show({ ...status, practice: null });
}

byId("leave").addEventListener("click", () => attempt(endPractice));
attempt(arrive);
